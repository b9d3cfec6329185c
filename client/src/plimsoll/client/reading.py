"""Where an application stands: in front of the first item that it has not dealt with.

The machine knows where the stream has arrived. What lies between, in a queue or in a callback, is taken back here, so
that a later life gets it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plimsoll.core.client import Delivery, GapNotice, Subscriber
from plimsoll.core.client.events import Item
from plimsoll.core.wire import Token

TELL_EVERY = 64
"""The machine is told of items that were dealt with in batches of this size, or when the queue is empty."""


def undealt(inner: Subscriber, queued: Iterable[Item]) -> list[Item]:
    """What the application has not dealt with: what is queued here, then what the machine still holds."""
    return [*queued, *items_of(inner.events)]


def items_of(events: Iterable[object]) -> list[Item]:
    """What stands in the stream: deliveries and gaps."""
    return [event for event in events if type(event) is Delivery or type(event) is GapNotice]


def token_of(inner: Subscriber, items: Sequence[Item]) -> Token | None:
    """Where to go on from; once all is dealt with, where the machine stands: an idle stream moves on, too."""
    if not items:
        return inner.token
    first = items[0]
    if isinstance(first, Delivery):
        return (*first.stream, first.position - 1)
    return first.head, first.low_epoch, max(0, first.low - 1)


def marks_of(inner: Subscriber, items: Iterable[Item]) -> list[Token]:
    """The watermarks without these items. Per origin, all below the first of them has been dealt with."""
    marks = {(head, epoch): offset for head, epoch, offset in inner.marks()}
    for item in items:
        last = [item.origin] if isinstance(item, Delivery) else item.last
        for head, epoch, offset in last:
            marks[head, epoch] = min(offset - 1, marks.get((head, epoch), offset))
    return [(head, epoch, offset) for (head, epoch), offset in marks.items() if offset > 0]
