"""One side of a link by itself: how it is opened and resumed, and when it starts over."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import pytest
from tests.core.transport.single_link import NEVER, NEW, US, accepted, beginnings, data, dialled, hello, hello_ok, made

from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport import link_handshake


def test_hello_says_who_we_are_and_what_has_arrived():
    link = dialled()
    assert link.accept(data(1), 10, 3.0)
    said = wire.decode_frame(link_handshake.say_hello(link, 4.0))
    assert said == wire.Hello(1, wire.HELLO, 7, 1, True, US)
    assert not link.open
    assert wire.decode_frame(link_handshake.say_hello(made(initiator=True), 1.0)) == wire.Hello(
        1, wire.HELLO, 7, 0, False, US
    )


def test_the_acceptor_takes_the_number_of_the_link_and_gives_its_first_credit():
    link = made(initiator=False)
    link.buffer.append(b"x")
    first, second = link_handshake.answer_hello(link, hello(), 2.0)
    assert wire.decode_frame(first) == wire.HelloOk(1, wire.HELLO_OK, 9, 0, False, US)
    assert wire.decode_frame(second) == wire.Ack(1, wire.ACK, 9, 0, 40)
    assert (link.id, link.name, link.incarnation, link.open, link.was_open) == (9, "edge", 5, True, True)
    assert (link.last_heard, link.last_progress) == (2.0, 2.0)
    assert not link.buffer, "what was before the link is no part of it"


def test_after_a_reconnect_what_has_not_arrived_is_sent_again_in_order():
    link = accepted()
    frames = [link.seal([b"\xc0"], 2.0) for _ in range(3)]
    assert link.accept(data(1), 10, 2.5)
    link.resync_asked = 2.9
    answer, ack, *again = link_handshake.answer_hello(link, hello(received=1), 3.0)
    assert wire.decode_frame(answer) == wire.HelloOk(1, wire.HELLO_OK, 9, 1, False, US)
    assert wire.decode_frame(ack) == wire.Ack(1, wire.ACK, 9, 1, 40)
    assert again == frames[1:]
    assert (link.stats.frames_again, link.acked, link.last_progress) == (2, 1, 3.0)
    assert link.resync_asked == -NEVER
    assert link.next_seq == 4


def test_the_initiator_sends_again_too():
    link = dialled()
    link.acknowledged(0, 100, 2.0)
    frames = [link.seal([b"\xc0"], 2.0) for _ in range(2)]
    link_handshake.say_hello(link, 3.0)
    lost, (ack, *again) = link_handshake.take_answer(link, hello_ok(7, received=1), 4.0)
    assert (lost, again) == (False, frames[1:])
    assert wire.decode_frame(ack) == wire.Ack(1, wire.ACK, 7, 0, 40)
    assert (link.open, link.last_heard) == (True, 4.0)


def test_answers_to_another_link_or_to_an_open_one_are_passed_over():
    link = made(initiator=True)
    assert link_handshake.take_answer(link, hello_ok(8), 2.0) == (False, [])
    assert not link.open
    link = dialled()
    link.acknowledged(0, 100, 2.0)
    link.seal([b"\xc0"], 2.0)
    assert link_handshake.take_answer(link, hello_ok(7, received=1), 3.0) == (False, [])
    assert link.acked == 0


def test_a_link_that_was_never_open_cannot_have_been_lost():
    link = made(initiator=True)
    assert link_handshake.take_answer(link, hello_ok(7, lost=True), 2.0) == (False, [])
    assert (link.id, link.open) == (7, False)


def test_a_link_that_the_other_side_has_lost_is_over_and_a_new_one_is_opened():
    link = dialled()
    link.acknowledged(0, 100, 2.0)
    link.seal([b"\xc0"], 2.0)
    link.buffer.append(b"x")
    assert link.accept(data(1), 10, 2.0)
    buffer = link.buffer
    link_handshake.say_hello(link, 3.0)
    lost, (said,) = link_handshake.take_answer(link, hello_ok(7, lost=True), 4.0)
    assert lost
    assert wire.decode_frame(said) == wire.Hello(1, wire.HELLO, 8, 0, False, US)
    assert beginnings(link) == NEW
    assert link.last_heard == 4.0
    assert link.buffer is buffer, "the list stays the same object"


def test_an_ended_link_starts_over():
    link = dialled()
    link.flags = wire.FLAG_ACK_NOW
    link_handshake.begin_anew(link, 6.0)
    assert (link.id, link.last_heard) == (8, 6.0)
    assert beginnings(link) == NEW
    assert link_handshake.take_answer(link, hello_ok(8), 7.0)[0] is False
    link.acknowledged(0, 5, 7.0)
    sealed = wire.decode_frame(link.seal([b"\xc0"], 7.0))
    assert isinstance(sealed, wire.Data)
    assert (sealed.link, sealed.flags, sealed.seq) == (8, wire.FLAG_ACK_NOW, 1), "flags outlive a link"


@pytest.mark.parametrize(("role", "longest"), [("edge", 512.0), ("head", 8.0)])
def test_a_head_that_holds_what_it_was_sent_is_heard_again_before_long(role: Literal["edge", "head"], longest: float):
    link = accepted()
    link.remote = Info("peer", role, 5)
    link.seal([b"\xc0" * 900], 2.0)
    answered, now = [2.0], 2.0
    while now < 1100.0:
        now += 1.0
        if link_handshake.may_repeat(link, 0, now):
            answered.append(now)
    assert max(after - before for before, after in pairwise(answered)) == longest


def test_numbers_are_asked_for_once_a_heartbeat():
    link = dialled()
    said = link_handshake.ask_resync(link, 5.0)
    assert said is not None
    assert isinstance(wire.decode_frame(said), wire.Hello)
    assert link_handshake.ask_resync(link, 5.9) is None
    assert link_handshake.ask_resync(link, 6.0) is not None
    acceptor = accepted()
    asked = link_handshake.ask_resync(acceptor, 5.0)
    assert asked is not None
    assert isinstance(wire.decode_frame(asked), wire.Who)
    assert acceptor.open
