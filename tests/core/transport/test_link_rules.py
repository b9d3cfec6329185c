"""One side of a link by itself, rule by rule: what it takes, owes, keeps and gives credit for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.core.transport.single_link import LIMITS, NEVER, NEW, accepted, beginnings, data, hello, made

from plimsoll.core.protocol import wire
from plimsoll.core.transport import link_handshake
from plimsoll.core.transport.link import ACK_EVERY_BYTES, ACK_EVERY_FRAMES, Link, LinkStats


@pytest.mark.parametrize(("initiator", "first"), [(True, 7), (False, 0)])
def test_a_new_link_knows_nothing(initiator: bool, first: int):
    link = made(initiator=initiator)
    assert (link.id, link.name, link.incarnation, link.rtt_seconds, link.flags, link.is_stuck) == (
        first,
        "",
        0,
        0.0,
        0,
        False,
    )
    assert (link.last_heard, link.last_progress) == (1.0, 1.0)
    assert beginnings(link) == NEW
    assert link.writable_bytes() == 0
    assert link.on_sealed is None
    assert link.owner is None


# -- receiving


def test_frames_are_taken_in_order_and_counted():
    link = accepted()
    assert [link.accept(data(seq), 10 * seq, 3.0) for seq in (1, 2, 2, 4, 3)] == [True, True, False, False, True]
    assert link.stats.as_dict() == {
        "acks_out": 1, "bytes_in": 60, "frames_again": 0, "frames_in": 3, "frames_refused": 2, "records_in": 6,
    }  # fmt: skip
    assert (link.expected, link.last_heard) == (4, 3.0)
    assert set(LinkStats().as_dict().values()) == {0}


def test_what_has_come_before_is_acknowledged_at_once_and_what_is_ahead_is_not():
    link = accepted()
    assert not link.accept(data(2), 10, 3.0)
    assert link.ack_due_at == NEVER
    assert link.accept(data(1), 10, 3.0)
    assert not link.accept(data(1), 10, 3.1)
    assert link.ack_due_at == 3.1


def test_nothing_beyond_the_credit_is_taken():
    link = accepted()
    for seq in range(1, 41):
        assert link.accept(data(seq), 1, 3.0)
    link.ack()
    assert not link.accept(data(41), 1, 3.0)
    assert link.stats.frames_refused == 1
    assert link.ack_due_at == NEVER, "that is no repetition"
    link.took(1, 3.0)
    link.ack()
    assert link.accept(data(41), 1, 3.0)


def test_a_frame_acknowledges_even_if_it_is_refused():
    link = accepted(credit=2)
    link.seal([b"\xc0"], 2.0)
    assert not link.accept(data(5, ack=1, credit=9), 10, 3.0)
    assert (link.acked, link.credit, link.inflight_bytes, link.last_progress) == (1, 9, 0, 3.0)


def test_an_acknowledgement_waits_for_company_but_not_for_long():
    link = accepted()
    assert link.accept(data(1), 10, 3.0)
    assert link.accept(data(2), 10, 3.1)
    assert link.ack_due_at == 3.25
    for seq in range(3, ACK_EVERY_FRAMES):
        assert link.accept(data(seq), 10, 3.2)
    assert link.ack_due_at == 3.25
    assert link.accept(data(ACK_EVERY_FRAMES), 10, 3.2)
    assert link.ack_due_at == 3.2


def test_many_bytes_are_acknowledged_at_once_and_so_is_what_asks_for_it():
    link = accepted()
    assert link.accept(data(1), ACK_EVERY_BYTES - 10, 3.0)
    assert link.ack_due_at == 3.25
    assert link.accept(data(2), 10, 3.1)
    assert link.ack_due_at == 3.1
    link = accepted()
    assert link.accept(data(1, flags=wire.FLAG_ACK_NOW), 10, 3.0)
    assert link.ack_due_at == 3.0


def test_an_acknowledgement_settles_what_is_owed():
    link = accepted()
    assert link.accept(data(1), 100, 3.0)
    link.took(1, 3.0)
    assert wire.decode_frame(link.ack()) == wire.Ack(1, wire.ACK, 9, 1, 41)
    assert (link.unacked_in_frames, link.unacked_in_bytes, link.ack_due_at) == (0, 0, NEVER)
    assert (link.stats.acks_out, link.credit_told) == (2, 41)


def test_a_frame_of_ours_settles_it_too():
    link = accepted()
    link.ack_due_at = 3.5  # a repeated frame, say: nothing new has come
    link.seal([b"\xc0"], 3.0)
    assert link.ack_due_at == 3.5
    assert link.accept(data(1), 100, 3.1)
    sealed = wire.decode_frame(link.seal([b"\xc0"], 3.2))
    assert isinstance(sealed, wire.Data)
    assert (sealed.ack, link.unacked_in_frames, link.unacked_in_bytes, link.ack_due_at) == (1, 0, 0, NEVER)


def acknowledged_by(link: Link) -> int:
    said = wire.decode_frame(link.ack())
    assert isinstance(said, wire.Ack)
    return said.ack


def test_a_link_that_acknowledges_what_was_dealt_with_says_nothing_of_what_only_arrived():
    link = accepted()
    link.acks_dealt = True
    assert link.accept(data(1), 100, 3.0)
    assert link.accept(data(2), 100, 3.0)
    assert acknowledged_by(link) == 0
    assert link.ack_due_at == NEVER
    link.deals(4.0)
    assert link.ack_due_at == 4.25
    assert acknowledged_by(link) == 1
    sealed = wire.decode_frame(link.seal([b"\xc0"], 4.0))
    answer = wire.decode_frame(link_handshake.answer_hello(link, hello(), 4.0)[0])
    assert isinstance(sealed, wire.Data)
    assert isinstance(answer, wire.HelloOk)
    assert (sealed.ack, answer.received) == (1, 1), "the other side forgets what it is told here, too"


def test_from_a_frame_that_is_held_on_nothing_is_acknowledged_until_it_is_released():
    link = accepted()
    link.acks_dealt = True
    for seq in (1, 2, 3):
        assert link.accept(data(seq), 100, 3.0)
        if seq > 1:
            link.hold()
        link.deals(3.0)
    assert acknowledged_by(link) == 1
    assert not link.accept(data(2), 100, 4.0), "what comes again for want of an acknowledgement is not taken twice"
    link.release(5.0)
    assert link.ack_due_at == 5.0
    assert acknowledged_by(link) == 3


def test_other_links_acknowledge_what_has_arrived():
    link = accepted()
    assert link.accept(data(1), 100, 3.0)
    link.hold()
    assert link.held_from == 0
    assert acknowledged_by(link) == 1


def test_credit_goes_back_at_once_when_half_of_it_is_due():
    link = accepted()
    for seq in range(1, 21):
        assert link.accept(data(seq), 1, 3.0)
    link.ack()
    link.took(19, 4.0)
    assert link.ack_due_at == NEVER
    link.took(1, 5.0)
    assert link.ack_due_at == 5.0
    said = wire.decode_frame(link.ack())
    assert isinstance(said, wire.Ack)
    assert said.credit == 60


# -- sending


def test_what_may_be_sent_is_bounded_by_credit_and_window():
    link = accepted(credit=2)
    assert link.writable_bytes() == 1_000
    size = len(link.seal([b"\xc0" * 100], 2.0))
    assert link.writable_bytes() == 1_000 - size
    link.seal([b"\xc0"], 2.0)
    assert link.writable_bytes() == 0, "out of credit"
    link.acknowledged(2, 9, 3.0)
    assert link.writable_bytes() == 1_000
    link.open = False
    assert link.writable_bytes() == 0


def test_progress_is_counted_from_the_first_frame_that_waits():
    link = accepted()
    link.seal([b"\xc0"], 3.0)
    link.seal([b"\xc0"], 4.0)
    assert link.last_progress == 3.0
    assert link.next_seq == 3


def test_an_acknowledgement_says_whether_anything_moved():
    link = accepted(credit=5)
    sizes = [len(link.seal([b"\xc0" * n], 2.0)) for n in (1, 2, 3, 4)]
    assert not link.acknowledged(0, 5, 3.0)
    assert not link.acknowledged(0, 4, 3.0)
    assert link.credit == 5
    assert link.acknowledged(0, 6, 3.0)
    assert link.last_progress == 2.0, "credit is no progress"
    assert link.acknowledged(1, 6, 4.0)
    assert (link.acked, link.last_progress, link.inflight_bytes) == (1, 4.0, sum(sizes[1:]))
    assert not link.acknowledged(1, 6, 5.0)
    assert link.last_progress == 4.0
    assert link.acknowledged(2, 6, 5.0)
    assert (link.acked, link.inflight_bytes, len(link.unacked)) == (2, sum(sizes[2:]), 2)
    assert link.acknowledged(4, 6, 5.0)
    assert (link.acked, link.inflight_bytes, len(link.unacked)) == (4, 0, 0)
    assert not link.acknowledged(5, 6, 6.0), "a number that was not sent"


# -- time


def test_a_link_is_stalled_when_nothing_moves_for_three_heartbeats():
    link = accepted(credit=1)
    assert not link.stalled(100.0), "there is nothing to send, and it may be sent"
    link.seal([b"\xc0"], 4.0)
    assert not link.stalled(7.0)
    assert link.stalled(7.1)
    link.open = False
    assert not link.stalled(7.1)
    link.open = True
    link.acknowledged(1, 1, 8.0)
    assert not link.stalled(11.0)
    assert link.stalled(11.1), "all has arrived, and nothing may be sent"


def test_three_heartbeats_are_those_of_its_limits_and_credit_does_not_help():
    link = accepted(limits=replace(LIMITS, heartbeat_seconds=0.5))
    link.seal([b"\xc0"], 4.0)
    assert not link.stalled(5.5)
    assert link.stalled(5.6)


def test_a_link_is_dead_after_a_long_silence():
    link = accepted()
    assert link.accept(data(1), 1, 4.0)
    assert not link.dead(14.0)
    assert link.dead(14.1)


def test_flags_are_said_from_their_change_on():
    link = accepted()
    link.flags = wire.FLAG_ACK_NOW
    assert link.flags == wire.FLAG_ACK_NOW
    sealed = wire.decode_frame(link.seal([b"\xc0"], 2.0))
    assert isinstance(sealed, wire.Data)
    assert (sealed.flags, sealed.link) == (wire.FLAG_ACK_NOW, 9)
