"""Batches that heads carry out by themselves, rule by rule: commands, outcomes, and what ends a batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.core.session.alone import batch_of, context_at, request_of, session_of

from plimsoll.core.protocol.messages import PublisherOutcome
from plimsoll.core.session import HeadView
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.execute import head_batches
from plimsoll.core.session.execute.head_batches import HeadMoves
from plimsoll.core.session.state import SessionVerdict

NOT_UP = SessionVerdict(reason="HeadNotReady", message="h does not answer, or is starting", again=True)


def moves(**own: Any) -> HeadMoves:
    """A kind whose lost batches are resolved."""

    def lost(context: EngineContext, batch: Batch, why: str) -> Batch:
        return batch_of(reason=why, intent="resolve", since=context.now)

    return HeadMoves(**{"unready": lambda *_: None, "drain_seconds": lambda _, left: left / 2, "lost": lost, **own})


def outcome(state: Any, reason: str = "", head_epoch: int = 10) -> PublisherOutcome:
    return PublisherOutcome("4.1", 4, head_epoch, state, [], reason)


def received(batch: Batch, told: PublisherOutcome, *members: tuple[str, str]) -> Batch:
    return head_batches.receive_outcome(context_at(105.0), batch, told, list(members), moves())


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({}, ("move", 0.5)),
        ({"state": "preparing"}, ("ask", 1.0)),
        ({"id": "3.1"}, ("ask", 1.0)),
        ({"intent": "abort"}, ("abort", 0.5)),
        ({"intent": "abort", "state": "preparing"}, ("abort", 0.5)),
    ],
)
def test_a_command_is_repeated_until_it_is_confirmed(fields: dict[str, Any], command: tuple[str, float]):
    assert head_batches.next_command(context_at(105.0), batch_of(**fields)) == command


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"ended_at": 104.0}, outcome("done")),
        ({"intent": "resolve"}, outcome("done")),
        ({}, outcome("done", head_epoch=9)),
        ({}, outcome("failed", "starting: not yet")),
        ({"state": "preparing"}, outcome("failed", "full: no more")),
        ({}, outcome("unknown")),
    ],
)
def test_outcomes_that_change_nothing(fields: dict[str, Any], told: PublisherOutcome):
    batch = batch_of(**fields)
    assert received(batch, told, ("x", "moved")) is batch


def test_what_is_refused_stays():
    batch = received(batch_of(), outcome("failed", "full: no more"))
    assert (batch.ended_at, batch.reason, batch.members) == (105.0, "full: no more", {"x": "stayed", "y": "stayed"})


@pytest.mark.parametrize("fields", [{"state": "preparing"}, {"id": "3.1"}])
def test_a_batch_that_its_head_does_not_know_is_lost(fields: dict[str, Any]):
    batch = received(batch_of(**fields), outcome("unknown"))
    assert (batch.intent, batch.reason) == ("resolve", "h does not know it")


def test_members_progress_with_their_reasons_and_have_a_cut_once_one_may_have_left():
    batch = received(batch_of(), outcome("moving"), ("x", "asked"), ("y", "stayed: it is gone"))
    assert batch.members == {"x": "preparing", "y": "stayed"}
    assert (batch.state, batch.reason, batch.cut_at) == ("preparing", "it is gone", None)
    batch = received(batch, outcome("done"), ("x", "moved"))
    assert (batch.state, batch.members["x"], batch.cut_at) == ("done", "moved", 105.0)


# ---------------------------------------------------------------- steps


def after(now: float, *batches: Batch, own: HeadMoves | None = None, head_epoch: int = 10, **fields: Any) -> Batch:
    context = context_at(now)
    context.fleet = replace(context.fleet, heads={"h": HeadView("h", "east", head_epoch)})
    session = session_of(batches=list(batches), **fields)
    return head_batches.step_moving(context, request_of(), session, moves() if own is None else own).batches[-1]


def test_a_batch_is_of_one_pair_and_has_its_share_of_the_time():
    batch = after(101.0)
    assert (batch.members, batch.head, batch.prepare_seconds, batch.drain_seconds) == (
        {"x": "", "y": ""}, "h", 10.0, 27.0,
    )  # fmt: skip


def test_a_batch_ends_with_its_last_member_or_is_lost_with_its_head_or_its_time():
    assert after(105.0, batch_of(state="done", members={"x": "moved", "y": ""})).members["y"] == "unknown"
    assert after(105.0, batch_of(), head_epoch=11).reason == "h has restarted"
    assert after(139.9, batch_of()).reason == ""
    assert after(140.0, batch_of()).reason == "h does not report the outcome"
    assert after(140.0, batch_of(reason="x is gone")).reason == "x is gone"


def test_a_stop_aborts_what_may_still_stay():
    stopped = SessionVerdict(reason="Stopped", message="stopped as requested")
    assert after(105.0, batch_of(), verdict=stopped).intent == "abort"
    resolved = after(105.0, batch_of(intent="resolve"), verdict=stopped)
    assert resolved.intent == "resolve"


def test_nothing_begins_while_a_head_is_not_up():
    session = session_of()
    own = moves(unready=lambda *_: NOT_UP)
    waiting = head_batches.step_moving(context_at(101.0), request_of(), session, own)
    assert (waiting.reason, waiting.batches, waiting.verdict) == ("HeadNotReady", [], None)
    assert head_batches.step_moving(context_at(115.0), request_of(), session, own).verdict == NOT_UP


@pytest.mark.parametrize(("lists_rest", "phase"), [(True, "Stabilizing"), (False, "RolledBack")])
def test_what_remains_is_listed_even_if_none_has_moved(lists_rest: bool, phase: str):
    session = session_of(batches=[batch_of(members={"x": "stayed", "y": "stayed"}, ended_at=104.0)])
    own = moves(lists_rest=lambda _: lists_rest)
    assert head_batches.step_moving(context_at(105.0), request_of(), session, own).phase == phase
