"""The last minutes of one cluster as arrays: rows are added in any order, and windows are computed from them.

This is the state of the live job. Rows are added and stored as blocks of whole numbers, in slices of ten seconds, so
that a batch rewrites only the newest one or two and not all five minutes. A row belongs to the slice of its `at_us`.
Its key is (broker, epoch, seq); of rows with equal keys the one received first counts, and of those received at the
same time the one of the collector first by name. Statistics are those of `plimsoll.telemetry.metric_statistics`,
computed from whole numbers only, so that they equal the oracle's to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from plimsoll.telemetry.metric_statistics import (
    NANO,
    PERCENTILES,
    MetricStatistics,
    percentile_rank,
    statistics_from_sums,
)
from plimsoll.telemetry.schema import METRICS
from plimsoll.telemetry.snapshot import (
    CANDIDATES_AT_MOST,
    SEEN_SECONDS,
    WINDOWS_SECONDS,
    LoadCandidate,
    LoadWindow,
    ReportCounts,
)

Ints = npt.NDArray[np.int64]

SLICE_US: Final = 10_000_000
HORIZON_US: Final = max(*WINDOWS_SECONDS, SEEN_SECONDS) * 1_000_000
BROKER, ROLE, STATE, EPOCH, SEQ, RECEIVED, COLLECTOR, AT, FIRST_METRIC = range(9)
WIDTH: Final = FIRST_METRIC + len(METRICS)
_NAME_COLUMNS: Final = (BROKER, ROLE, STATE, COLLECTOR)
_INPUT, _OUTPUT = METRICS.index("input_utilization"), METRICS.index("output_utilization")
_CHUNK: Final = 1 << 20  # a sum of this many products of 21-bit limbs stays below 2^63


class _ReportBlock(msgspec.Struct, array_like=True):
    names: list[str]
    rows: bytes


def encode_block(names: Sequence[str], rows: Ints) -> bytes:
    """Rows to be stored or sent, together with the names that they use."""
    used, inverse = np.unique(rows[:, _NAME_COLUMNS], return_inverse=True)
    own = rows.copy()
    own[:, _NAME_COLUMNS] = inverse.reshape(len(rows), len(_NAME_COLUMNS))
    return msgspec.msgpack.encode(_ReportBlock([names[place] for place in used], own.tobytes()))


class ClusterSummary(msgspec.Struct, frozen=True):
    """The state of a cluster. `seen`: brokers, heads included, with a row in the last SEEN_SECONDS.

    `is_present`: a broker has a row in the longest window.
    """

    is_present: bool
    seen: list[str]
    states: dict[str, str]
    windows: dict[str, LoadWindow]


@dataclass(slots=True)
class ReportBuffer:
    """Rows of one cluster as whole numbers: names by their index in `names`, metrics in billionths."""

    names: list[str] = field(default_factory=list)
    rows: Ints = field(default_factory=lambda: np.empty((0, WIDTH), dtype=np.int64))

    @classmethod
    def load(cls, blobs: Iterable[bytes]) -> ReportBuffer:
        """A buffer from its blocks, in any order."""
        buffer, parts = cls(), []
        known: dict[str, int] = {}
        for blob in blobs:
            stored = msgspec.msgpack.decode(blob, type=_ReportBlock)
            rows = np.frombuffer(stored.rows, dtype=np.int64).reshape(-1, WIDTH).copy()
            places = np.array([known.setdefault(name, len(known)) for name in stored.names], dtype=np.int64)
            for column in _NAME_COLUMNS:
                rows[:, column] = places[rows[:, column]]
            parts.append(rows)
        buffer.names = list(known)
        if parts:
            buffer.rows = np.concatenate(parts)
        return buffer

    def slices(self) -> list[int]:
        return [int(number) for number in np.unique(self.rows[:, AT] // SLICE_US)]

    def encode_slice(self, number: int) -> bytes | None:
        """The block of one slice; None if the slice is empty."""
        rows = self.rows[self.rows[:, AT] // SLICE_US == number]
        return encode_block(self.names, rows) if len(rows) else None

    def prune(self, end_us: int) -> None:
        """Drop rows that are in no window that ends at `end_us` or later."""
        self.rows = self.rows[self.rows[:, AT] > end_us - HORIZON_US]

    def add(self, blocks: Iterable[bytes], end_us: int) -> tuple[ReportCounts, set[int]]:
        """Add valid rows; returns their counts, and the slices that have changed.

        A row is late if it is in no window that ends at `end_us` or later.
        """
        given = ReportBuffer.load(blocks)
        fresh = given.rows[given.rows[:, AT] > end_us - HORIZON_US]
        late = len(given.rows) - len(fresh)
        if not len(fresh):
            return ReportCounts(rows_in=late, late=late), set()
        before, both = len(self.rows), np.concatenate([self.rows, self._translate_names(fresh, given.names)])
        counts = self._first_copies(both)
        gone, new = both[:before][~counts[:before]], both[before:][counts[before:]]
        self.rows = both[counts]
        counted = len(self.rows) - before
        changed = np.unique(np.concatenate([gone[:, AT], new[:, AT]]) // SLICE_US)
        outcome = ReportCounts(rows_in=len(given.rows), counted=counted, duplicate=len(fresh) - counted, late=late)
        return outcome, {int(number) for number in changed}

    def _translate_names(self, rows: Ints, names: Sequence[str]) -> Ints:
        """The rows with indexes into this buffer's names; new names are appended."""
        places = {name: place for place, name in enumerate(self.names)}
        here = np.array([places.setdefault(name, len(places)) for name in names], dtype=np.int64)
        self.names = list(places)
        rows[:, _NAME_COLUMNS] = here[rows[:, _NAME_COLUMNS]]
        return rows

    def _first_copies(self, rows: Ints) -> npt.NDArray[np.bool_]:
        """For each row whether it counts: of each key the row received first does."""
        alphabetic = np.empty(len(self.names), dtype=np.int64)
        alphabetic[sorted(range(len(self.names)), key=self.names.__getitem__)] = np.arange(len(self.names))
        collectors = alphabetic[rows[:, COLLECTOR]]
        order = np.lexsort((collectors, rows[:, RECEIVED], rows[:, SEQ], rows[:, EPOCH], rows[:, BROKER]))
        keys = rows[order][:, (BROKER, EPOCH, SEQ)]
        is_first = np.ones(len(rows), dtype=np.bool_)
        is_first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        counts = np.empty(len(rows), dtype=np.bool_)
        counts[order] = is_first
        return counts

    def summarize(self, end_us: int) -> ClusterSummary:
        """The state of the cluster at `end_us`."""
        at = self.rows[:, AT]
        rows = self.rows[(at > end_us - HORIZON_US) & (at <= end_us)]
        lately = rows[rows[:, AT] > end_us - SEEN_SECONDS * 1_000_000]
        edge = self.names.index("edge") if "edge" in self.names else -1
        edges = rows[rows[:, ROLE] == edge]
        edges = edges[np.lexsort((edges[:, SEQ], edges[:, EPOCH], edges[:, BROKER]))]
        newest = np.flatnonzero(np.diff(edges[:, BROKER], append=-1) != 0) if len(edges) else np.empty(0, np.int64)
        states = {self.names[edges[i, BROKER]]: self.names[edges[i, STATE]] for i in newest}
        windows = {}
        for seconds in WINDOWS_SECONDS:
            windows[str(seconds)] = self._window(edges[edges[:, AT] > end_us - seconds * 1_000_000])
        return ClusterSummary(
            is_present=len(rows) > 0,
            seen=sorted(self.names[place] for place in np.unique(lately[:, BROKER])),
            states={name: states[name] for name in sorted(states)},
            windows=windows,
        )

    def _window(self, rows: Ints) -> LoadWindow:
        """A window of rows that are ordered by broker."""
        if not len(rows):
            return LoadWindow(n=0, brokers=0, metrics={}, over=[], under=[])
        starts = np.flatnonzero(np.diff(rows[:, BROKER], prepend=-1) != 0)
        numbers = np.diff(starts, append=len(rows)).tolist()
        sums = [_sums(rows[:, FIRST_METRIC + index], starts) for index in range(len(METRICS))]
        metrics = {
            name: _figures(rows[:, FIRST_METRIC + index], list(zip(sums[index], numbers, strict=True)))
            for index, name in enumerate(METRICS)
        }
        names = [self.names[place] for place in rows[starts, BROKER]]
        loads = {
            name: max(of_input, of_output) / (n * NANO)
            for name, of_input, of_output, n in zip(names, sums[_INPUT], sums[_OUTPUT], numbers, strict=True)
        }
        over, under = rank_candidates(loads)
        return LoadWindow(n=len(rows), brokers=len(names), metrics=metrics, over=over, under=under)


