"""The resume position of an application: in front of the first item that it has not handled.

The machine knows the position of the stream. Items between the two, in a queue or in a callback, are subtracted here,
so that a later life gets them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plimsoll.core.client import ClientSubscriber, Delivery, GapNotice
from plimsoll.core.client.events import Item
from plimsoll.core.protocol.wire import Token

CONSUMED_BATCH = 64
"""Handled items are reported to the machine in batches of this size, or when the queue is empty."""


def unprocessed_items(inner: ClientSubscriber, queued: Iterable[Item]) -> list[Item]:
    """Items that the application has not handled: those queued here, then those that the machine still holds."""
    return [*queued, *stream_items(inner.events)]


def stream_items(events: Iterable[object]) -> list[Item]:
    """The events that have a place in the stream: deliveries and gaps."""
    return [event for event in events if type(event) is Delivery or type(event) is GapNotice]


def resume_token(inner: ClientSubscriber, items: Sequence[Item]) -> Token | None:
    """The token to resume from; once all is handled, that of the machine, since an idle stream advances, too."""
    if not items:
        return inner.token
    first = items[0]
    if isinstance(first, Delivery):
        return (*first.stream, first.position - 1)
    return first.head, first.low_epoch, max(0, first.low - 1)


def resume_watermarks(inner: ClientSubscriber, items: Iterable[Item]) -> list[Token]:
    """The watermarks without these items. Per origin, all below the first of them has been handled."""
    marks = {(head, epoch): offset for head, epoch, offset in inner.stream.marks()}
    for item in items:
        last = [item.origin] if isinstance(item, Delivery) else item.last
        for head, epoch, offset in last:
            marks[head, epoch] = min(offset - 1, marks.get((head, epoch), offset))
    return [(head, epoch, offset) for (head, epoch), offset in marks.items() if offset > 0]
