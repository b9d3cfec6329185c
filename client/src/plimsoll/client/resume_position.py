"""The resume position of an application: in front of the first item that it has not handled.

The machine knows the position of the stream. Items between the two, in a queue or in a callback, are subtracted here,
so that a later life gets them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plimsoll.core.client import ClientSubscriber, Delivery, GapNotice
from plimsoll.core.client.events import Item
from plimsoll.core.client.subscriber import UnitMark
from plimsoll.core.protocol.topic_units import hash_of_unit
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
    if inner.topics is None:
        return _in_front_of(items[0])
    # Units advance each at its own pace: the first item of one may lie behind what another has still to get.
    token = inner.token
    for item in items:
        other = _in_front_of(item)
        if token is None or (other[:2] == token[:2] and other[2] < token[2]):
            token = other
    return token


def _in_front_of(item: Item) -> Token:
    if isinstance(item, Delivery):
        return (*item.stream, item.position - 1)
    return item.head, item.low_epoch, max(0, item.low - 1)


def resume_watermarks(inner: ClientSubscriber, items: Iterable[Item]) -> list[Token | UnitMark]:
    """The watermarks without these items, then those of units.

    Per origin and unit, all below the first item has been handled. It is not known which unit a gap is of, so a gap
    counts for all of them.
    """
    marks: dict[tuple[str, int, int | None], int] = {
        (head, epoch, None): offset for head, epoch, offset in inner.stream.marks()
    }
    if inner.topics is not None:
        marks |= {(head, epoch, topic): offset for head, epoch, offset, topic in inner.topics.marks()}
    for item in items:
        for head, epoch, offset in [item.origin] if isinstance(item, Delivery) else item.last:
            for key in [key for key in marks if key[:2] == (head, epoch) and _concerns(inner, item, key[2])]:
                marks[key] = min(offset - 1, marks[key])
    known = [(key, offset) for key, offset in marks.items() if offset > 0]
    whole: list[Token | UnitMark] = [(head, epoch, offset) for (head, epoch, topic), offset in known if topic is None]
    return whole + [(head, epoch, offset, topic) for (head, epoch, topic), offset in known if topic is not None]


def _concerns(inner: ClientSubscriber, item: Item, topic: int | None) -> bool:
    """Whether an item may be of the stream of a unit, by the hash of its topics, or of the rest (None)."""
    if inner.topics is None or not isinstance(item, Delivery):
        return True
    unit = inner.topics.unit_of(item)
    return topic is None or (unit is not None and hash_of_unit(unit.name) == topic)
