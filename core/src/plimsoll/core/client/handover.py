"""Hand-over, as the subscriber sees it: a second attachment, at the target, that takes over where the first one ends.

Rules of the place (docs/handover.md, 3):
- The edge that serves a subscriber decides for it: MOVE_TO begins, STAY and END end. Losing that edge ends it, too.
  Nothing from the target does: without a target the subscriber is served as before, until END or STAY.
- A subscriber takes part in one hand-over at a time.
- The target delivers nothing before GO, and GO is sent at END: by then everything from the first edge has arrived.
- Once the target was sent ATTACH, a change of subscriptions counts only when the target has it, too: the cut may have
  happened already. If the target is lost meanwhile, STAY, or the edge after END, decides what counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from plimsoll.core.client.attachment import ClientAttachmentState, ClientHandover
from plimsoll.core.client.delivery_tally import PublisherTally
from plimsoll.core.client.edge_finder import EdgeFinder
from plimsoll.core.client.edge_ports import EdgePorts
from plimsoll.core.client.subscriber import Attachment, ClientSubscriber, Handover, Port
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import OwnerEpoch
from plimsoll.core.transport.link import Link

BatchItem = TypeVar("BatchItem", msg.AttachItem, msg.GoItem)

PART_BYTES = 64 * 1024
"""Records about several subscribers are split at this size."""

FINAL_CODES = ("leaving", "full")
"""Codes of ATTACHMENT_CLOSED after which asking this edge again is useless."""


def in_parts(items: Iterable[BatchItem]) -> Iterator[list[BatchItem]]:
    """Split so that each part leaves room for other records in a frame; a larger item is a part of its own."""
    part: list[BatchItem] = []
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
    """The hand-over whose target this attachment is at, if any."""
    handover = attachment.subscriber.handover
    return handover if handover is not None and handover.next is attachment else None


def is_serving(attachment: Attachment) -> bool:
    return attachment is attachment.subscriber.current and attachment.state is ClientAttachmentState.LIVE


class HandoverHost(Protocol):
    """The hand-overs' interface to the client."""

    counters: Counter[str]

    def say(self, link: Link, record: msg.FromClient) -> None: ...


