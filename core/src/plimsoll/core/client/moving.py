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

from collections.abc import Iterable
from typing import TYPE_CHECKING

from plimsoll.core import records as r
from plimsoll.core.client.attachment import Attachment, Port, State

if TYPE_CHECKING:
    from plimsoll.core.client.machine import Client
    from plimsoll.core.client.subscriber import Subscriber

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


def target_of(attachment: Attachment) -> Handover | None:
    """The hand-over that this is the attachment at the target of."""
    handover = attachment.subscriber.handover
    return handover if handover is not None and handover.next is attachment else None


# -- records of the edge that serves


def on_move_to(client: Client, attachment: Attachment, move: r.MoveTo) -> None:
    """Attach at the target as well, if this is meant for the subscriber as it is now."""
    subscriber = attachment.subscriber
    if (
        not is_serving(attachment)
        or subscriber.handover is not None
        or move.epoch != subscriber.epoch
        or move.edge == attachment.port.edge
    ):
        client.counters["moves_passed_over"] += 1
        return
    handover = subscriber.handover = Handover(move)
    subscriber.begin_tally(move.session)
    port = client.port_to(move.edge, move.endpoint, move.public_key)
    handover.next = client.seeker.new_attachment(subscriber, port)
    if port.link.was_open:
        attach(client, handover.next, handover)


def on_stay(client: Client, attachment: Attachment, stay: r.Stay) -> None:
    subscriber = attachment.subscriber
    if is_serving(attachment) and subscriber.handover is not None and subscriber.handover.session == stay.session:
        leave(client, subscriber)
        subscriber.settle()


def on_end(client: Client, attachment: Attachment, end: r.End) -> None:
    """The last of this stream: it goes on at the target, or wherever the place in it is known."""
    subscriber = attachment.subscriber
    if not is_serving(attachment):
        client.counters["records_refused_misplaced"] += 1
        return
    subscriber.counts["moves"] += 1
    subscriber.number += 1
    subscriber.session = end.session
    subscriber.say_changes()
    client.say_detach(attachment)
    handover = subscriber.handover
    if handover is not None and handover.session != end.session:
        handover = None
    if handover is not None and handover.is_asked and handover.next is not None:
        subscriber.handover = None
        client.release(attachment)
        subscriber.take_over(handover.next, end.token)
        tally = subscriber.tally_of(end.session)
        counts = (tally.since, tally.marks) if tally is not None else (None, [])
        client.say(handover.next.port.link, r.Go(handover.next.id, end.session, *counts))
        subscriber.settle()
    else:
        subscriber.set_token(end.token)
        client.seeker.go_on(subscriber, handover)


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


def attach(client: Client, attachment: Attachment, handover: Handover) -> None:
    """Its link is open: give it the list."""
    subscriber = attachment.subscriber
    subscriber.say_changes()
    attachment.state, handover.is_asked = State.NEXT, True
    client.say(attachment.port.link, subscriber.attach_record(attachment, handover.session))


def on_held(client: Client, attachment: Attachment, held: r.Held) -> None:
    """The target has this version. After END it is late, and says nothing that SUBACK does not."""
    if (handover := target_of(attachment)) is not None:
        handover.holds(held.version)
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
