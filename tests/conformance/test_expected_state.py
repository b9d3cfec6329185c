"""The state that a scenario holds the client to: the table of docs/simple-client.md."""

from __future__ import annotations

from plimsoll.conformance.expected_state import EPOCH, ExpectedState, item_of, publication
from plimsoll.core.protocol import messages as msg

ELEVENTH = publication(11)


def state() -> ExpectedState:
    made = ExpectedState("s", [])
    made.token = ("h", EPOCH, 10)
    return made


def test_a_publication_is_given_once_and_moves_the_token():
    one = state()
    one.deliver(ELEVENTH)
    one.deliver(ELEVENTH)
    assert one.items == [("delivery", "feed", 7, 11)]
    assert (one.token, one.marks) == (("h", EPOCH, 11), {("h", EPOCH): 11})


def test_a_repetition_moves_the_token_all_the_same():
    one = state()
    one.deliver(ELEVENTH)
    one.deliver(publication(11, position=20))
    assert one.token == ("h", EPOCH, 20)
    assert len(one.items) == 1


def test_a_position_does_not_lower_the_token():
    one = state()
    one.reach(5)
    assert one.token == ("h", EPOCH, 10)
    one.reach(15)
    assert one.token == ("h", EPOCH, 15)


def test_a_gap_raises_watermarks_and_sets_the_token():
    one = state()
    one.marks = {("k", 5): 9}
    one.gap(msg.Gap("h", EPOCH, 11, EPOCH, 20, [("k", 5, 7), ("h", EPOCH, 19)], "log"))
    assert one.items == [("gap", "log")]
    assert (one.token, one.marks) == (("h", EPOCH, 20), {("k", 5): 9, ("h", EPOCH): 19})


def test_reports_are_compared_by_identity():
    report = {"event": "delivery", "publisher": "feed", "incarnation": 7, "seq": 11, "attributes": {}}
    assert item_of(report) == ("delivery", "feed", 7, 11)
    assert item_of({"event": "gap", "reason": "log"}) == ("gap", "log")
