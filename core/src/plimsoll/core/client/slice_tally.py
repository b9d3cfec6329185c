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


class SliceTally:
    """`items`: finished for the first time here. `duplicated`: had before, here or by an earlier member."""

    __slots__ = ("_begin", "_highest", "_recent", "duplicated", "items", "reordered")

    def __init__(self, marks: Iterable[Token]) -> None:
        self.items = self.duplicated = self.reordered = 0
        self._begin: dict[Origin, int] = {(head, epoch): offset for head, epoch, offset in marks}
        self._recent: dict[Origin, deque[int]] = {}
        self._highest = dict(self._begin)

    def saw(self, pub: msg.PubOpen) -> None:
        """The application has finished this publication."""
        origin, offset = (pub.head, pub.epoch), pub.offset
        recent = self._recent.get(origin)
        if recent is None:
            recent = self._recent[origin] = deque(maxlen=REMEMBERED)
        if offset > self._highest.get(origin, 0):  # as nearly all are: neither had before nor late
            self._highest[origin] = offset
            self.items += 1
            recent.append(offset)
            return
        if offset <= self._begin.get(origin, 0) or offset in recent:
            self.duplicated += 1
            return
        self.reordered += bool(recent) and offset < recent[-1]
        self.items += 1
        recent.append(offset)

    def count(self) -> msg.SliceCount:
        """As it stands now."""
        return msg.SliceCount(self.items, self.duplicated, self.reordered)
