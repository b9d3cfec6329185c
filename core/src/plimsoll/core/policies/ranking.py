"""Which of many candidates is best, without looking at all of them again after each choice.

Few are all looked at each time. Of many, each keeps what it was worth when last looked at, and only the first is looked
at again, until one is still the first: a choice changes little for most, and usually makes the others worth less.
What becomes worth more is told of by `again`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from plimsoll.core.policies.profile import Row

FEW = 64
Order = tuple[float, float, float, int, str]
"""Smaller is better; the last part is the key, so that no two are equal."""

Found = TypeVar("Found")


class Ranking(Generic[Found]):
    """`look` says what a row is worth and what was found; None if it is not to be chosen."""

    def __init__(self, look: Callable[[Row], tuple[Order, Found] | None]) -> None:
        self._look = look
        self._heap: list[Order] = []
        self._worth: dict[str, Order | None] = {}

    def again(self, keys: Iterable[str]) -> None:
        """These may be worth more now."""
        for key in keys:
            self._worth.pop(key, None)

    def best(self, rows: Mapping[str, Row]) -> Found | None:
        """The best of these rows; None if none is to be chosen."""
        if len(rows) <= FEW:
            looks = (self._look(row) for row in rows.values())
            return min((each for each in looks if each is not None), key=lambda each: each[0], default=(None, None))[1]
        for key in [key for key in rows if key not in self._worth]:
            self._push(rows[key])
        seen: set[str] = set()
        while self._heap:
            order = heapq.heappop(self._heap)
            key = order[-1]
            if key not in rows or self._worth.get(key) != order:
                continue
            found = self._push(rows[key])
            if found is not None and (key in seen or found[0] <= order):
                return found[1]
            seen.add(key)
        return None

    def _push(self, row: Row) -> tuple[Order, Found] | None:
        found = self._look(row)
        self._worth[row.key] = found[0] if found is not None else None
        if found is not None:
            heapq.heappush(self._heap, found[0])
        return found
