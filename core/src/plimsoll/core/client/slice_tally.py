"""Counts what an application has finished of a slice, independently of the code that gives it items.

Rules of the place:
- It sees items once the application has finished them, after all decisions, and calls none of the code that decides.
- It counts from the watermarks of the assignment, which are the head's, for as long as the slice is here. The head
  compares what two members have counted across a move with what its log has for the slice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.origins import Origin
from plimsoll.core.protocol.wire import Token

REMEMBERED: Final = 64
"""Offsets of an origin that are remembered. An older one that comes again counts as reordered, which is a fault too."""


class _SeenOffsets:
    """Of one origin. `begin`: of the assignment."""

    __slots__ = ("begin", "highest", "recent")

    def __init__(self, begin: int) -> None:
        self.begin = self.highest = begin
        self.recent: deque[int] = deque(maxlen=REMEMBERED)


class SliceTally:
    """`items`: finished for the first time here. `duplicated`: had before, here or by an earlier member."""

    __slots__ = ("_begin", "_seen", "duplicated", "items", "reordered")

    def __init__(self, marks: Iterable[Token]) -> None:
        self.items = self.duplicated = self.reordered = 0
        self._begin: dict[Origin, int] = {(head, epoch): offset for head, epoch, offset in marks}
        self._seen: dict[Origin, _SeenOffsets] = {}

    def saw(self, pub: msg.PubOpen) -> None:
        """The application has finished this publication."""
        origin, offset = (pub.head, pub.epoch), pub.offset
        seen = self._seen.get(origin)
        if seen is None:
            seen = self._seen[origin] = _SeenOffsets(self._begin.get(origin, 0))
        if offset > seen.highest:  # as nearly all are: neither had before nor late
            seen.highest = offset
        elif offset <= seen.begin or offset in seen.recent:
            self.duplicated += 1
            return
        else:
            self.reordered += bool(seen.recent) and offset < seen.recent[-1]
        self.items += 1
        seen.recent.append(offset)

    def count(self) -> msg.SliceCount:
        """As it stands now."""
        return msg.SliceCount(self.items, self.duplicated, self.reordered)