class ClientHandovers:
    """The hand-overs of all subscribers of a client."""

    def __init__(self, client: HandoverHost, ports: EdgePorts, finder: EdgeFinder) -> None:
        self._client, self._ports, self._finder = client, ports, finder

    # -- records of the edge that serves

    def on_move_to(self, port: Port, move: msg.MoveTo) -> None:
        """Attach at the target as well, those members whose owner epoch is still the one that MOVE_TO names."""
        epochs = {item.attachment: item.epoch for item in move.members}
        begun = [
            self._begin(attachment.subscriber, move)
            for attachment in self._ports.attachments(port, epochs)
            if self._accepts(attachment, move, epochs[attachment.id])
        ]
        if begun and (target := begun[-1].port).link.was_open:
            self.attach(target, begun)

    def _accepts(self, attachment: Attachment, move: msg.MoveTo, epoch: OwnerEpoch) -> bool:
        subscriber = attachment.subscriber
        is_free = is_serving(attachment) and subscriber.handover is None
        # An older epoch is from before a RESUME, which has voided that session: docs/handover.md, 7, Members.
        if is_free and epoch == subscriber.epoch and move.edge != attachment.port.edge:
            return True
        self._client.counters["moves_passed_over"] += 1
        return False

    def _begin(self, subscriber: ClientSubscriber, move: msg.MoveTo) -> Attachment:
        handover = subscriber.handover = ClientHandover(move)
        begin_tally(subscriber, move.session)
        port = self._ports.open(move.edge, move.endpoint, move.public_key)
        handover.next = self._finder.new_attachment(subscriber, port)
        return handover.next

    def on_stay(self, attachment: Attachment, stay: msg.Stay) -> None:
        subscriber = attachment.subscriber
        if is_serving(attachment) and subscriber.handover is not None and subscriber.handover.session == stay.session:
            self.leave(subscriber)
            subscriber.subscription_list.report_counting()

    def on_end(self, port: Port, end: msg.End) -> None:
        """The end of these streams: they go on at the target, or at another edge from their token."""
        over: list[Attachment] = []
        ended: list[Attachment] = []
        for attachment in self._ports.attachments(port, end.attachments):
            if not is_serving(attachment):
                self._client.counters["records_refused_misplaced"] += 1
                continue
            ended.append(attachment)
            # Before the target takes over: this round's changes must go to both edges (docs/handover.md, 3).
            self._count_move(attachment.subscriber, end.session)
            if (taken := self._take_over(attachment, end)) is not None:
                over.append(taken)
        self._ports.say_detach(*ended)
        self._go(over, end.session)

    def _count_move(self, subscriber: ClientSubscriber, session: str) -> None:
        subscriber.counts["moves"] += 1
        # The epoch that ATTACH announced and the cut has set: docs/handover.md, 6, I4.
        subscriber.number += 1
        subscriber.session = session
        subscriber.subscription_list.send_changes()

    def _take_over(self, attachment: Attachment, end: msg.End) -> Attachment | None:
        """The attachment at the target that serves from here on; None: the subscriber resumes, there or elsewhere."""
        subscriber = attachment.subscriber
        handover = subscriber.handover
        if handover is not None and handover.session != end.session:
            handover = None
        if handover is not None and handover.is_asked and handover.next is not None:
            subscriber.handover = None
            self._ports.release(attachment)
            subscriber.take_over(handover.next, end.token)
            return handover.next
        subscriber.stream.set_token(end.token)
        self._finder.go_on(subscriber, handover)
        return None

    def _go(self, over: list[Attachment], session: str) -> None:
        """Let the targets deliver: END was the last of the source, so all up to the cut has arrived."""
        going: defaultdict[Port, list[msg.GoItem]] = defaultdict(list)
        for attachment in over:
            subscriber = attachment.subscriber
            tally = subscriber.stream.tally_of(session, subscriber.subscription_list.version)
            counts = (tally.since, tally.marks) if tally is not None else (None, [])
            going[attachment.port].append(msg.GoItem(attachment.id, *counts))
        for port, items in going.items():
            for part in in_parts(items):
                self._client.say(port.link, msg.Go(session, part))
        for attachment in over:
            attachment.subscriber.subscription_list.report_counting()

    def on_count_publishers(self, port: Port, asked: msg.CountPublishers) -> None:
        """Publishers that move are to be counted: say from where on, for those subscribers that can."""
        going = []
        for attachment in self._ports.attachments(port, asked.attachments):
            tally = begin_publisher_tally(attachment.subscriber, asked) if is_serving(attachment) else None
            if tally is not None:
                going.append(msg.GoItem(attachment.id, tally.since, tally.marks))
        for part in in_parts(going):
            self._client.say(port.link, msg.CountsFrom(asked.session, part))

    def on_count(self, port: Port, count: msg.AuditQuery) -> None:
        """The edge sends what was due: answer with the outcome, for members that were counted to the end."""
        found = []
        for item in count.members:
            if (attachment := port.attachments.get(item.attachment)) is None:
                self._client.counters["records_for_unknown_attachments"] += 1
            elif (reply := self._counted(attachment, count.session, item.due)) is not None:
                found.append(reply)
        if found:
            self._client.say(port.link, msg.AuditReply(count.session, found))

    def _counted(
        self, attachment: Attachment, session: str, due: Iterable[msg.ExpectedCount]
    ) -> msg.AuditReplyItem | None:
        subscriber = attachment.subscriber
        stream = subscriber.stream
        tally = stream.tally_of(session, subscriber.subscription_list.version) if is_serving(attachment) else None
        found = tally.against(due) if tally is not None else None
        if session in stream.publisher_tallies:
            again = stream.publisher_tallies[session].suppressed
            stream.end_publisher_tally(session)
        else:
            again = stream.duplicates - stream.tallied_from
            stream.end_tally(session)
        return msg.AuditReplyItem(attachment.id, *found, again) if found is not None else None

    # -- the target

    def attach(self, port: Port, attachments: Iterable[Attachment]) -> None:
        """The link to the target is open: send it the lists of the subscribers that are to come to it."""
        asked: defaultdict[str, list[msg.AttachItem]] = defaultdict(list)
        for attachment in attachments:
            if (handover := target_of(attachment)) is not None:
                attachment.subscriber.subscription_list.send_changes()
                attachment.state, handover.is_asked = ClientAttachmentState.NEXT, True
                asked[handover.session].append(attachment.subscriber.attach_item(attachment))
        for session, items in asked.items():
            for part in in_parts(items):
                self._client.say(port.link, msg.Attach(session, part))

    def on_held(self, port: Port, held: msg.Held) -> None:
        """The target has these versions. After END it is too late to matter: SUBACK says the same."""
        versions = {item.attachment: item.version for item in held.members}
        for attachment in self._ports.attachments(port, versions):
            if (handover := target_of(attachment)) is not None:
                handover.holds(versions[attachment.id])
                attachment.subscriber.subscription_list.report_counting()

    def lose(self, attachment: Attachment, handover: Handover, *, willing: bool) -> None:
        """The target no longer has this subscriber. `willing`: it may be asked again at END."""
        self._ports.release(attachment)
        handover.next = None
        if not willing:
            handover.endpoint = ""

    def leave(self, subscriber: ClientSubscriber, *, withdraw: bool = False) -> None:
        """End this subscriber's part in a hand-over; what was counted in it is dropped."""
        subscriber.stream.end_tally()
        handover, subscriber.handover = subscriber.handover, None
        if handover is not None and handover.next is not None:
            self._ports.say_detach(handover.next, withdraw=withdraw)
            self._ports.release(handover.next)


def begin_tally(subscriber: ClientSubscriber, session: str) -> None:
    """Count from here on what the application is given, if it can be said what is due: with a list that counts."""
    changes = subscriber.subscription_list
    subscriber.stream.begin_tally(session, changes.version if changes.is_acknowledged else None)


def begin_publisher_tally(subscriber: ClientSubscriber, asked: msg.CountPublishers) -> PublisherTally | None:
    """The same for publishers that move, of which heads anywhere in the fleet accept publications."""
    current, changes = subscriber.current, subscriber.subscription_list
    is_everywhere = current is not None and current.acked >= changes.version and not current.unreached
    if not is_everywhere or not changes.is_acknowledged:
        return None
    return subscriber.stream.begin_publisher_tally(asked, changes.version)
