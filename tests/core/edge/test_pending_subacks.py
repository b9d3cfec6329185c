"""SUBACKs of an edge: sent once, when the tree has a list, to attachments with a place, and completed later."""

from __future__ import annotations

from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.edge.pending_subacks import PendingSubacks
from plimsoll.core.protocol.messages import Suback
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits


def attachment(number: int = 1, state: AttachmentState = AttachmentState.LIVE) -> EdgeAttachment:
    link = Link(b"c", local=Info("e", "edge", 1), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0)
    made = EdgeAttachment(f"s{number}", number, link, (1, 2), 1, [])
    made.state = state
    return made


def subacks(promises: PendingSubacks, seq: int, unreached: list[str] | None = None) -> list[Suback]:
    return [suback for _, suback in promises.acknowledged(seq, unreached or [])]


def test_an_acknowledgement_answers_for_all_before_it():
    promises, one, two = PendingSubacks(), attachment(1), attachment(2)
    promises.ask(1, one, 1)
    promises.ask(2, two, 1)
    promises.ask(3, one, 2)
    assert subacks(promises, 2) == [Suback(1, 1, []), Suback(2, 1, [])]
    assert subacks(promises, 2) == []
    assert subacks(promises, 3) == [Suback(1, 2, [])]
    assert len(promises) == 0


def test_nothing_is_promised_before_there_is_a_place_or_after_the_end():
    promises, resuming, closed = (
        PendingSubacks(),
        attachment(1, AttachmentState.RESUMING),
        attachment(2, AttachmentState.CLOSED),
    )
    promises.ask(1, resuming, 1)
    promises.ask(2, closed, 1)
    assert subacks(promises, 2) == []
    assert len(promises) == 1, "the closed one is forgotten"
    resuming.state = AttachmentState.CATCHUP
    assert subacks(promises, 2) == [Suback(1, 1, [])]


def test_who_was_told_of_unreached_heads_is_told_again_once_for_the_last_version():
    promises, one = PendingSubacks(), attachment(1)
    promises.ask(1, one, 1)
    promises.ask(2, one, 2)
    assert subacks(promises, 2, ["k"]) == [Suback(1, 1, ["k"]), Suback(1, 2, ["k"])]
    assert subacks(promises, 1) == [], "the later update has not arrived there"
    assert subacks(promises, 2) == [Suback(1, 2, [])]
    assert len(promises) == 0


def test_a_closed_attachment_is_not_completed():
    promises, one = PendingSubacks(), attachment(1)
    promises.ask(1, one, 1)
    subacks(promises, 1, ["k"])
    promises.forget(one)
    assert subacks(promises, 1) == []


def test_a_new_cover_answers_for_everything_that_waits():
    promises, one, two = PendingSubacks(), attachment(1), attachment(2)
    promises.ask(8, one, 1)
    subacks(promises, 8, ["k"])
    promises.ask(9, two, 3)
    promises.renumber(1)
    assert subacks(promises, 1) == [Suback(1, 1, []), Suback(2, 3, [])]
