"""How far the application has read: token and watermarks behind what it was given, not behind what has arrived."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from plimsoll.core.client import Delivery, Subscriber
from plimsoll.core.client.events import Item
from plimsoll.core.wire import Token

TELL_EVERY: Final = 64
"""The machine is told of items in batches of this size, or when the queue is empty."""


class Reading:
    """Where one application stands in its queue."""

    __slots__ = ("_marks", "_token", "_untold")

    def __init__(self, token: Token | None, marks: Iterable[Token]) -> None:
        self._token = token
        self._marks = {(head, epoch): offset for head, epoch, offset in marks}
        self._untold = 0

    def read(self, item: Item, more: bool) -> bool:
        """The application has this item; whether the machine should be told now."""
        self._untold += 1
        self._token = item.token
        if type(item) is Delivery:
            pub = item.pub
            self._marks[pub.head, pub.epoch] = pub.offset
        else:
            self._raise(item.gap.last)  # type: ignore[union-attr]
        return not more or self._untold >= TELL_EVERY

    def _raise(self, last: Iterable[Token]) -> None:
        for head, epoch, offset in last:
            self._marks[head, epoch] = max(offset, self._marks.get((head, epoch), 0))

    def read_all(self, items: list[Item]) -> None:
        for item in items:
            self.read(item, True)

    def tell(self, inner: Subscriber) -> None:
        inner.consumed(self._untold)
        self._untold = 0

    def token(self, inner: Subscriber) -> Token | None:
        """What was read last, or, once all is read, where the machine stands: an idle stream moves on, too."""
        return inner.token if inner.depth <= self._untold else self._token

    def marks(self, inner: Subscriber) -> list[Token]:
        if inner.depth <= self._untold:
            return inner.marks()
        return [(head, epoch, offset) for (head, epoch), offset in self._marks.items()]
