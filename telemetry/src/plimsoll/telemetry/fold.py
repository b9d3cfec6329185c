"""From rows to a snapshot, in plain Python: the reference for Spark's numbers, and their fallback.

`aggregate` is the one place where a cluster's windows are computed from rows; `fold` does it over the newest reports
that a collector has in memory. All functions are pure, and the order of rows does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.telemetry.metric_statistics import NANO, MetricStatistics, compute_statistics, to_billionths
from plimsoll.telemetry.schema import METRICS
from plimsoll.telemetry.snapshot import (
    CANDIDATES_AT_MOST,
    ClusterSnapshot,
    LoadCandidate,
    LoadWindow,
    ReportCounts,
    SnapshotSource,
    TelemetrySnapshot,
)

FRESH_SECONDS: Final = 5
"""The fold uses the newest report of each broker, if it is at most this old."""

_INPUT, _OUTPUT = METRICS.index("input_utilization"), METRICS.index("output_utilization")


@dataclass(frozen=True, slots=True)
class ReportPoint:
    """The parts of a row that are aggregated. `values`: the columns METRICS, in billionths."""

    broker: str
    role: str
    epoch: int
    seq: int
    at_us: int
    state: str
    values: tuple[int, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ReportPoint:
        """From a row of the table `loads`."""
        return cls(
            row["broker"], row["role"], row["epoch"], row["seq"], row["at_us"], row["state"],
            tuple(to_billionths(row[name]) for name in METRICS),
        )  # fmt: skip

    @property
    def version(self) -> tuple[int, int]:
        return self.epoch, self.seq


def aggregate_cluster(
    points: Iterable[ReportPoint],
    expected: Iterable[str],
    end_us: int,
    windows_seconds: Sequence[int],
    seen_seconds: int,
) -> ClusterSnapshot:
    """One cluster from its rows, which differ in (broker, epoch, seq). Rows outside every window are ignored."""
    longest = max(*windows_seconds, seen_seconds)
    rows = [point for point in points if end_us - longest * 1_000_000 < point.at_us <= end_us]
    wanted = set(expected)
    seen = {point.broker for point in rows if point.at_us > end_us - seen_seconds * 1_000_000} & wanted
    edges = [point for point in rows if point.role == "edge"]
    newest: dict[str, ReportPoint] = {}
    for point in edges:
        known = newest.get(point.broker)
        if known is None or point.version > known.version:
            newest[point.broker] = point
    return ClusterSnapshot(
        seen=len(seen),
        expected=len(wanted),
        missing=sorted(wanted - seen),
        states={name: newest[name].state for name in sorted(newest)},
        windows={
            str(seconds): _window([point for point in edges if point.at_us > end_us - seconds * 1_000_000])
            for seconds in windows_seconds
        },
    )


def _window(points: Sequence[ReportPoint]) -> LoadWindow:
    by_broker: dict[str, list[tuple[int, ...]]] = {}
    for point in points:
        by_broker.setdefault(point.broker, []).append(point.values)
    sums = {broker: [sum(column) for column in zip(*rows, strict=True)] for broker, rows in by_broker.items()}
    metrics: dict[str, MetricStatistics] = {}
    columns = zip(*(point.values for point in points), strict=True)
    for index, values in enumerate(columns):
        found = compute_statistics(values, [(sums[broker][index], len(rows)) for broker, rows in by_broker.items()])
        if found is not None:
            metrics[METRICS[index]] = found
    loads = {
        broker: max(sums[broker][_INPUT], sums[broker][_OUTPUT]) / (len(rows) * NANO)
        for broker, rows in by_broker.items()
    }
    over = sorted(loads, key=lambda broker: (-loads[broker], broker))
    under = sorted(loads, key=lambda broker: (loads[broker], broker))
    return LoadWindow(
        n=len(points),
        brokers=len(by_broker),
        metrics=metrics,
        over=[LoadCandidate(broker=name, load=loads[name]) for name in over[:CANDIDATES_AT_MOST]],
        under=[LoadCandidate(broker=name, load=loads[name]) for name in under[:CANDIDATES_AT_MOST]],
    )


@dataclass(frozen=True, kw_only=True)
class SnapshotHeader:
    """A snapshot's fields other than its clusters; see `TelemetrySnapshot`."""

    source: SnapshotSource
    fleet: str
    run_us: int
    batch: int
    window_end_us: int
    written_us: int


def assemble_snapshot(
    header: SnapshotHeader,
    clusters: Mapping[str, ClusterSnapshot],
    counts: ReportCounts,
    windows_seconds: Sequence[int],
    seen_seconds: int,
) -> TelemetrySnapshot:
    """The snapshot of these clusters."""
    return TelemetrySnapshot(
        source=header.source,
        fleet=header.fleet,
        run_us=header.run_us,
        batch=header.batch,
        window_end_us=header.window_end_us,
        written_us=header.written_us,
        windows_seconds=list(windows_seconds),
        seen_seconds=seen_seconds,
        seen=sum(cluster.seen for cluster in clusters.values()),
        expected=sum(cluster.expected for cluster in clusters.values()),
        counts=counts,
        clusters={name: clusters[name] for name in sorted(clusters)},
    )


def fold_reports(
    newest: Mapping[str, Iterable[ReportPoint]],
    expected: Mapping[str, Iterable[str]],
    header: SnapshotHeader,
    counts: ReportCounts,
    fresh_seconds: int = FRESH_SECONDS,
) -> TelemetrySnapshot:
    """The fallback: `newest` has the newest report of each broker, by cluster. Its one window is `fresh_seconds` long.

    It includes expected clusters that are silent, with no broker seen, and clusters that are not expected.
    """
    clusters = {
        name: aggregate_cluster(
            newest.get(name, ()), expected.get(name, ()), header.window_end_us, (fresh_seconds,), fresh_seconds
        )
        for name in {*newest, *expected}
    }
    return assemble_snapshot(header, clusters, counts, (fresh_seconds,), fresh_seconds)


def merge_folds(folds: Sequence[TelemetrySnapshot], header: SnapshotHeader) -> TelemetrySnapshot:
    """Merge the folds of a fleet's collectors, each of its share of clusters; `folds` is not empty.

    If two have the same cluster, as for a moment when shares change, the one that saw more brokers counts.

    Raises:
        ValueError: a fold is of another fleet, or its windows have other lengths.

    """
    first = folds[0]
    for each in folds:
        if each.fleet != header.fleet:
            raise ValueError(f"a fold of fleet {each.fleet} among those of {header.fleet}")
        if (each.windows_seconds, each.seen_seconds) != (first.windows_seconds, first.seen_seconds):
            raise ValueError(
                f"windows of {each.windows_seconds} and of {first.windows_seconds} s cannot be put together"
            )
    clusters: dict[str, ClusterSnapshot] = {}
    for each in folds:
        for name, cluster in each.clusters.items():
            known = clusters.get(name)
            if known is None or (cluster.seen, cluster.expected) > (known.seen, known.expected):
                clusters[name] = cluster
    counts = ReportCounts(
        **{name: sum(getattr(each.counts, name) for each in folds) for name in ReportCounts.__struct_fields__},
    )
    return assemble_snapshot(header, clusters, counts, first.windows_seconds, first.seen_seconds)
