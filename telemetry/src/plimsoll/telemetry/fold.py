"""From rows to a snapshot, in plain Python: the definition that Spark's numbers are held against, and what stands in.

`aggregate` is the one place where a cluster's windows are computed from rows; `fold` does it over the newest reports
that a collector has in memory. Everything is a pure function of its arguments, whatever their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.telemetry.figures import NANO, Figures, figures, nano
from plimsoll.telemetry.schema import METRICS
from plimsoll.telemetry.snapshot import CANDIDATES_AT_MOST, Candidate, Cluster, Counts, Snapshot, Source, Window

FRESH_SECONDS: Final = 5
"""The fold is of the newest report of each broker, if it is at most so old."""

_INPUT, _OUTPUT = METRICS.index("input_utilization"), METRICS.index("output_utilization")


@dataclass(frozen=True, slots=True)
class Point:
    """What aggregates need of a row. `values`: the columns METRICS, in billionths."""

    broker: str
    role: str
    epoch: int
    seq: int
    at_us: int
    state: str
    values: tuple[int, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Point:
        """From a row of the table `loads`."""
        return cls(
            row["broker"], row["role"], row["epoch"], row["seq"], row["at_us"], row["state"],
            tuple(nano(row[name]) for name in METRICS),
        )  # fmt: skip

    @property
    def version(self) -> tuple[int, int]:
        return self.epoch, self.seq


def aggregate(
    points: Iterable[Point], expected: Iterable[str], end_us: int, windows_seconds: Sequence[int], seen_seconds: int
) -> Cluster:
    """One cluster from its rows, each of another (broker, epoch, seq). Rows outside every window change nothing."""
    longest = max(*windows_seconds, seen_seconds)
    rows = [point for point in points if end_us - longest * 1_000_000 < point.at_us <= end_us]
    wanted = set(expected)
    seen = {point.broker for point in rows if point.at_us > end_us - seen_seconds * 1_000_000} & wanted
    edges = [point for point in rows if point.role == "edge"]
    newest: dict[str, Point] = {}
    for point in edges:
        known = newest.get(point.broker)
        if known is None or point.version > known.version:
            newest[point.broker] = point
    return Cluster(
        seen=len(seen),
        expected=len(wanted),
        missing=sorted(wanted - seen),
        states={name: newest[name].state for name in sorted(newest)},
        windows={
            str(seconds): _window([point for point in edges if point.at_us > end_us - seconds * 1_000_000])
            for seconds in windows_seconds
        },
    )


def _window(points: Sequence[Point]) -> Window:
    by_broker: dict[str, list[tuple[int, ...]]] = {}
    for point in points:
        by_broker.setdefault(point.broker, []).append(point.values)
    sums = {broker: [sum(column) for column in zip(*rows, strict=True)] for broker, rows in by_broker.items()}
    metrics: dict[str, Figures] = {}
    columns = zip(*(point.values for point in points), strict=True)
    for index, values in enumerate(columns):
        found = figures(values, [(sums[broker][index], len(rows)) for broker, rows in by_broker.items()])
        if found is not None:
            metrics[METRICS[index]] = found
    loads = {
        broker: max(sums[broker][_INPUT], sums[broker][_OUTPUT]) / (len(rows) * NANO)
        for broker, rows in by_broker.items()
    }
    over = sorted(loads, key=lambda broker: (-loads[broker], broker))
    under = sorted(loads, key=lambda broker: (loads[broker], broker))
    return Window(
        n=len(points),
        brokers=len(by_broker),
        metrics=metrics,
        over=[Candidate(broker=name, load=loads[name]) for name in over[:CANDIDATES_AT_MOST]],
        under=[Candidate(broker=name, load=loads[name]) for name in under[:CANDIDATES_AT_MOST]],
    )


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a snapshot says of itself beside its clusters; see `Snapshot`."""

    source: Source
    fleet: str
    run_us: int
    batch: int
    window_end_us: int
    written_us: int


def assemble(
    header: Header, clusters: Mapping[str, Cluster], counts: Counts, windows_seconds: Sequence[int], seen_seconds: int
) -> Snapshot:
    """The snapshot of these clusters."""
    return Snapshot(
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


def fold(
    newest: Mapping[str, Iterable[Point]],
    expected: Mapping[str, Iterable[str]],
    header: Header,
    counts: Counts,
    fresh_seconds: int = FRESH_SECONDS,
) -> Snapshot:
    """The fallback: `newest` has the newest report of each broker, by cluster. Its one window is `fresh_seconds` long.

    A cluster that is expected and silent is in it, with nobody seen; one that is not expected is in it, too.
    """
    clusters = {
        name: aggregate(
            newest.get(name, ()), expected.get(name, ()), header.window_end_us, (fresh_seconds,), fresh_seconds
        )
        for name in {*newest, *expected}
    }
    return assemble(header, clusters, counts, (fresh_seconds,), fresh_seconds)


def merged(folds: Sequence[Snapshot], header: Header) -> Snapshot:
    """One fold of a fleet out of those of its collectors, who share its clusters; `folds` is not empty.

    Where two have the same cluster, as for a moment when shares change, the one that has seen more of it counts.

    Raises:
        ValueError: they are not of the header's fleet, or of windows of the same length.

    """
    first = folds[0]
    for each in folds:
        if each.fleet != header.fleet:
            raise ValueError(f"a fold of fleet {each.fleet} among those of {header.fleet}")
        if (each.windows_seconds, each.seen_seconds) != (first.windows_seconds, first.seen_seconds):
            raise ValueError(
                f"windows of {each.windows_seconds} and of {first.windows_seconds} s cannot be put together"
            )
    clusters: dict[str, Cluster] = {}
    for each in folds:
        for name, cluster in each.clusters.items():
            known = clusters.get(name)
            if known is None or (cluster.seen, cluster.expected) > (known.seen, known.expected):
                clusters[name] = cluster
    counts = Counts(
        **{name: sum(getattr(each.counts, name) for each in folds) for name in Counts.__struct_fields__},
    )
    return assemble(header, clusters, counts, first.windows_seconds, first.seen_seconds)
