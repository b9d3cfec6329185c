"""One batch, rule by rule: what is late or comes twice changes nothing, and what has ended leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.alone import batch_of, context_at

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.events import SendMessage
from plimsoll.core.session.execute.batches import advance, end_batch, mark_lost, receive_outcome


def told(state: str, reason: str = "", **members: str) -> msg.Outcome:
    return msg.Outcome("4.1", 4, 10, state, list(members.items()), reason)  # type: ignore[arg-type]  # words of the protocol as text


def test_a_refusal_that_comes_after_the_head_has_begun_is_of_no_concern():
    one = batch_of(state="preparing")
    assert receive_outcome(context_at(101.0), one, told("failed", "full: too many sessions")) is one


def test_what_was_to_be_cut_and_is_not_known_is_looked_for():
    one = receive_outcome(context_at(101.0), batch_of(intent="cut", cut_at=100.5), told("unknown"))
    assert (one.intent, one.ended_at) == ("resolve", None)


def test_the_first_outcome_of_a_member_holds():
    one = receive_outcome(
        context_at(101.0), batch_of(state="cut", members={"x": "moved", "y": "cut"}), told("done", x="stayed")
    )
    assert one.members == {"x": "moved", "y": "cut"}


def test_the_reason_of_a_head_is_kept():
    one = receive_outcome(context_at(101.0), batch_of(), told("preparing", "two are away"))
    assert one.reason == "two are away"
    assert receive_outcome(context_at(101.5), one, told("ready", x="attached")).reason == "two are away"


def test_those_who_are_late_are_waited_for_from_the_first_on():
    one = receive_outcome(context_at(101.0), batch_of(), told("ready", x="attached"))
    assert receive_outcome(context_at(102.0), one, told("ready", x="attached", y="preparing")).ready_at == 101.0


def test_what_has_ended_is_not_lost():
    one = batch_of(ended_at=101.0, cut_at=100.5)
    assert mark_lost(context_at(102.0), one, "h has restarted") is one


@pytest.mark.parametrize("state", ["aborted", "done"])
def test_members_without_an_outcome_at_the_end(state: str):
    one = batch_of(intent="cut", cut_at=100.5, state=state, members={"x": "returned", "y": ""})
    assert advance(context_at(101.0), one, stopping=False).members == {"x": "returned", "y": "unknown"}


@pytest.mark.parametrize(("before", "after"), [("", "h does not answer"), ("two are away", "two are away")])
def test_why_it_was_given_up(before: str, after: str):
    one = advance(context_at(120.0), batch_of(intent="abort", reason=before), stopping=False)
    assert (one.ended_at, one.reason) == (120.0, after)


def resolved(at_source: list[str], at_target: list[str], **fields: Any) -> tuple[Batch, bool]:
    """A batch after both ends have listed their subscribers, and whether the lists are dropped."""
    context = context_at(101.0)
    one = batch_of(intent="resolve", since=100.5, cut_at=100.2, **fields)
    assert advance(context, one, stopping=False) is one
    for effect in list(context.outbox.effects):
        assert isinstance(effect, SendMessage)
        assert isinstance(effect.message, msg.ListSubscribers)
        names = at_source if effect.message.edge == "a" else at_target
        context.listings.receive("h", msg.SubscriberPage(effect.message.id, effect.message.edge, 10, names, False))
    context.outbox.is_due("4.1/again", 1.0)
    one = advance(context, one, stopping=False)
    return one, not context.listings._listings


def test_a_later_edge_of_a_member_does_not_change_its_outcome():
    one, _ = resolved([], ["x", "y"], members={"x": "cut", "y": "returned"})
    assert one.members == {"x": "moved", "y": "returned"}


def test_what_ends_have_said_is_forgotten_at_the_end():
    one, is_forgotten = resolved(["y"], ["x"], members={"x": "cut", "y": "cut"})
    assert one.ended_at == 101.0
    assert is_forgotten


def test_when_it_was_spoken_of_is_forgotten_at_the_end():
    context = context_at(101.0)
    context.outbox.command(batch_of(), "prepare", 0.5)
    context.outbox.is_due("4.10/ask", 0.5)
    end_batch(context, batch_of(), "stayed")
    assert list(context.outbox._last_sent) == ["4.10/ask"]


def test_only_a_failure_is_passed_over_while_a_head_starts():
    one = receive_outcome(
        context_at(101.0), batch_of(state="preparing"), told("aborted", "starting: no member came", x="stayed")
    )
    assert (one.state, one.members["x"]) == ("aborted", "stayed")


def test_a_refusal_of_what_is_given_up_already_ends_nothing():
    """The PREPARE may have come before, and another copy of it after."""
    one = batch_of(intent="abort")
    assert receive_outcome(context_at(101.0), one, told("failed", "full: too many sessions")) is one


def test_a_state_that_is_not_known_here_counts_for_nothing():
    one = receive_outcome(context_at(101.0), batch_of(members={"x": "", "y": "asleep"}), told("preparing", x="asleep"))
    assert one.members == {"x": "", "y": "asleep"}
    assert receive_outcome(context_at(101.0), one, told("ready", y="preparing")).members == {"x": "", "y": "preparing"}
