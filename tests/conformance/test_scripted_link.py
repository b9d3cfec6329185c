"""The scripted side of a link holds the client to docs/protocol.md, 3.1."""

from __future__ import annotations

import pytest
from tests.conformance.raw_client import data, hello

from plimsoll.conformance.rules import RuleBrokenError
from plimsoll.conformance.scripted_link import ScriptedLink
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


def link(credit: int = 4) -> ScriptedLink:
    said = wire.decode_frame(hello())
    assert isinstance(said, wire.Hello)
    made = ScriptedLink(said, b"peer", credit)
    made.grant()
    return made


def frame(number: int, *records: object) -> wire.Data:
    decoded = wire.decode_frame(data(number, *records))
    assert isinstance(decoded, wire.Data)
    return decoded


def test_frames_are_taken_in_order_and_once():
    one = link()
    assert one.on_data(frame(1, msg.Pause(1))) == [msg.Pause(1)]
    assert one.on_data(frame(1, msg.Pause(1))) == []
    assert one.on_data(frame(3, msg.Pause(3))) is None
    assert one.on_data(frame(2, msg.Pause(2))) == [msg.Pause(2)]
    assert one.expected == 3


def test_a_repeated_frame_has_the_same_records():
    one = link()
    one.on_data(frame(1, msg.Pause(1)))
    with pytest.raises(RuleBrokenError, match="other records"):
        one.on_data(frame(1, msg.Pause(2)))


def test_a_frame_above_the_credit_breaks_a_rule():
    one = link(credit=2)
    one.on_data(frame(1))
    one.on_data(frame(2))
    with pytest.raises(RuleBrokenError, match="frame 3 was sent; the credit was 2"):
        one.on_data(frame(3))


def test_credit_that_was_told_counts():
    one = link(credit=2)
    one.on_data(frame(1))
    one.grant()
    one.on_data(frame(2))
    assert one.on_data(frame(3)) == []


def test_number_zero_is_none():
    with pytest.raises(RuleBrokenError, match="number 0"):
        link().on_data(frame(0))


def test_a_record_of_no_client_breaks_a_rule():
    with pytest.raises(RuleBrokenError, match="record"):
        link().on_data(frame(1, msg.Welcome(1)))


def test_acknowledgements_are_of_frames_that_were_sent():
    one = link()
    one.data_frame(msg.Progress(1))
    one.data_frame(msg.Progress(2))
    one.on_answer(1, 1024)
    assert [sent.seq for sent in one.unacked] == [2]
    with pytest.raises(RuleBrokenError, match="frame 3 is acknowledged"):
        one.on_answer(3, 1024)


def test_credit_does_not_go_down():
    one = link()
    one.on_answer(0, 1024)
    with pytest.raises(RuleBrokenError, match="credit 1000 after 1024"):
        one.on_answer(0, 1000)