def rank_candidates(loads: Mapping[str, float]) -> tuple[list[LoadCandidate], list[LoadCandidate]]:
    """The most loaded brokers, highest load first, and the least loaded, lowest first; ties by name."""
    over = sorted(loads, key=lambda name: (-loads[name], name))[:CANDIDATES_AT_MOST]
    under = sorted(loads, key=lambda name: (loads[name], name))[:CANDIDATES_AT_MOST]
    return (
        [LoadCandidate(broker=name, load=loads[name]) for name in over],
        [LoadCandidate(broker=name, load=loads[name]) for name in under],
    )


def _sums(values: Ints, starts: Ints) -> list[int]:
    """Exact sums of runs. Values are split into halves, whose sums stay below 2^63."""
    high = np.add.reduceat(values >> 31, starts).tolist()
    low = np.add.reduceat(values & ((1 << 31) - 1), starts).tolist()
    return [(a << 31) + b for a, b in zip(high, low, strict=True)]


def _figures(values: Ints, broker_means: Sequence[tuple[int, int]]) -> MetricStatistics:
    n = len(values)
    ranks = [percentile_rank(n, percent) for percent in PERCENTILES]
    ordered = np.partition(values, ranks)
    p50, p95, p99 = (int(ordered[place]) for place in ranks)
    total = sum(of_broker for of_broker, _ in broker_means)
    return statistics_from_sums(n, total, sum(_squares(values)), int(values.max()), (p50, p95, p99), broker_means)


def _squares(values: Ints) -> Iterator[int]:
    """The exact sum of squares of each chunk, from limbs of 21 bits."""
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK]
        mask = (1 << 21) - 1
        a, b, c = chunk >> 42, (chunk >> 21) & mask, chunk & mask
        aa, ab, ac, bb, bc, cc = (int(x @ y) for x, y in ((a, a), (a, b), (a, c), (b, b), (b, c), (c, c)))
        yield (aa << 84) + (ab << 64) + ((2 * ac + bb) << 42) + (bc << 22) + cc
