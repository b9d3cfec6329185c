"""Hand-over, as the subscriber sees it: a second attachment, at the target, that takes over where the first one ends.

Laws of the place (docs/handover.md):
- The edge that serves a subscriber decides for it: MOVE_TO begins, STAY and END end. Losing that edge ends it, too.
  Nothing that the target says does: without a target the subscriber is served as before, until END or STAY.
- A subscriber takes part in one hand-over at a time.
- Nothing is delivered by the target before GO, and GO is said at END: by then all from the edge before has been had.
- Once the target was asked, a change of subscriptions counts when the target has it, too: the cut may be behind us.
  It still is not enough if the target has gone meanwhile; then STAY, or the edge after END, says what counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.client.attachment import Attachment, Port, State
from plimsoll.core.wire import OwnerEpoch

if TYPE_CHECKING:
    from plimsoll.core.client.machine import Client
    from plimsoll.core.client.subscriber import Subscriber

Item = TypeVar("Item", r.AttachItem, r.GoItem)

PART_BYTES = 64 * 1024
"""What is said of several at once is cut at this size."""

UNWILLING = ("leaving", "full")
"""Codes of SHUT: to ask this edge again would be in vain."""


class Handover:
    """A session that a subscriber takes part in, from MOVE_TO to END or STAY.

    `next`: the attachment at the target, if there is one. `held`: the version of the list that the target has. `edge`
    and `endpoint`: of the target; the endpoint is empty once it is known to be of no use.
    """

    __slots__ = ("edge", "endpoint", "held", "is_asked", "next", "public_key", "session")

    def __init__(self, move: r.MoveTo) -> None:
        self.session = move.session
        self.edge, self.endpoint, self.public_key = move.edge, move.endpoint, move.public_key
        self.next: Attachment | None = None
        self.is_asked = False
        self.held = 0

    def counted(self, acked: int) -> int:
        """Up to which version changes count, if the edge that serves has acknowledged this one."""
        # What was changed before ATTACH is in its list, and there is no cut without ATTACH.
        return min(acked, self.held) if self.is_asked else acked

    def holds(self, version: int) -> None:
        self.held = max(self.held, version)


def in_parts(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Cut so that each part leaves room for others in a frame; an item that does not is a part of its own."""
    part: list[Item] = []
    weighs = 0
    for item in items:
        size = len(wire.encode(item))
        if part and weighs + size > PART_BYTES:
            yield part
            part, weighs = [], 0
        part.append(item)
        weighs += size
    if part:
        yield part


def target_of(attachment: Attachment) -> Handover | None:
    """The hand-over that this is the attachment at the target of."""
    handover = attachment.subscriber.handover
    return handover if handover is not None and handover.next is attachment else None


# -- records of the edge that serves


def on_move_to(client: Client, port: Port, move: r.MoveTo) -> None:
    """Attach at the target as well, whoever this is meant for as it is now."""
    epochs = {item.attachment: item.epoch for item in move.members}
    begun = [
        _begin(client, attachment.subscriber, move)
        for attachment in client.each(port, epochs)
        if _heeds(client, attachment, move, epochs[attachment.id])
    ]
    if begun and (target := begun[-1].port).link.was_open:
        attach(client, target, begun)


def _heeds(client: Client, attachment: Attachment, move: r.MoveTo, epoch: OwnerEpoch) -> bool:
    subscriber = attachment.subscriber
    is_free = is_serving(attachment) and subscriber.handover is None
    if is_free and epoch == subscriber.epoch and move.edge != attachment.port.edge:
        return True
    client.counters["moves_passed_over"] += 1
    return False


def _begin(client: Client, subscriber: Subscriber, move: r.MoveTo) -> Attachment:
    handover = subscriber.handover = Handover(move)
    subscriber.begin_tally(move.session)
    port = client.port_to(move.edge, move.endpoint, move.public_key)
    handover.next = client.seeker.new_attachment(subscriber, port)
    return handover.next


def on_stay(client: Client, attachment: Attachment, stay: r.Stay) -> None:
    subscriber = attachment.subscriber
    if is_serving(attachment) and subscriber.handover is not None and subscriber.handover.session == stay.session:
        leave(client, subscriber)
        subscriber.settle()


