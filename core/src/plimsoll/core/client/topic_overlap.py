"""Publications that two units of a subscriber are sent: the application gets each once.

A subscriber may ask for topics, which units of their own ask for, and for more, without a topic. What matches both
comes twice, in any order. Each unit's stream is in order, so one side is remembered until the other has passed it.
"""

from __future__ import annotations

from collections import OrderedDict

from plimsoll.core.client.stream import SubscriberStream
from plimsoll.core.protocol import messages as msg

Key = tuple[str, int, int]
REMEMBERED_AT_MOST = 65_536
"""Beyond this number the oldest is forgotten; it could be given twice if its other side is still behind it."""


class TopicOverlap:
    """What the application was given by one side, and the other may still be sent."""

    __slots__ = ("_given", "suppressed")

    def __init__(self) -> None:
        self._given: OrderedDict[Key, tuple[SubscriberStream, SubscriberStream, int]] = OrderedDict()
        self.suppressed = 0

    def __len__(self) -> int:
        return len(self._given)

    def is_new(self, item: msg.PubOpen, here: SubscriberStream, other: SubscriberStream) -> bool:
        """Whether the application has not had it from the other side; from now on it has."""
        key = item.head, item.epoch, item.offset
        known = self._given.get(key)
        if known is not None and known[0] is not here:
            del self._given[key]
            self.suppressed += 1
            return False
        if not _has_passed(other, here, item.position, key):
            self._given[key] = here, other, item.position
            self._forget()
        return True

    def _forget(self) -> None:
        """Forget from the front what the other side has passed."""
        while self._given:
            key, (here, other, position) = next(iter(self._given.items()))
            if len(self._given) <= REMEMBERED_AT_MOST and not _has_passed(other, here, position, key):
                return
            del self._given[key]


def _has_passed(stream: SubscriberStream, of: SubscriberStream, position: int, key: Key) -> bool:
    """Whether a stream will not bring this any more: by its place in the same log, or by its watermark."""
    if stream.origin is not None and stream.origin == of.origin:
        return stream.position >= position
    return stream.watermarks.get(key[:2], 0) >= key[2]
