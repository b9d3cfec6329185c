"""Subscriptions by the range of numbers that one of their constraints spans, to compare few of them if ranges overlap.

Laws. A coverer of a constraint spans at least its range, a covered constraint at most. That is necessary, not
sufficient: the caller compares the candidates named here. Spans are kept in ascending order in blocks that know their
extremes, so that both queries skip most blocks. A constraint that is not on numbers has no span and is named whenever
its kind may matter.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

from plimsoll.core.predicates import Exactly, Interval, OneOf
from plimsoll.core.predicates.constraints import AnyConstraint, Present

T = TypeVar("T")
Span = tuple[float, float]
SpanKey = tuple[float, float, float]  # low, high, and the serial
BLOCK_LIMIT = 64


class SpanIndex(Generic[T]):
    """Items under one constraint each; `serial` distinguishes items.

    The extremes of a block are looked for again when it is split, and when its length has come down to a power of two:
    to look at each removal costs as much as the block is long, for each attribute of a subscription.
    """

    __slots__ = ("_blocks", "_firsts", "_greatest", "_least", "_others", "items")

    def __init__(self) -> None:
        self.items: dict[float, T] = {}  # by serial
        self._others: dict[int, T] = {}  # without a span
        self._blocks: list[list[SpanKey]] = []
        self._firsts: list[SpanKey] = []  # of each block
        self._least: list[float] = []  # of its highs
        self._greatest: list[float] = []

    def __len__(self) -> int:
        return len(self.items)

    def add(self, constraint: AnyConstraint, serial: int, item: T) -> None:
        self.items[serial] = item
        span = span_of(constraint)
        if span is None:
            self._others[serial] = item
            return
        key = (*span, serial)
        at = max(bisect_right(self._firsts, key) - 1, 0)
        if not self._blocks:
            self._place(0, 0, [[key]])
            return
        block = self._blocks[at]
        insort(block, key)
        if len(block) > BLOCK_LIMIT:
            self._place(at, at + 1, [block[: BLOCK_LIMIT // 2], block[BLOCK_LIMIT // 2 :]])
            return
        self._firsts[at] = block[0]
        high = span[1]
        if high < self._least[at]:
            self._least[at] = high
        if high > self._greatest[at]:
            self._greatest[at] = high

    def remove(self, constraint: AnyConstraint, serial: int) -> None:
        del self.items[serial]
        span = span_of(constraint)
        if span is None:
            del self._others[serial]
            return
        key = (*span, serial)
        at = bisect_right(self._firsts, key) - 1
        block = self._blocks[at]
        del block[bisect_left(block, key)]
        if len(block) & (len(block) - 1):
            self._firsts[at] = block[0]  # its extremes may be of a key that is gone: wider, so nothing is missed
        else:
            self._place(at, at + 1, [block] if block else [])

    def candidate_coverers(self, constraint: AnyConstraint) -> Iterator[T]:
        """All items whose constraint covers this one, and some others."""
        yield from self._others.values()
        span = span_of(constraint)
        if span is None:
            return  # an item with a span admits numbers only
        low, high = span
        end = (low, math.inf, math.inf)
        for at in range(bisect_right(self._firsts, end) - 1, -1, -1):  # the nearest first: they are the likeliest
            if self._greatest[at] >= high:
                block = self._blocks[at]
                for _, other, serial in block[: bisect_right(block, end)]:
                    if other >= high:
                        yield self.items[serial]

    def candidate_covered(self, constraint: AnyConstraint) -> Iterator[T]:
        """All items whose constraint this one covers, and some others."""
        span = span_of(constraint)
        if span is None:
            yield from (self.items if isinstance(constraint, Present) else self._others).values()
            return
        low, high = span
        begin = (low, -math.inf, -1)
        start = max(bisect_right(self._firsts, begin) - 1, 0)
        for at in range(start, bisect_right(self._firsts, (high, math.inf, math.inf))):
            if self._least[at] <= high:
                block = self._blocks[at]
                for _, other, serial in block[bisect_left(block, begin) :]:
                    if other <= high:
                        yield self.items[serial]

    def _place(self, start: int, stop: int, blocks: list[list[SpanKey]]) -> None:
        """Replace the blocks from `start` to `stop`."""
        self._blocks[start:stop] = blocks
        self._firsts[start:stop] = [block[0] for block in blocks]
        self._least[start:stop] = [min([high for _, high, _ in block]) for block in blocks]
        self._greatest[start:stop] = [max([high for _, high, _ in block]) for block in blocks]


def span_of(constraint: AnyConstraint) -> Span | None:
    """The infimum and supremum of the numbers that a constraint admits; None if it is not on numbers."""
    if constraint.__class__ is Interval:
        return constraint.low, constraint.high
    if constraint.kind != "number":
        return None
    if isinstance(constraint, Exactly):
        return _number(constraint.value), _number(constraint.value)
    if isinstance(constraint, OneOf):
        return _number(min(constraint.values)), _number(max(constraint.values))
    return None


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} stands among numbers")
    return value
