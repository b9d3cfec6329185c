"""Residual subscriptions as arrays, for the compiled loop.

Laws. A row is a subscription: a bucket (the code of its access predicate) and its tests, closed intervals of a column.
A publication becomes a vector of floats, a column per (attribute, aspect): the code of an equality's value, the number
itself, or presence. Every test is exact: bounds are moved to the nearest double with the same meaning for doubles,
equalities compare codes, and a publication with an integer that no double equals is matched by the subscriptions
themselves. The two most selective tests of a row, equalities first, are its heads; a single test is stored twice.
Rows are added in batches (`merge`); a removed row is made unsatisfiable and dropped by the next merge.
"""

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.core.matching.compiled_plan import ColumnKey, CompiledPlan, InexactError, is_double
from plimsoll.core.matching.kernel import Scan
from plimsoll.core.predicates import Attributes, Exactly, Interval, Subscription, Text
from plimsoll.core.predicates.constraints import AnyConstraint

Id = Hashable
LARGEST_LABEL = 2**63 - 1


class CompiledResidual:
    """The rows, and the look-ups that turn a publication into a vector."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._columns: dict[ColumnKey, int] = {}
        self._codes: dict[ColumnKey, dict[object, int]] = {}
        self._strict: set[ColumnKey] = set()  # string columns in which "some other string" differs from "no string"
        self._code_count = 1  # code 0: a value that no subscription names; its bucket is empty
        self._slots: dict[Id, int] = {}
        self._ids: list[Id] = []  # by slot
        self._free: list[int] = []
        self._labels_are_ids = True
        self._dead = 0
        self._buckets = np.zeros(0, np.int64)
        self._row_slots = np.zeros(0, np.int64)
        self._positions = np.zeros(0, np.int64)  # slot -> row
        self._heads = _Tests()  # two a row
        self._starts = np.zeros(1, np.int64)  # row -> where its other tests begin
        self._others = _Tests()
        self._labels = np.zeros(0, np.int64)
        self._offsets = np.zeros(2, np.int64)
        self._out = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, item: Id) -> bool:
        return item in self._slots

    @property
    def dead(self) -> int:
        """Rows removed since the last merge."""
        return self._dead

    @property
    def is_wasteful(self) -> bool:
        """Whether most codes name values that are gone, so that rebuilding frees memory."""
        return self._code_count > 4096 + 8 * len(self._slots)

    def ids(self) -> list[Id]:
        """The ids of the rows."""
        return list(self._slots)

    def remove(self, item: Id) -> None:
        """Remove a row."""
        slot = self._slots.pop(item)
        self._free.append(slot)
        self._ids[slot] = None
        row = self._positions[slot]
        self._heads.lows[2 * row], self._heads.highs[2 * row] = math.inf, -math.inf
        self._row_slots[row] = -1
        self._dead += 1

    def merge(self, rows: Mapping[Id, Subscription], seen: Callable[[str, object], int]) -> None:
        """Add rows, drop removed ones, sort all by bucket. `seen` counts an equality's subscriptions."""
        new = _ColumnBatch()
        known: dict[int, tuple[int, int, int]] = {}
        for subscription in rows.values():
            self._encode(subscription, seen, new, known)
        items = list(rows)
        self._labels_are_ids = self._labels_are_ids and all(map(_is_label, items))
        slots = np.concatenate([self._row_slots, self._take_slots(items)])
        labels = np.concatenate([self._labels, np.array(items, np.int64)]) if self._labels_are_ids else slots
        heads, lengths, others = new.arrays()
        self._arrange(
            np.concatenate([self._buckets, np.array(new.buckets, np.int64)]),
            slots,
            labels,
            self._heads.then(heads),
            np.concatenate([np.diff(self._starts), lengths]),
            self._others.then(others),
        )

    def plan(self, attributes: frozenset[str]) -> CompiledPlan | None:
        """How publications with these attributes become vectors, until the next merge. None if no row can match."""
        plan = CompiledPlan(self._columns, self._codes, self._strict, attributes)
        return plan if len(plan.access) else None

    def match(
        self, plan: CompiledPlan, attributes: Attributes, out: list[Any], subscriptions: dict[Id, Subscription]
    ) -> None:
        """Append the ids of the rows that match."""
        try:
            vector = plan.vector(attributes)
        except InexactError:  # a number that no double equals: the subscriptions themselves compare it
            out.extend(item for item in self._candidates(plan, attributes) if subscriptions[item].matches(attributes))
            return
        found = self._out
        count = self._scan(
            vector,
            plan.access,
            self._offsets,
            self._heads.columns,
            self._heads.lows,
            self._heads.highs,
            self._starts,
            self._others.columns,
            self._others.lows,
            self._others.highs,
            self._labels,
            found,
        )
        if count:
            labels = found[:count].tolist()
            out += labels if self._labels_are_ids else map(self._ids.__getitem__, labels)

    def _candidates(self, plan: CompiledPlan, attributes: Attributes) -> Iterable[Id]:
        for code in plan.codes(attributes):
            for row in range(self._offsets[code], self._offsets[code + 1]):
                slot = self._row_slots[row]
                if slot >= 0:
                    yield self._ids[slot]

    def _take_slots(self, items: list[Id]) -> NDArray[np.int64]:
        again = [self._free.pop() for _ in range(min(len(self._free), len(items)))]
        slots = [*again, *range(len(self._ids), len(self._ids) + len(items) - len(again))]
        for slot, item in zip(again, items, strict=False):
            self._ids[slot] = item
        self._ids += items[len(again) :]
        self._slots.update(zip(items, slots, strict=True))
        return np.array(slots, np.int64)

    def _arrange(
        self,
        buckets: NDArray[np.int64],
        slots: NDArray[np.int64],
        labels: NDArray[np.int64],
        heads: "_Tests",
        lengths: NDArray[np.int64],
        others: "_Tests",
    ) -> None:
        """Keep the rows that are alive, ordered by bucket."""
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        order = np.argsort(buckets, kind="stable")
        order = order[slots[order] >= 0]
        lengths = lengths[order]
        self._heads = heads.at(np.repeat(2 * order, 2) + np.tile(np.arange(2), len(order)))
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        # Test t of row r moves from starts[r] + t to self._starts[r'] + t.
        self._others = others.at(np.repeat(starts[:-1][order] - self._starts[:-1], lengths) + np.arange(lengths.sum()))
        self._buckets, self._row_slots, self._labels = buckets[order], slots[order], labels[order]
        self._offsets = np.searchsorted(self._buckets, np.arange(self._code_count + 1))
        self._positions = np.zeros(len(self._ids), np.int64)
        self._positions[self._row_slots] = np.arange(len(order))
        self._out = np.zeros(len(order), np.int64)
        self._dead = 0

    def _encode(
        self,
        subscription: Subscription,
        seen: Callable[[str, object], int],
        new: "_ColumnBatch",
        known: dict[int, tuple[int, int, int]],
    ) -> None:
        """Append the bucket and the tests of a row: by its rarest equality, else by the presence of an attribute.

        `known` caches (seen, code, column) of an equality by object identity: subscriptions share equalities.
        """
        columns, lows, highs = new.columns, new.lows, new.highs
        access, fewest, column = -1, sys.maxsize, -1
        rest: list[tuple[str, AnyConstraint]] | None = None
        for pair in subscription.constraints:
            name, constraint = pair
            if constraint.__class__ is not Exactly:
                rest = [pair] if rest is None else [*rest, pair]
                continue
            equality = known.get(id(constraint))
            if equality is None:
                place = (name, constraint.kind)
                code = self._code(place, constraint.value)
                equality = known[id(constraint)] = (seen(name, constraint.value), code, self._column(place))
            count, code, here = equality
            if count < fewest:
                # The rarest equality is looked up and needs no test; the previous candidate gets one after all.
                fewest, access, code, column, here = count, code, access, here, column
            if code >= 0:
                columns.append(here)
                lows.append(code)
                highs.append(code)
        if access < 0:
            presence = (subscription.constraints[0][0], "present")
            access, column = self._code(presence, None), self._column(presence)
        new.buckets.append(access)
        if rest is not None:
            self._test(rest, new)
        if len(columns) == new.stops[-1]:
            new.test(column, access, access)  # it holds: the row is in this bucket
        new.stops.append(len(columns))

    def _test(self, rest: list[tuple[str, AnyConstraint]], new: "_ColumnBatch") -> None:
        """Append the tests of constraints other than equalities, those that exclude single values last."""
        columns, lows, highs = new.columns, new.lows, new.highs
        last: list[tuple[int, float]] = []
        for name, constraint in rest:
            if constraint.__class__ is Interval:
                column = self._column((name, "value"))
                low, high = constraint.low, constraint.high
                if constraint.low_open or low.__class__ is not float:
                    low = _floor(low, constraint.low_open)
                if constraint.high_open or high.__class__ is not float:
                    high = -_floor(-high, constraint.high_open)
                columns.append(column)
                lows.append(low)
                highs.append(high)
                if constraint.without:  # a hole between two doubles excludes no double
                    last.extend((~column, float(hole)) for hole in constraint.without if is_double(hole))
            elif isinstance(constraint, Text):
                place = (name, "string")
                column = self._column(place)
                self._codes.setdefault(place, {})
                self._strict.add(place)
                new.test(column, 0.0, math.inf)
                last.extend((~column, self._code(place, value)) for value in sorted(constraint.without))
            else:
                self._code((name, "present"), None)
                new.test(self._column((name, "present")), 0.0, math.inf)
        for column, value in last:
            new.test(column, value, 0.0)

    def _column(self, place: ColumnKey) -> int:
        column = self._columns.get(place)
        if column is None:
            column = self._columns[place] = len(self._columns)
        return column

    def _code(self, place: ColumnKey, value: object) -> int:
        codes = self._codes.setdefault(place, {})
        code = codes.get(value)
        if code is None:
            code = codes[value] = self._code_count
            self._code_count += 1
        return code


