"""One batch: each answer of a head, in every order, and what follows from it and from time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.session.model import Faults, World

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import EngineSettings, FleetView, HeadView
from plimsoll.core.session.batch import LOST_BEFORE_CUT, Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.events import SendMessage
from plimsoll.core.session.execute.batches import advance, receive_outcome, send_intent


def context_at(now: float, epoch: int = 4, head_epoch: int = 10) -> EngineContext:
    context = EngineContext(epoch, EngineSettings())
    context.outbox.now = now
    context.fleet = FleetView({"h": HeadView("h", "c", head_epoch)})
    context.confirmed_batches.add("4.1")
    return context


def batch(**fields: Any) -> Batch:
    given: dict[str, Any] = {
        "id": "4.1", "head": "h", "head_epoch": 10, "source": "a", "target": "b", "target_head": "h", "replay": False,
        "prepare_seconds": 10.0, "drain_seconds": 30.0, "begun_at": 100.0, "since": 100.0,
        "members": {"x": "", "y": ""}, **fields,
    }  # fmt: skip
    return Batch(**given)


def told(state: str, reason: str = "", head_epoch: int = 10, **members: str) -> msg.Outcome:
    return msg.Outcome("4.1", 4, head_epoch, state, list(members.items()), reason)  # type: ignore[arg-type]  # words of the protocol as text


def after(now: float, one: Batch, *, stopping: bool = False, head_epoch: int = 10) -> Batch:
    return advance(context_at(now, head_epoch=head_epoch), one, stopping=stopping)


def said(now: float, one: Batch, *, greeted: bool = True) -> list[str]:
    context = context_at(now)
    if not greeted:
        context.confirmed_batches.clear()
    send_intent(context, one)
    return [effect.message.step for effect in context.outbox.effects if isinstance(effect, SendMessage)]  # type: ignore[union-attr]  # only commands are sent here


# ---------------------------------------------------------------- the way of a batch


def test_from_prepare_to_cut_to_done():
    one = receive_outcome(context_at(100.2), batch(), told("preparing", x="preparing", y="preparing"))
    assert after(100.2, one) is one
    one = receive_outcome(context_at(100.4), one, told("ready", x="attached", y="preparing"))
    assert one.ready_at == 100.4
    assert after(100.4, one) is one, "there is still a member to wait for"
    one = receive_outcome(context_at(100.5), one, told("ready", x="attached", y="stayed"))
    one = after(100.5, one)
    assert (one.intent, one.cut_at) == ("cut", 100.5)
    one = receive_outcome(context_at(100.6), one, told("cut", x="cut", y="stayed"))
    assert after(100.6, one) is one
    one = after(100.9, receive_outcome(context_at(100.9), one, told("done", x="moved", y="stayed")))
    assert (one.members, one.ended_at) == ({"x": "moved", "y": "stayed"}, 100.9)


def test_the_last_are_waited_for_a_while_only():
    one = receive_outcome(context_at(101.0), batch(), told("ready", x="attached", y="preparing"))
    assert after(102.9, one).intent == "prepare"
    assert after(103.0, one).intent == "cut"


def test_late_in_its_time_a_batch_is_cut_with_those_who_are_there():
    one = receive_outcome(context_at(106.5), batch(), told("ready", x="attached", y="preparing"))
    assert after(106.9, one).intent == "prepare"
    assert after(107.0, one).intent == "cut"


def test_without_an_attached_member_in_time_it_aborts():
    one = receive_outcome(context_at(100.2), batch(), told("preparing", x="preparing", y="preparing"))
    assert after(109.9, one) is one
    assert after(110.0, one).intent == "abort"


def test_a_cut_is_wanted_only_of_a_head_that_was_heard_in_this_life():
    one = batch(state="ready", members={"x": "attached", "y": "attached"}, ready_at=100.0)
    context = context_at(101.0)
    context.confirmed_batches.clear()
    assert advance(context, one, stopping=False) is one
    assert advance(context_at(101.0), one, stopping=False).intent == "cut"


@pytest.mark.parametrize("state", ["", "preparing", "ready"])
def test_stopped_before_the_cut_it_aborts(state: str):
    assert after(101.0, batch(state=state), stopping=True).intent == "abort"
    assert after(101.0, batch(state=state, intent="cut", cut_at=100.5), stopping=True).intent == "abort"


@pytest.mark.parametrize("state", ["cutting", "cut"])
def test_stopped_behind_the_cut_it_rolls_forward(state: str):
    assert after(101.0, batch(state=state), stopping=True).intent == "cut"
    one = batch(state=state, intent="cut", cut_at=100.5)
    assert after(101.0, one, stopping=True) is one


def test_an_abort_that_comes_too_late_rolls_forward():
    one = receive_outcome(context_at(101.0), batch(intent="abort", cut_at=100.5), told("cut", x="cut", y="stayed"))
    one = after(101.0, one)
    assert (one.intent, one.cut_at) == ("cut", 100.5)


def test_aborted_they_stay():
    one = after(
        101.0, receive_outcome(context_at(101.0), batch(intent="abort"), told("aborted", x="stayed", y="returned"))
    )
    assert (one.members, one.ended_at) == ({"x": "stayed", "y": "returned"}, 101.0)


def test_a_head_that_is_silent_before_the_cut_gives_up_by_itself():
    one = batch(intent="abort", since=104.0)
    assert after(114.9, one) is one
    one = after(115.0, one)
    assert (one.members, one.ended_at) == ({"x": "unknown", "y": "unknown"}, 115.0)
    assert not one.has_cut, "without a cut no member has moved"


def test_a_head_that_is_silent_after_the_cut_is_asked_for_its_subscribers():
    assert after(115.0, batch(intent="abort", since=101.0, cut_at=100.5)).intent == "resolve"
    one = batch(intent="cut", cut_at=101.0, state="cut")
    assert after(145.9, one) is one
    assert after(146.0, one).intent == "resolve"


# ---------------------------------------------------------------- answers that are late, lost, or of another time


def test_states_never_go_back():
    one = receive_outcome(context_at(101.0), batch(), told("cut", x="cut", y="moved"))
    for late in (told("preparing", x="preparing"), told("ready", x="attached", y="attached"), told("cut", y="cut")):
        assert receive_outcome(context_at(102.0), one, late) is one


@given(st.permutations(["preparing", "ready", "cutting", "cut", "done"]), st.integers(0, 5))
def test_in_any_order_the_last_state_is_the_highest(states: list[str], repeats: int):
    one = batch(intent="cut", cut_at=100.5)
    member = {"preparing": "preparing", "ready": "attached", "cutting": "cutting", "cut": "cut", "done": "moved"}
    highest = ""
    ranks = ["", *member]
    for state in [*states, *states[:repeats]]:
        one = receive_outcome(context_at(101.0), one, told(state, x=member[state], y="stayed"))
        highest = max(highest, state, key=ranks.index)
        assert one.state == highest
        assert one.members == {"x": member[highest], "y": "stayed"}


def test_an_unrequested_member_is_ignored():
    assert receive_outcome(context_at(101.0), batch(), told("ready", x="attached", z="attached")).members == {
        "x": "attached",
        "y": "",
    }


def test_what_an_older_head_epoch_says_is_of_no_concern():
    one = batch()
    assert receive_outcome(context_at(101.0), one, told("done", head_epoch=9, x="moved")) is one


@pytest.mark.parametrize("reason", ["starting: wait", "mediator-epoch: 4", "head-epoch: this head is in epoch 10"])
def test_refusals_that_say_nothing_of_the_batch(reason: str):
    one = batch()
    assert receive_outcome(context_at(101.0), one, told("failed", reason)) is one


def test_of_a_refused_batch_the_source_has_said_nothing():
    one = receive_outcome(context_at(101.0), batch(), told("failed", "full: 1024 sessions"))
    assert (one.members, one.ended_at, one.reason) == ({"x": "unknown", "y": "unknown"}, 101.0, "full: 1024 sessions")
    assert not one.has_cut


@pytest.mark.parametrize(
    ("answer", "head_epoch"),
    [(told("unknown", head_epoch=11), 11), (told("failed", "head-epoch: 11", head_epoch=11), 11), (None, 11)],
)
def test_a_head_that_restarted_before_the_cut_has_moved_no_member(answer: msg.Outcome | None, head_epoch: int):
    one = batch(state="ready", members={"x": "attached", "y": "attached"})
    if answer is not None:
        one = receive_outcome(context_at(101.0), one, answer)
    else:
        one = after(101.0, one, head_epoch=head_epoch)
    assert (one.members, one.ended_at) == ({"x": LOST_BEFORE_CUT, "y": LOST_BEFORE_CUT}, 101.0)


def test_a_head_that_restarted_after_the_cut_is_asked_for_its_subscribers():
    one = batch(state="cut", intent="cut", cut_at=100.5, members={"x": "cut", "y": "moved"})
    assert receive_outcome(context_at(101.0), one, told("unknown", head_epoch=11)).intent == "resolve"
    assert after(101.0, one, head_epoch=11).intent == "resolve"
    assert receive_outcome(context_at(101.0), one, told("failed", "starting: wait", head_epoch=11)) is one


def test_a_batch_that_never_arrived():
    own = batch()
    assert receive_outcome(context_at(101.0), own, told("unknown")) is own, "it is prepared again under the same name"
    older = replace(own, id="3.1")
    assert receive_outcome(context_at(101.0), older, told("unknown")).members == {
        "x": LOST_BEFORE_CUT,
        "y": LOST_BEFORE_CUT,
    }
    assert receive_outcome(context_at(101.0), replace(own, state="preparing"), told("unknown")).members == {
        "x": LOST_BEFORE_CUT,
        "y": LOST_BEFORE_CUT,
    }
    assert receive_outcome(context_at(101.0), own, told("failed", "forgotten: too old")).members == {
        "x": LOST_BEFORE_CUT,
        "y": LOST_BEFORE_CUT,
    }
    aborting = replace(own, intent="abort")
    assert receive_outcome(context_at(101.0), aborting, told("unknown")) is aborting, "a tombstone is wanted"


def test_nothing_changes_a_batch_that_has_ended():
    one = batch(ended_at=101.0, members={"x": "stayed", "y": "stayed"})
    assert receive_outcome(context_at(102.0), one, told("done", x="moved", y="moved")) is one


# ---------------------------------------------------------------- the subscribers of both ends


def resolve(at_source: list[str], at_target: list[str], now: float = 101.0, **members: str) -> Batch:
    one = batch(intent="resolve", since=100.5, cut_at=100.2, head_epoch=9, members=members)
    context = context_at(now)
    assert advance(context, one, stopping=False).ended_at == (None if now < 115.5 else now)
    for effect in list(context.outbox.effects):
        assert isinstance(effect, SendMessage)
        assert isinstance(effect.message, msg.ListSubscribers)
        names = at_source if effect.message.edge == "a" else at_target
        context.listings.receive("h", msg.SubscriberPage(effect.message.id, effect.message.edge, 10, names, False))
    return advance(context, one, stopping=False)


def test_the_ends_tell_what_became_of_the_members():
    one = resolve(["y"], ["x"], x="cut", y="cut", z="returned")
    assert (one.members, one.ended_at) == ({"x": "moved", "y": "stayed", "z": "returned"}, 101.0)


def test_who_is_at_neither_end_is_waited_for_and_then_unknown():
    one = resolve([], ["x"], x="cut", y="cut")
    assert (one.members, one.ended_at) == ({"x": "moved", "y": "cut"}, None)
    one = after(115.5, replace(one))
    assert one.members == {"x": "moved", "y": "unknown"}


def test_at_both_ends_is_at_neither():
    assert resolve(["x"], ["x"], x="cut").members == {"x": "cut"}


def test_ends_are_asked_again_but_not_in_a_hurry():
    one = batch(intent="resolve", since=100.0, cut_at=100.0, members={"x": "cut"})
    context = context_at(100.0)
    asked = 0
    for number in range(100):
        context.outbox.now = 100.0 + number / 20
        context.outbox.effects = []
        one = advance(context, one, stopping=False)
        for effect in context.outbox.effects:
            assert isinstance(effect, SendMessage)
            asked += 1
            assert isinstance(effect.message, msg.ListSubscribers)
            context.listings.receive("h", msg.SubscriberPage(effect.message.id, effect.message.edge, 10, [], False))
    assert 10 <= asked <= 14


def test_an_answer_ends_a_search():
    one = receive_outcome(context_at(101.0), batch(intent="resolve", cut_at=100.5), told("done", x="moved", y="moved"))
    assert after(101.0, one).members == {"x": "moved", "y": "moved"}


# ---------------------------------------------------------------- commands and reasons


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        ({}, "prepare"),
        ({"state": "preparing"}, "ask"),
        ({"intent": "cut", "state": "ready"}, "cut"),
        ({"intent": "cut", "state": "cutting"}, "ask"),
        ({"intent": "cut", "state": "cut"}, "ask"),
        ({"intent": "abort", "state": "ready"}, "abort"),
        ({"intent": "abort", "state": ""}, "abort"),
    ],
)
def test_what_is_wanted_is_said_until_it_is_answered(fields: dict[str, Any], step: str):
    assert said(101.0, batch(**fields)) == [step]


def test_an_inherited_batch_is_asked_for_unless_it_is_to_be_undone():
    assert said(101.0, batch(intent="cut", state="ready"), greeted=False) == ["ask"]
    assert said(101.0, batch(), greeted=False) == ["ask"]
    assert said(101.0, batch(intent="abort"), greeted=False) == ["abort"]


def test_a_search_says_nothing_to_the_head_as_a_command():
    assert said(101.0, batch(intent="resolve")) == []


def test_it_is_repeated_at_its_interval_and_not_before():
    context = context_at(101.0)
    for now, count in ((101.0, 1), (101.4, 1), (101.5, 2), (101.6, 2), (102.0, 3)):
        context.outbox.now = now
        send_intent(context, batch())
        assert len(context.outbox.effects) == count


def test_a_lossy_network_only_takes_longer():
    world = World(seed=8, faults=Faults(loss=0.6, repeat=0.3))
    names = world.fill("a", 10)
    uid = world.ask("s", source="a", target="b", select={"count": 10}, deadline="5m")
    world.until_over(uid, seconds=400)
    assert world.session(uid).phase in ("Succeeded", "RolledBack")
    assert world.serves["a"] | world.serves["b"] == set(names)
