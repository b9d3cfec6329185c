"""What the source of a hand-over says of its members when ABORT asks it."""

from __future__ import annotations

import pytest
from tests.core.edge.handover.test_source import OTHER, cut, served
from tests.core.head.handover.script import S, Stage, members

from plimsoll.core.protocol import messages as msg


def answers(stage: Stage) -> list[tuple[str, list[str], str]]:
    """What the source has said of members: the session, the members, and the code."""
    said = stage.head.of("a", msg.HandoverRejected)
    return [(one.session, list(one.members), one.reason.partition(":")[0]) for one in said]


def test_an_abort_that_asks_is_answered_for_each_member_and_no_other_is():
    stage = served()
    stage.tell("a", msg.Abort(OTHER, members("x", "stranger")))
    assert answers(stage) == []
    stage.tell("a", msg.Abort(OTHER, members("x", "stranger"), ask=True))
    assert answers(stage) == [(OTHER, ["x"], "served"), (OTHER, ["stranger"], "left")]
    assert stage.said("a", msg.Stay) == [], "it was not told to move in this session"


def test_the_answer_says_that_a_closed_member_is_away():
    stage = served()
    stage.ask("a", msg.Detach([1], False))
    stage.tell("a", msg.Abort(S, members("x"), ask=True))
    assert answers(stage)[-1] == (S, ["x"], "away")


def test_a_member_that_has_come_again_under_another_owner_epoch_is_served():
    stage = served()
    stage.tell("a", msg.Abort(S, members("x", n=9), ask=True))
    assert answers(stage)[-1] == (S, ["x"], "served")


@pytest.mark.parametrize("across", [False, True])
def test_a_member_that_another_session_has_cut_has_left(across: bool):
    stage = Stage()
    stage.attach("x")
    stage.ask("a", msg.Pause(1))
    stage.publish("a", count=2)
    stage.tell("a", cut(stage, across=across), msg.Abort(OTHER, members("x"), ask=True))
    assert stage.state("a") == "ending"
    assert answers(stage)[-1] == (OTHER, ["x"], "left")
