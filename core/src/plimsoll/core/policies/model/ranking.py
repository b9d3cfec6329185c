"""The best of many candidates, without evaluating all of them again after each choice.

A few candidates are all evaluated each time. Of many, each keeps its last known worth, and only the first is evaluated
again, until one remains first: a choice changes little for most, and usually makes the others worth less. Candidates
that become worth more are named to `invalidate`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from plimsoll.core.policies.model.profile import ProfileRow

FULL_SCAN_AT_MOST = 64
RankKey = tuple[float, float, float, int, str]
"""Smaller is better; the last part is the key, so that no two are equal."""

RankedCandidate = TypeVar("RankedCandidate")


class RowRanking(Generic[RankedCandidate]):
    """`look` evaluates a row: its rank and the candidate, or None if the row must not be chosen."""

    def __init__(self, look: Callable[[ProfileRow], tuple[RankKey, RankedCandidate] | None]) -> None:
        self._evaluate = look
        self._heap: list[RankKey] = []
        self._worth: dict[str, RankKey | None] = {}

    def invalidate(self, keys: Iterable[str]) -> None:
        """Evaluate these again: they may be worth more now."""
        for key in keys:
            self._worth.pop(key, None)

    def best(self, rows: Mapping[str, ProfileRow]) -> RankedCandidate | None:
        """The best of these rows; None if none may be chosen."""
        if len(rows) <= FULL_SCAN_AT_MOST:
            looks = (self._evaluate(row) for row in rows.values())
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

    def _push(self, row: ProfileRow) -> tuple[RankKey, RankedCandidate] | None:
        found = self._evaluate(row)
        self._worth[row.key] = found[0] if found is not None else None
        if found is not None:
            heapq.heappush(self._heap, found[0])
        return found