class _Tests:
    """Tests, one after another: `low` <= value of the column <= `high`; of a complemented column, value != `low`."""

    __slots__ = ("columns", "highs", "lows")

    def __init__(self, columns: Any = (), lows: Any = (), highs: Any = ()) -> None:
        self.columns: NDArray[np.int32] = np.asarray(columns, np.int32)
        self.lows: NDArray[np.float64] = np.asarray(lows, np.float64)
        self.highs: NDArray[np.float64] = np.asarray(highs, np.float64)

    def at(self, positions: NDArray[Any]) -> "_Tests":
        """The tests at these positions, or where the mask holds."""
        return _Tests(self.columns[positions], self.lows[positions], self.highs[positions])

    def then(self, other: "_Tests") -> "_Tests":
        """These tests, then the others."""
        return _Tests(
            np.concatenate([self.columns, other.columns]),
            np.concatenate([self.lows, other.lows]),
            np.concatenate([self.highs, other.highs]),
        )


class _ColumnBatch:
    """Rows to be merged into the arrays: their buckets, the end of each row's tests, and the tests.

    The tests of a row on complemented columns come last, and its first test is never one of them.
    """

    __slots__ = ("buckets", "columns", "highs", "lows", "stops")

    def __init__(self) -> None:
        self.buckets: list[int] = []
        self.stops = [0]
        self.columns: list[int] = []
        self.lows: list[float] = []
        self.highs: list[float] = []

    def test(self, column: int, low: float, high: float) -> None:
        """Append a test of the next row."""
        self.columns.append(column)
        self.lows.append(low)
        self.highs.append(high)

    def arrays(self) -> tuple[_Tests, NDArray[np.int64], _Tests]:
        """The heads, the number of other tests per row, and the other tests."""
        tests = _Tests(self.columns, self.lows, self.highs)
        if not self.buckets:
            return tests, np.zeros(0, np.int64), tests
        stops = np.array(self.stops, np.int64)
        first, lengths = stops[:-1], np.diff(stops)
        second = np.where(lengths > 1, first + 1, first)
        second = np.where(tests.columns[second] >= 0, second, first)
        others = np.ones(len(tests.columns), np.bool_)
        others[first] = others[second] = False
        return tests.at(np.stack([first, second], 1).ravel()), lengths - 1 - (second > first), tests.at(others)


def _is_label(item: Id) -> bool:
    return item.__class__ is int and abs(item) <= LARGEST_LABEL


def _floor(bound: float, is_open: bool) -> float:
    """The least double that a lower bound admits. Negated, it is the greatest that an upper bound admits."""
    if bound.__class__ is not float:
        double = _nearest(bound)
    else:
        double = bound
    return math.nextafter(double, math.inf) if double < bound or (is_open and double == bound) else double


def _nearest(bound: float) -> float:
    """A double next to the bound; 2**1024 and more are above the largest."""
    try:
        return float(bound)
    except OverflowError:
        return sys.float_info.max if bound > 0 else -math.inf
