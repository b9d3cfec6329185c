"""A batch of a channel: which rows of which feeds it consumes, and the commit that holds all that it did.

Rows of a feed are numbered from 1, dead letters included, without a hole. So a place in a feed is a number, compaction
does not move it, and a batch accounts for each row: rows in = used + late + invalid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from plimsoll.core.protocol.wire import Scalar

BATCH_ROWS: Final = 200_000
"""The most rows of one feed in a batch."""
NO_DATASETS: Final[Mapping[str, str]] = {}


class RowRange(Struct, frozen=True):
    """Rows `first` to `last` of a feed; none if `last` is below `first`."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return max(0, self.last - self.first + 1)


class RowCounts(Struct, frozen=True):
    """Rows that were consumed: rows in = used + late + invalid."""

    rows_in: int = 0
    used: int = 0
    late: int = 0
    invalid: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.rows_in + other.rows_in, self.used + other.used, self.late + other.late, self.invalid + other.invalid
        )

    def __sub__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.rows_in - other.rows_in, self.used - other.used, self.late - other.late, self.invalid - other.invalid
        )


class Result(Struct, frozen=True):
    """A result as it is published."""

    attributes: dict[str, Scalar]
    payload: bytes = b""


class BatchTotals(Struct, frozen=True):
    """Sums over all batches up to one."""

    rows: RowCounts = RowCounts()
    results: int = 0
    unasked: int = 0
    invalid_results: int = 0


class BatchCommit(Struct, frozen=True):
    """A batch: the places in its feeds behind it, the parameters that it was computed for, and its results.

    `query_us`: how long its query took, in microseconds; `late_us`: how long after the beginning of its period it
    began. `before`: the results of all batches before it. The first commit of a channel has number 0 and only says
    where it begins. `datasets`: the names of the datasets that the places are in, as far as they are known.
    `due_us`: when its period began, without periods itself; 0 in a commit that is no batch, or of an earlier version.
    """

    number: int
    at_us: int
    places: dict[str, int]
    parameters: tuple[tuple[Scalar, ...], ...] = ()
    results: tuple[Result, ...] = ()
    totals: BatchTotals = BatchTotals()
    query_us: int = 0
    late_us: int = 0
    datasets: dict[str, str] = {}
    due_us: int = 0

    @property
    def before(self) -> int:
        """How many results the batches before it have."""
        return self.totals.results - len(self.results)

    @property
    def last_due_us(self) -> int:
        """When the last batch was due; of a channel without a batch, when it was made."""
        return self.due_us or self.at_us


def first_commit(ends: Mapping[str, int], at_us: int, datasets: Mapping[str, str] = NO_DATASETS) -> BatchCommit:
    """Where a channel begins: with what is recorded from now on."""
    return BatchCommit(0, at_us, dict(ends), datasets=dict(datasets))


def planned_ranges(places: Mapping[str, int], ends: Mapping[str, int], most: int = BATCH_ROWS) -> dict[str, RowRange]:
    """The rows of the next batch, by feed. `ends`: the number of the last row of each feed.

    A feed that ends in front of its place has been deleted and created again; it is read from its first row.
    """
    found = {}
    for feed, end in sorted(ends.items()):
        place = places.get(feed, end)
        place = 0 if place > end else place
        found[feed] = RowRange(place + 1, min(end, place + most))
    return found


def next_commit(
    last: BatchCommit,
    places: Mapping[str, int],
    counts: RowCounts,
    parameters: tuple[tuple[Scalar, ...], ...],
    results: tuple[Result, ...],
    *,
    unasked: int,
    invalid: int,
    at_us: int,
    query_us: int,
    late_us: int = 0,
    due_us: int = 0,
    datasets: Mapping[str, str] = NO_DATASETS,
) -> BatchCommit:
    """The commit of the batch behind `last`. `places`, `datasets`: of the feeds that it has read."""
    totals = BatchTotals(
        last.totals.rows + counts, last.totals.results + len(results), last.totals.unasked + unasked,
        last.totals.invalid_results + invalid,
    )  # fmt: skip
    return BatchCommit(
        last.number + 1, at_us, {**last.places, **places}, parameters, results, totals, query_us, late_us,
        {**last.datasets, **datasets}, due_us,
    )  # fmt: skip
