"""Which position a log had at which time, for subscribers that want what came since; finer for what is recent."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

MARKS_AT_MOST: Final = 2048
FINENESS: Final = 100
"""Two marks of an age are at least this part of it apart: 90 days take some 1,200 marks."""
MARK_SECONDS: Final = 1.0
"""Between two marks of a log that grows."""


class TimeIndex:
    """Pairs of a time, in seconds since 1970, and the position at which the log ended then.

    When there are too many, those go that are closer to the next one than a hundredth of their age.
    """

    def __init__(self, marks: Iterable[tuple[float, int]] = ()) -> None:
        self.marks: list[tuple[float, int]] = list(marks)

    def is_due(self, at: float, position: int) -> bool:
        """Whether a mark here says something new."""
        if not self.marks:
            return True
        last_at, last = self.marks[-1]
        return position > last and at - last_at >= MARK_SECONDS

    def note(self, at: float, position: int) -> None:
        """Add a mark. A clock that was set back moves none of the earlier ones: the mark counts as of the last time."""
        if self.marks:
            at = max(at, self.marks[-1][0])
        self.marks.append((at, position))
        if len(self.marks) > MARKS_AT_MOST:
            self._thin_out(at)

    def _thin_out(self, now: float) -> None:
        kept = [self.marks[-1]]
        for mark in reversed(self.marks[:-1]):
            if kept[-1][0] - mark[0] >= (now - mark[0]) / FINENESS:
                kept.append(mark)
        self.marks = kept[::-1][-MARKS_AT_MOST:]

    def position_at(self, at: float) -> int:
        """A position behind which the log has all that came since this time, and as little more as is known; at least
        0."""
        i = bisect_right(self.marks, at, key=lambda mark: mark[0])
        return self.marks[i - 1][1] if i else 0

    def evicted(self, first: int) -> None:
        """The log has nothing before this position any more: of the marks before it only the last says anything."""
        i = bisect_right(self.marks, first, key=lambda mark: mark[1])
        if i > 1:
            del self.marks[: i - 1]