def on_end(client: Client, port: Port, end: r.End) -> None:
    """The last of these streams: they go on at the target, or wherever the place in them is known."""
    over: list[Attachment] = []
    ended: list[Attachment] = []
    for attachment in client.each(port, end.attachments):
        if not is_serving(attachment):
            client.counters["records_refused_misplaced"] += 1
            continue
        ended.append(attachment)
        _count_move(attachment.subscriber, end.session)
        if (taken := _take_over(client, attachment, end)) is not None:
            over.append(taken)
    client.say_detach(*ended)
    _go(client, over, end.session)


def _count_move(subscriber: Subscriber, session: str) -> None:
    subscriber.counts["moves"] += 1
    subscriber.number += 1
    subscriber.session = session
    subscriber.say_changes()


def _take_over(client: Client, attachment: Attachment, end: r.End) -> Attachment | None:
    """The attachment at the target that serves from here on; None: the subscriber resumes, there or elsewhere."""
    subscriber = attachment.subscriber
    handover = subscriber.handover
    if handover is not None and handover.session != end.session:
        handover = None
    if handover is not None and handover.is_asked and handover.next is not None:
        subscriber.handover = None
        client.release(attachment)
        subscriber.take_over(handover.next, end.token)
        return handover.next
    subscriber.set_token(end.token)
    client.seeker.go_on(subscriber, handover)
    return None


def _go(client: Client, over: list[Attachment], session: str) -> None:
    """Everything before the cut has been had: their targets deliver."""
    going: defaultdict[Port, list[r.GoItem]] = defaultdict(list)
    for attachment in over:
        tally = attachment.subscriber.tally_of(session)
        counts = (tally.since, tally.marks) if tally is not None else (None, [])
        going[attachment.port].append(r.GoItem(attachment.id, *counts))
    for port, items in going.items():
        for part in in_parts(items):
            client.say(port.link, r.Go(session, part))
    for attachment in over:
        attachment.subscriber.settle()


def on_count(client: Client, port: Port, count: r.Count) -> None:
    """What was due is known: say what came of it, of those of whom that can be said."""
    found = []
    for item in count.members:
        if (attachment := port.attachments.get(item.attachment)) is None:
            client.counters["records_for_nobody"] += 1
        elif (told := _counted(attachment, count.session, item.due)) is not None:
            found.append(told)
    if found:
        client.say(port.link, r.Counted(count.session, found))


def _counted(attachment: Attachment, session: str, due: Iterable[r.Due]) -> r.ToldItem | None:
    subscriber = attachment.subscriber
    tally = subscriber.tally_of(session) if is_serving(attachment) else None
    found = tally.against(due) if tally is not None else None
    again = subscriber.duplicates - subscriber.tallied_from
    subscriber.end_tally()
    return r.ToldItem(attachment.id, *found, again) if found is not None else None


def is_serving(attachment: Attachment) -> bool:
    return attachment is attachment.subscriber.current and attachment.state is State.LIVE


# -- the target


def attach(client: Client, port: Port, attachments: Iterable[Attachment]) -> None:
    """Its link is open: give it the lists of those whose target it is."""
    asked: defaultdict[str, list[r.AttachItem]] = defaultdict(list)
    for attachment in attachments:
        if (handover := target_of(attachment)) is not None:
            attachment.subscriber.say_changes()
            attachment.state, handover.is_asked = State.NEXT, True
            asked[handover.session].append(attachment.subscriber.attach_item(attachment))
    for session, items in asked.items():
        for part in in_parts(items):
            client.say(port.link, r.Attach(session, part))


def on_held(client: Client, port: Port, held: r.Held) -> None:
    """The target has these versions. After END it is late, and says nothing that SUBACK does not."""
    versions = {item.attachment: item.version for item in held.members}
    for attachment in client.each(port, versions):
        if (handover := target_of(attachment)) is not None:
            handover.holds(versions[attachment.id])
            attachment.subscriber.settle()


def lose(client: Client, attachment: Attachment, handover: Handover, *, willing: bool) -> None:
    """The target does not have this subscriber any more. `willing`: it may be asked again at END."""
    client.release(attachment)
    handover.next = None
    if not willing:
        handover.endpoint = ""


def leave(client: Client, subscriber: Subscriber, *, withdraw: bool = False) -> None:
    """This subscriber takes part in no hand-over any more, and has nothing to say of the last one."""
    subscriber.end_tally()
    handover, subscriber.handover = subscriber.handover, None
    if handover is not None and handover.next is not None:
        client.say_detach(handover.next, withdraw=withdraw)
        client.release(handover.next)
