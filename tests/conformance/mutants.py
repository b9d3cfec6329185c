"""Deliberately wrong clients: for each scenario one that it must catch. Each is our own client with one rule broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from plimsoll.core.client import (
    assigned_slices,
    delivery_tally,
    edge_finder,
    edge_ports,
    edge_records,
    group_member,
    handover,
    home,
    machine,
    publication_buffer,
    publisher,
    publisher_moves,
    slice_subscriber,
    subscription_changes,
    subscription_list,
)
from plimsoll.core.client import stream as streams
from plimsoll.core.client import subscriber as subscribers
from plimsoll.core.client.attachment import ClientAttachmentState, ClientHandover
from plimsoll.core.client.events import Acknowledged, Answered
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport import flusher, handshakes, link, link_handshake

Patch = pytest.MonkeyPatch
Wrapped = Callable[..., Any]


@dataclass(frozen=True)
class Mutant:
    """`broken`: what it does wrong; `apply` changes the client."""

    scenario: str
    broken: str
    apply: Callable[[Patch], None]


def around(owner: Any, name: str, change: Callable[..., Any]) -> Callable[[Patch], None]:
    """Put `change(original, *arguments)` in the place of a method."""

    def apply(patch: Patch) -> None:
        original = getattr(owner, name)
        patch.setattr(owner, name, lambda *given, **named: change(original, *given, **named))

    return apply


def both(*changes: Callable[[Patch], None]) -> Callable[[Patch], None]:
    def apply(patch: Patch) -> None:
        for change in changes:
            change(patch)

    return apply


def nothing(_: Wrapped, *__: Any, **___: Any) -> None:
    """In the place of a method: do nothing."""


# -- links

_GREETED: dict[int, Any] = {}
"""Links that have said HELLO; they are kept, so that no other link gets the id of one."""


def _hello_once(original: Wrapped, self: Any, now: float) -> Any:
    # WHO of a client says nothing to a broker: it stands for a frame that is not sent
    again = id(self) in _GREETED
    _GREETED[id(self)] = self
    frame = original(self, now)
    return wire.who_frame() if again and not self.was_open else frame


def _takes_any_number(original: Wrapped, self: Any, frame: Any, size: int, now: float) -> Any:
    self.expected = max(self.expected, frame.seq)
    return original(self, frame, size, now)


def _takes_repeated(original: Wrapped, self: Any, frame: Any, size: int, now: float) -> Any:
    expected = self.expected
    self.expected = min(expected, frame.seq)
    fits = original(self, frame, size, now)
    self.expected = max(self.expected, expected)
    return fits


def _forgets_watermark(original: Wrapped, self: Any, attachment: Any, item: Any, size: int, now: float) -> None:
    if hasattr(item, "offset"):
        self.watermarks.pop((item.head, item.epoch), None)
    original(self, attachment, item, size, now)


def _denies_the_link(_: Wrapped, self: Any, now: float) -> bytes:
    self.open = False
    return wire.hello_frame(self.id, self.expected - 1, False, self.local)


def _reports_one_more(_: Wrapped, self: Any, now: float) -> bytes:
    self.open = False
    return wire.hello_frame(self.id, self.expected - (0 if self.was_open else 1), self.was_open, self.local)


def _same_number(original: Wrapped, self: Any, link_id: int) -> None:
    original(self, getattr(self, "id", 0) or link_id)


def _starts_over(_: Wrapped, self: Any, one: Any) -> None:
    self.on_dead(one)


def _who_is_the_end(original: Wrapped, self: Any, peer: Any, frame: Any) -> None:
    if isinstance(frame, wire.Who) and peer in self.links:
        self.on_dead(self.links[peer])
    else:
        original(self, peer, frame)


def _no_unknown_record(_: Wrapped, raw: Any, error: Exception, counters: Any) -> None:
    raise wire.WireError("malformed", "a record that is not known")


def _more_credit(original: Wrapped, self: Any, ack: int, credit: int, now: float) -> bool:
    return bool(original(self, ack, credit + 100, now))


LINKS = [
    Mutant("hello-repeated", "says HELLO once", around(link_handshake, "say_hello", _hello_once)),
    Mutant("frame-lost", "takes a frame whose number is too high", around(link.Link, "accept", _takes_any_number)),
    Mutant(
        "frame-repeated", "takes frames again, and has no watermarks",
        both(
            around(link.Link, "accept", _takes_repeated), around(streams.SubscriberStream, "take", _forgets_watermark)
        ),
    ),
    Mutant("request-lost", "sends nothing again", around(link_handshake, "_again", lambda original, one: [])),
    Mutant("connection-broken", "says that the link is new", around(link_handshake, "say_hello", _denies_the_link)),
    Mutant("delivery-lost", "reports a frame that it has not had",
           around(link_handshake, "say_hello", _reports_one_more)),
    Mutant("link-lost", "uses the number of a link that is over", around(link.Link, "start", _same_number)),
    Mutant("link-ended", "keeps the attachments of a link that is over",
           around(machine.Client, "on_attachment_lost", nothing)),
    Mutant("edge-silent", "waits for a silent edge for ever", around(link.Link, "dead", lambda *_: False)),
    Mutant("acknowledgements-late", "takes a late answer for a lost link",
           around(handshakes.Handshakes, "resync", _starts_over)),
    Mutant("acknowledged", "acknowledges nothing by itself", around(flusher.Flusher, "acknowledge", nothing)),
    Mutant("later-protocol", "gives up at a record that it does not know",
           around(edge_records, "pass_over", _no_unknown_record)),
]  # fmt: skip

# -- publishing


def _skips_a_number(_: Wrapped, self: Any, sent: Any) -> None:
    number = sent.number - self.buffer.base + 1
    home = self._client.home_link
    self._client.say(home, msg.Publish(self.handle, number, 0, 0, msgspec.Raw(sent.body)))


def _above_through(original: Wrapped, self: Any) -> None:
    self._through += 1000
    original(self)


def _takes_refusals_for_acceptance(_: Wrapped, self: Any, refused: Any) -> None:
    self._answer([refused.seq], "accepted")


def _takes_refusals_for_final(_: Wrapped, self: Any, refused: Any) -> None:
    self._answer([refused.seq], "refused")


def _no_unconfirmed(original: Wrapped, self: Any, answer: Any) -> None:
    if not isinstance(answer, msg.Unconfirmed):
        original(self, answer)


def _sends_all_again(original: Wrapped, self: Any, opened: Any) -> None:
    original(self, msgspec.structs.replace(opened, last_seq=0))


def _any_epoch(original: Wrapped, self: Any, opened: Any) -> None:
    self._session = (opened.head, opened.epoch)
    answered = self.buffer.last_sent - len(self.buffer.sent)
    original(self, msgspec.structs.replace(opened, last_seq=max(opened.last_seq, answered)))


OWN_PUBLISHER = publisher.ClientPublisher
PUBLISHING = [
    Mutant("publish", "begins with number 2", around(OWN_PUBLISHER, "_say", _skips_a_number)),
    Mutant("publisher-credit", "uses numbers above `through`", around(OWN_PUBLISHER, "go_on", _above_through)),
    Mutant("link-credit", "sends above the credit", around(link.Link, "acknowledged", _more_credit)),
    Mutant("publication-refused", "takes a refusal for an acceptance",
           around(OWN_PUBLISHER, "_on_refused", _takes_refusals_for_acceptance)),
    Mutant("publication-unconfirmed", "ignores UNCONFIRMED", around(OWN_PUBLISHER, "on_answer", _no_unconfirmed)),
    Mutant("publisher-not-open", "takes `not-open` for final",
           around(OWN_PUBLISHER, "_on_refused", _takes_refusals_for_final)),
    Mutant("publication-lost", "sends no frame again", around(link_handshake, "_again", lambda original, one: [])),
    Mutant("head-link-lost", "sends again what the head has", around(OWN_PUBLISHER, "_on_opened", _sends_all_again)),
    Mutant("head-restarted", "goes on in the old incarnation", around(OWN_PUBLISHER, "_on_opened", _any_epoch)),
]  # fmt: skip

# -- publishers between heads


def _goes_at_once(original: Wrapped, self: Any, mover: Any, move: Any, answer: Any) -> None:
    original(self, mover, move, answer)
    if isinstance(answer, msg.PublisherStandby):
        self._client.say(mover.link, msg.PublisherGo(mover.handle, move.session))


def _stays_silent(original: Wrapped, self: Any, mover: Any, stay: Any) -> None:
    """It takes STAY, and leaves the standby where it is."""
    if mover.move is not None and mover.move.session == stay.session:
        self.moving.pop(mover)
        mover.move = None
        mover.go_on()


def _answers_a_move(original: Wrapped, self: Any, mover: Any, move: Any) -> None:
    """It says GO without having opened anywhere, as a half-built client does."""
    self._client.say(mover.link, msg.PublisherGo(mover.handle, move.session))


def _opens_again(original: Wrapped, self: Any, answer: Any) -> None:
    if isinstance(answer, msg.Refused) and answer.code == "cordoned":
        self.open()
    elif not isinstance(answer, msg.PublisherElsewhere):
        original(self, answer)


OWN_PUBLISHER_MOVES = publisher_moves.ClientPublisherMoves
BETWEEN_HEADS = [
    Mutant("publisher-moves", "says GO before all is answered",
           around(OWN_PUBLISHER_MOVES, "on_target_answer", _goes_at_once)),
    Mutant("publisher-stays", "leaves the standby where it is", around(OWN_PUBLISHER_MOVES, "on_stay", _stays_silent)),
    Mutant("publisher-returns", "waits for ever", around(OWN_PUBLISHER_MOVES, "tick", nothing)),
    Mutant("publisher-move-ignored", "says GO without a standby",
           around(OWN_PUBLISHER_MOVES, "on_move", _answers_a_move)),
    Mutant("publisher-elsewhere", "stays where it is not taken", around(OWN_PUBLISHER_MOVES, "on_elsewhere", nothing)),
    Mutant("publisher-cordoned", "asks again and again", around(OWN_PUBLISHER, "on_answer", _opens_again)),
]  # fmt: skip

# -- subscribing


def _counts_at_once(original: Wrapped, self: Any, attachment: Any) -> None:
    original(self, attachment)
    attachment.subscriber.tell(Acknowledged(tuple(attachment.subscriber.subscriptions), "h", ()))


def _asks_at_once(original: Wrapped, self: Any, unplaced: Any) -> None:
    original(self, msgspec.structs.replace(unplaced, retry_seconds=0.0))


def _raises_by(step: int) -> Callable[..., Any]:
    def change(original: Wrapped, self: Any, attachment: Any) -> Any:
        self.number += step - 2
        return original(self, attachment)

    return change


def _comes_back(original: Wrapped, self: Any, attachment: Any, closed: Any) -> None:
    original(self, attachment, msgspec.structs.replace(closed, code="head"))


def _stays_closed(original: Wrapped, self: Any, attachment: Any, closed: Any) -> None:
    if closed.code != "parted":
        original(self, attachment, closed)


def _without_token(original: Wrapped, self: Any, name: str, **named: Any) -> Any:
    return original(self, name, **{**named, "token": None})


def _without_gap(original: Wrapped, self: Any, attachment: Any, resumed: Any, now: float) -> None:
    original(self, attachment, msgspec.structs.replace(resumed, gap=None), now)


def _for_all(original: Wrapped, self: Any, port: Any, progress: Any) -> None:
    original(self, port, msgspec.structs.replace(progress, behind=[]))


def _without_session(original: Wrapped, self: Any, attachment: Any, moved: Any) -> None:
    original(self, attachment, msgspec.structs.replace(moved, session=None))


def _excludes_none(original: Wrapped, self: Any, subscriber: Any, reason: str, **named: Any) -> None:
    original(self, subscriber, reason, at_once=named.get("at_once", False))


def _same_version(original: Wrapped, self: Any, *, gather: bool) -> Any:
    self.version -= self._added is None and bool(self.items)
    return original(self, gather=gather)


def _always_withdraws(original: Wrapped, self: Any, *attachments: Any, withdraw: bool = False) -> None:
    original(self, *attachments, withdraw=True)


SUBSCRIBING = [
    Mutant("attach", "reports a subscription before SUBACK", around(edge_finder.EdgeFinder, "resume", _counts_at_once)),
    Mutant("no-edge-yet", "asks again at once", around(edge_finder.EdgeFinder, "on_unplaced", _asks_at_once)),
    Mutant("sent-on", "ignores SEE_HEAD", around(home.Home, "on_see_head", nothing)),
    Mutant("closed", "raises n by 1", around(subscribers.ClientSubscriber, "resume_record", _raises_by(1))),
    Mutant("closed-epoch", "does not raise n", around(subscribers.ClientSubscriber, "resume_record", _raises_by(0))),
    Mutant("closed-for-good", "comes back after `slow`", around(edge_records.EdgeRecords, "_on_closed", _comes_back)),
    Mutant("late-records", "takes records for an attachment that is over",
           around(edge_ports.EdgePorts, "release", nothing)),
    Mutant("token", "begins from now on", around(machine.Client, "subscriber", _without_token)),
    Mutant("repetitions", "has no watermarks", around(streams.SubscriberStream, "take", _forgets_watermark)),
    Mutant("gaps", "ignores gaps", around(streams.SubscriberStream, "on_gap", nothing)),
    Mutant("lapsed", "ignores the gap of RESUMED",
           around(subscribers.ClientSubscriber, "on_resumed", _without_gap)),
    Mutant("lapsed", "keeps its acknowledgements after a lapse",
           around(subscription_changes.SubscriptionChanges, "void", lambda *_: False)),
    Mutant("progress", "does not look at `behind`", around(edge_records.EdgeRecords, "_on_progress", _for_all)),
    Mutant("progress", "ignores PROGRESS", around(edge_records.EdgeRecords, "_on_progress", nothing)),
    Mutant("epoch", "ignores EPOCH", around(edge_records.EdgeRecords, "_on_epoch", nothing)),
    Mutant("moved", "does not name the session", around(edge_records.EdgeRecords, "_redirect", _without_session)),
    Mutant("moved-away", "excludes no edge", around(edge_finder.EdgeFinder, "again", _excludes_none)),
    Mutant("list-changed", "changes the list without a new version",
           around(subscription_changes.SubscriptionChanges, "begin", _same_version)),
    Mutant("leaves", "always withdraws", around(edge_ports.EdgePorts, "say_detach", _always_withdraws)),
    Mutant("move-to-ignored", "attaches at a second edge", lambda patch: None),
]  # fmt: skip

# -- moves


def _old_epoch(original: Wrapped, self: Any, one: Any, session: str) -> None:
    original(self, one, session)
    one.number -= 1


def _same_attachment(original: Wrapped, self: Any, one: Any, port: Any) -> Any:
    self._last_attachment = 0
    return original(self, one, port)


def _any_stay(original: Wrapped, self: Any, attachment: Any, stay: Any) -> None:
    under_way = attachment.subscriber.handover
    session = under_way.session if under_way else stay.session
    original(self, attachment, msgspec.structs.replace(stay, session=session))


def _any_owner_epoch(original: Wrapped, self: Any, attachment: Any, move: Any, epoch: Any) -> Any:
    return original(self, attachment, move, attachment.subscriber.epoch)


def _any_time(_: Wrapped, self: Any, attachment: Any, move: Any, epoch: Any) -> bool:
    one = attachment.subscriber
    return bool(handover.is_serving(attachment) and epoch == one.epoch and move.edge != attachment.port.edge)


def _waits_for_held(original: Wrapped, self: Any, attachment: Any, end: Any) -> Any:
    under_way = attachment.subscriber.handover
    if under_way is not None and not under_way.held:
        return None
    return original(self, attachment, end)


def _old_token(original: Wrapped, self: Any, attachment: Any, token: Any) -> None:
    original(self, attachment, self.token)


def _progress_of_next(original: Wrapped, self: Any, port: Any, progress: Any) -> None:
    for attachment in port.attachments.values():
        attachment.subscriber.stream.position = max(attachment.subscriber.stream.position, progress.position)
    original(self, port, progress)


def _only_current(_: Wrapped, self: Any) -> list[Any]:
    return [self.current] if self.current is not None else []


def _at_once(original: Wrapped, self: Any, acked: int) -> int:
    original(self, acked)
    return acked


def _without_pause(original: Wrapped, self: Any, attachment: Any, token: Any) -> None:
    paused, self.is_paused = self.is_paused, False
    original(self, attachment, token)
    self.is_paused = paused


def _nothing_lost(original: Wrapped, self: Any, due: Any) -> Any:
    return delivery_tally.TallyResult(0, 0, 0)


def _live_at_once(original: Wrapped, self: Any, port: Any, attachments: Any) -> None:
    asked = list(attachments)
    original(self, port, asked)
    for attachment in asked:
        attachment.state = ClientAttachmentState.LIVE


OWN_MOVES = handover.ClientHandovers
MOVES = [
    Mutant("move", "does not raise n at END", around(OWN_MOVES, "_count_move", _old_epoch)),
    Mutant("move", "does not leave the source", around(edge_ports.EdgePorts, "say_detach", nothing)),
    Mutant("move-back", "uses attachment numbers again",
           around(edge_finder.EdgeFinder, "new_attachment", _same_attachment)),
    Mutant("move-stay", "takes any STAY for its own", around(OWN_MOVES, "on_stay", _any_stay)),
    Mutant("move-stay", "ignores STAY", around(OWN_MOVES, "on_stay", nothing)),
    Mutant("move-not-begun", "follows MOVE_TO of any owner epoch", around(OWN_MOVES, "_accepts", _any_owner_epoch)),
    Mutant("move-not-begun", "follows a second MOVE_TO", around(OWN_MOVES, "_accepts", _any_time)),
    Mutant("move-held-late", "waits for HELD", around(OWN_MOVES, "_take_over", _waits_for_held)),
    Mutant("move-frames-lost", "takes a frame whose number is too high",
           around(link.Link, "accept", _takes_any_number)),
    Mutant("move-across", "keeps its token at END",
           around(subscribers.ClientSubscriber, "take_over", _old_token)),
    Mutant("move-across", "has no watermarks", around(streams.SubscriberStream, "take_tallied", _forgets_watermark)),
    Mutant("move-progress", "takes the target's PROGRESS",
           around(edge_records.EdgeRecords, "_on_progress", _progress_of_next)),
    Mutant("move-list-changed", "sends SUBS to the source alone",
           around(subscribers.ClientSubscriber, "attachments", _only_current)),
    Mutant("move-list-changed", "does not wait for the target",
           around(ClientHandover, "counted", _at_once)),
    Mutant("move-paused", "goes on without PAUSE", around(subscribers.ClientSubscriber, "take_over", _without_pause)),
    Mutant("move-counted", "always reports that nothing is lost",
           around(delivery_tally.DeliveryTally, "against", _nothing_lost)),
    Mutant("publishers-counted", "reports nothing of publishers as lost",
           around(delivery_tally.PublisherTally, "against", _nothing_lost)),
    Mutant("move-early-delivery", "takes deliveries before GO", around(OWN_MOVES, "attach", _live_at_once)),
]  # fmt: skip

# -- races


def _without_next(_: Wrapped, attachment: Any) -> None:
    return None


def _without_naming(original: Wrapped, self: Any, one: Any, session: str) -> None:
    original(self, one, session)
    one.session = None


def _without_detach(original: Wrapped, self: Any, one: Any, *, withdraw: bool = False) -> None:
    under_way = one.handover
    if under_way is not None and under_way.next is not None:
        under_way.next.state = ClientAttachmentState.OPENING
    original(self, one, withdraw=withdraw)


def _stays_in_it(original: Wrapped, self: Any, attachment: Any, epoch: Any) -> None:
    under_way = attachment.subscriber.handover
    attachment.subscriber.handover = None
    original(self, attachment, epoch)
    attachment.subscriber.handover = under_way


def _one_more(original: Wrapped, self: Any, attachment: Any, moved: Any) -> None:
    attachment.subscriber.number += 1
    original(self, attachment, moved)


def _known_only(original: Wrapped, self: Any, port: Any, end: Any) -> None:
    if any(each.subscriber.handover is not None for each in port.attachments.values()):
        original(self, port, end)


RACES = [
    Mutant("move-next-closed", "resumes when *next* is closed",
           around(edge_records, "target_of", _without_next)),
    Mutant("move-hold", "does not name the session", around(OWN_MOVES, "_count_move", _without_naming)),
    Mutant("move-refused", "is not free after STAY", around(OWN_MOVES, "on_stay", nothing)),
    Mutant("move-next-lost-before", "resumes when the link of *next* is lost",
           around(machine, "target_of", _without_next)),
    Mutant("move-next-lost-behind", "keeps its token at END",
           around(subscribers.ClientSubscriber, "take_over", _old_token)),
    Mutant("move-next-reconnects", "takes WHO for the end of the link",
           around(handshakes.Handshakes, "receive", _who_is_the_end)),
    Mutant("move-epoch", "stays in the hand-over", around(edge_records.EdgeRecords, "_on_epoch", _stays_in_it)),
    Mutant("move-current-closed", "leaves *next* attached", around(OWN_MOVES, "leave", _without_detach)),
    Mutant("move-moved", "takes over n + 1", around(edge_records.EdgeRecords, "_redirect", _one_more)),
    Mutant("move-current-lost", "leaves *next* attached", around(OWN_MOVES, "leave", _without_detach)),
    Mutant("move-parted", "ignores that it is closed",
           around(edge_records.EdgeRecords, "_on_closed", _stays_closed)),
    Mutant("move-end-unknown", "ignores an END that it does not know", around(OWN_MOVES, "on_end", _known_only)),
    Mutant("move-detached-late", "takes records for an attachment that is over",
           around(edge_ports.EdgePorts, "release", nothing)),
]  # fmt: skip

# -- refusals, and several subscribers


def _stays_with_it(original: Wrapped, self: Any, attachment: Any) -> None:
    attachment.subscriber.wake = 0


def _keeps_a_refused_one(original: Wrapped, self: Any, refused: Any) -> bool:
    return False


def _forgets_options(original: Wrapped, self: Any, attachment: Any) -> Any:
    resume = original(self, attachment)
    plain = [msgspec.structs.replace(item, options={}) for item in resume.subscriptions]
    return msgspec.structs.replace(resume, subscriptions=plain)


def _first_only(original: Wrapped, self: Any, port: Any, moved: Any) -> None:
    if isinstance(moved, msg.Moved):
        moved = msgspec.structs.replace(moved, attachments=moved.attachments[:1])
    original(self, port, moved)


def _first_to_end(original: Wrapped, self: Any, port: Any, end: Any) -> None:
    original(self, port, msgspec.structs.replace(end, attachments=end.attachments[:1]))


def _knows_all(original: Wrapped, self: Any, opened: Any) -> bool:
    return False


def _answers_again(original: Wrapped, self: Any, refused: Any) -> None:
    original(self, refused)
    if refused.seq not in self.buffer.sent:
        number = refused.seq + self.buffer.base
        self._tell(Answered(number, number, "refused", self.incarnation, refused.seq, (), refused.code, refused.text))


def _held_counts(original: Wrapped, self: Any, port: Any, held: Any) -> None:
    original(self, port, held)
    for item in held.members:
        one = port.attachments[item.attachment].subscriber
        one.tell(Acknowledged(tuple(one.subscription_list.unacked), "h", ()))


MORE = [
    Mutant("edge-unreachable", "waits for an edge for ever",
           around(edge_finder.EdgeFinder, "_give_up", _stays_with_it)),
    Mutant("link-refused", "does not look at REFUSE",
           both(around(machine.Client, "on_refused", nothing),
                around(edge_finder.EdgeFinder, "_give_up", _stays_with_it))),
    Mutant("subscription-refused", "keeps a subscription that was refused",
           around(subscription_list.SubscriptionList, "on_subrefused", _keeps_a_refused_one)),
    Mutant("latency-required", "resumes without the options of its subscriptions",
           around(subscribers.ClientSubscriber, "resume_record", _forgets_options)),
    Mutant("moved-together", "looks at the first attachment alone",
           around(edge_records.EdgeRecords, "on_record", _first_only)),
    Mutant("publisher-forgotten", "takes the head's word for its memory",
           around(publication_buffer.PublicationBuffer, "leaves_hole", _knows_all)),
    Mutant("answers-repeated", "answers again what has its answer",
           around(OWN_PUBLISHER, "_on_refused", _answers_again)),
    Mutant("move-list-at-end", "takes HELD for a SUBACK", around(OWN_MOVES, "on_held", _held_counts)),
    Mutant("move-list-alone", "does not wait for the target", around(ClientHandover, "counted", _at_once)),
    Mutant("move-go-lost", "sends nothing again", around(link_handshake, "_again", lambda original, one: [])),
    Mutant("move-target-silent", "waits for a silent edge for ever", around(link.Link, "dead", lambda *_: False)),
    Mutant("move-together", "looks at the first attachment alone", around(OWN_MOVES, "on_end", _first_to_end)),
]  # fmt: skip


def _releases_at_once(original: Wrapped, self: Any, revoked: Any) -> None:
    owned = self._slices.get(revoked.number)
    if owned is None or owned.assignment != revoked.epoch:
        original(self, revoked)
    else:
        self._release(owned)


def _goes_on_without_answers(original: Wrapped, self: Any, joined: Any) -> None:
    original(self, msgspec.structs.replace(joined, lease_seconds=1e9))


GROUPS = [
    Mutant("group-join", "takes every refusal as final", around(group_member.GroupMember, "on_refused", nothing)),
    Mutant("slice-revoked", "releases a slice with an item in hand",
           around(assigned_slices.AssignedSlices, "on_revoked", _releases_at_once)),
    Mutant("slice-reassigned", "marks nothing",
           around(slice_subscriber.SliceSubscriber, "_may_have_been_given", lambda *_: False)),
    Mutant("group-lease", "goes on without answers",
           around(group_member.GroupMember, "on_joined", _goes_on_without_answers)),
]  # fmt: skip

MUTANTS = [*LINKS, *PUBLISHING, *BETWEEN_HEADS, *SUBSCRIBING, *MOVES, *RACES, *MORE, *GROUPS]
