"""A process that waits obeys a mediator alone, and only if it is the one that is meant."""

from __future__ import annotations

import itertools

import pytest

from plimsoll.core.head.standby.waiting import WaitingProcess
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport.link import LinkLimits

MEDIATOR = b"mediator"


@pytest.fixture
def waiting() -> WaitingProcess:
    found = WaitingProcess("h", 11, LinkLimits(), itertools.count(1).__next__, 1 << 20)
    say(found, msg.Identify("m", "mediator", 0))
    return found


def say(waiting: WaitingProcess, record: msg.ControlRecord, peer: bytes = MEDIATOR) -> None:
    waiting.receive_control(peer, wire.control_frame(record), 1.0)


def answers(waiting: WaitingProcess) -> list[msg.ControlRecord]:
    frames = [wire.decode_frame(data) for _, data in waiting.control_to_send()]
    return [
        msg.decode(msg.control, raw) for frame in frames if isinstance(frame, wire.Control) for raw in frame.records
    ]


def test_it_says_that_it_waits(waiting: WaitingProcess):
    say(waiting, msg.LeadershipQuery(5))
    assert answers(waiting) == [msg.LeadershipReply(5, {"role": "waiting", "incarnation": 11})]
    assert waiting.status()["role"] == "waiting"


def test_it_leads_in_the_term_that_is_given_to_it(waiting: WaitingProcess):
    say(waiting, msg.Lead(4, 11))
    assert (waiting.term, waiting.follows, waiting.done()) == (4, False, True)


def test_it_follows_if_it_is_told_so(waiting: WaitingProcess):
    say(waiting, msg.Follow(11))
    assert (waiting.term, waiting.follows, waiting.done()) == (0, True, True)


@pytest.mark.parametrize("record", [msg.Lead(4, 10), msg.Follow(10), msg.Promote(4), msg.Replaced(4)])
def test_what_is_meant_for_another_process_changes_nothing(waiting: WaitingProcess, record: msg.ControlRecord):
    say(waiting, record)
    assert not waiting.done()


def test_nor_does_what_comes_from_another_peer(waiting: WaitingProcess):
    for record in (msg.Lead(4, 11), msg.Follow(11), msg.Leave()):
        say(waiting, record, b"another")
    assert not waiting.done()


def test_it_ends_if_it_is_asked_to(waiting: WaitingProcess):
    say(waiting, msg.Leave())
    assert (waiting.done(), waiting.term, waiting.follows) == (True, 0, False)


def test_it_serves_no_peer(waiting: WaitingProcess):
    assert "waits" in waiting.admits(wire.Info("e", "edge", 1))


def test_one_whose_head_is_to_have_no_standby_any_more_leads_alone(waiting: WaitingProcess):
    waiting.is_alone = True
    assert (waiting.done(), waiting.term, waiting.follows) == (True, 0, False)
