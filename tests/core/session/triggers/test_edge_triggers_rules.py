"""Triggers rule by rule: which of them become a session, when, and what it asks for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.made import context_of, fleet, request, session

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import CreateSession
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.session_plan import Offer, SessionPlan
from plimsoll.core.session.triggers.edge_triggers import (
    ENDED_SESSIONS_AT_MOST,
    LATE_REPORTS,
    create_due_sessions,
    receive_trigger,
    surplus_sessions,
)

PAUSE = 1.0
"""The interval of the policy."""


def trigger(epoch: int = 7, seq: int = 50, **item: Any) -> msg.Trigger:
    action = msg.ActionItem(**{"target": "b", "metric": "input", "difference": 0.3, **item})
    return msg.Trigger("a", epoch, seq, [action], "wanted")


def made(context: EngineContext, said: msg.Trigger | None = None) -> list[CreateSession]:
    """The sessions that a trigger creates."""
    context.outbox.effects = []
    receive_trigger(context, said or trigger())
    return [effect for effect in context.outbox.effects if isinstance(effect, CreateSession)]


def batch(outcome: str) -> Batch:
    return Batch(
        id="2.1", head="east-head", head_epoch=1, source="a", target="b", target_head="east-head", replay=False,
        prepare_seconds=1.0, drain_seconds=1.0, begun_at=0.0, ended_at=1.0, members={"x": outcome},
    )  # fmt: skip


def over(uid: str, at: float, **fields: Any) -> Any:
    return session(uid, **{"phase": "Rejected", "ended_at": at, "triggered": True, "sources": ["a"], **fields})


def from_edge(edge: str, seq: int = 50, **item: Any) -> msg.Trigger:
    return replace(trigger(seq=seq, **item), edge=edge)


def test_a_target_is_not_meant_for_a_second_session_before_the_first_has_asked_it():
    """The object of a session has to come back from the store; until it has asked its target, it holds no edge."""
    context = context_of()
    [first] = made(context)
    assert not made(context, from_edge("c")), "b is meant for the session of a"
    context.table.put(session("u", name=first.name, triggered=True, phase="Negotiating", sources=["a"]))
    assert not made(context, from_edge("c", 51)), "it has asked none"
    context.table.put(session("u", name=first.name, triggered=True, phase="Rejected", sources=["a"], ended_at=100.0))
    assert made(context, from_edge("c", 52)), "it is over"


def test_a_session_whose_object_never_comes_back_keeps_no_edge_for_longer_than_it_takes_to_ask_again():
    context = context_of()
    assert made(context)
    context.outbox.now += context.timings.ask
    assert made(context, from_edge("c"))


@pytest.mark.parametrize(("reported_ago", "is_heeded"), [(3.0, False), (1.0, True)])
def test_an_edge_that_has_been_given_load_since_its_last_report_is_no_target(reported_ago: float, is_heeded: bool):
    given = over("s", 98.0, sources=["c"], targets=["b"], phase="Succeeded", batches=[batch("moved")])
    context = context_of(given, view=fleet(b={"report_age_seconds": reported_ago}))
    assert bool(made(context, trigger(overloaded=["input"]))) == is_heeded


def test_an_edge_that_stabilises_is_no_target_of_an_overloaded_one():
    settling = session("s", phase="Stabilizing", triggered=True, kind="balance", sources=["c"], targets=["b"])
    assert not made(context_of(settling), trigger(overloaded=["input"]))
    assert made(context_of(replace(settling, targets=["w"], sources=["a"])), trigger(overloaded=["input"]))


def test_an_edge_on_its_way_out_wants_nothing():
    assert made(context_of())
    assert not made(context_of(view=fleet(a={"leaving": True})))


@pytest.mark.parametrize(
    ("epoch", "seq", "is_heeded"),
    [
        (7, 50 - LATE_REPORTS, True),
        (7, 49 - LATE_REPORTS, False),
        (6, 999, False),
        (8, 1, True),
    ],
)
def test_a_trigger_is_late_by_the_reports_of_the_same_life_of_its_edge(epoch: int, seq: int, is_heeded: bool):
    context = context_of(view=fleet(a={"report": {"epoch": 7, "seq": 50}}))
    assert bool(made(context, trigger(epoch, seq))) == is_heeded


@pytest.mark.parametrize(
    ("ends", "at"),
    [
        ([90.0], 90.0 + PAUSE),
        ([80.0, 90.0], 90.0 + 2 * PAUSE),
        ([70.0, 80.0, 90.0], 90.0 + 4 * PAUSE),
        ([60.0, 70.0, 80.0, 90.0], 90.0 + 4 * PAUSE),
    ],
)
def test_the_pause_after_sessions_that_moved_no_subscriber_doubles_up_to_four(ends: list[float], at: float):
    sessions = [over(f"s{number}", ended) for number, ended in enumerate(ends)]
    assert not made(context_of(*sessions, now=at - 0.01))
    assert made(context_of(*sessions, now=at))


def test_a_session_that_moved_a_subscriber_is_followed_at_once_and_resets_the_count():
    moved = over("moved", 85.0, phase="Succeeded", batches=[batch("moved")])
    assert made(context_of(over("old", 80.0), moved, now=85.0))
    context = context_of(over("old", 80.0), moved, over("new", 90.0), now=90.0 + PAUSE)
    assert made(context), "of three only the last moved no subscriber"


def test_only_sessions_that_edges_wanted_count_for_the_pause():
    assert made(context_of(over("s", 90.0, triggered=False), now=90.0))


def test_a_session_that_has_not_begun_is_known_by_the_source_it_asks_for():
    waiting = session("waiting")
    assert not made(context_of(waiting, requests=(request("waiting", source="a"),)))
    assert made(context_of(waiting, requests=(request("waiting", source="c"),)))
    assert made(context_of(waiting, requests=(request("waiting", select={"count": 1}),))), "it names no source"
    assert made(context_of(waiting)), "its object is not known"


@pytest.mark.parametrize(
    ("fields", "overloaded", "is_heeded"),
    [
        ({"kind": "balance"}, ["input"], True),
        ({"kind": "balance"}, [], False),
        ({"kind": "move"}, ["input"], False),
        ({"kind": "balance", "phase": "Draining"}, ["input"], False),
    ],
)
def test_overload_passes_only_a_policys_session_that_waits_for_loads_to_settle(
    fields: dict[str, Any], overloaded: list[str], is_heeded: bool
):
    running = session("s", **{"phase": "Stabilizing", "sources": ["a"], "targets": ["c"], **fields})
    assert bool(made(context_of(running), trigger(overloaded=overloaded))) == is_heeded
    taking = session("s", **{"phase": "Stabilizing", "sources": ["c"], "targets": ["a"], **fields})
    assert bool(made(context_of(taking), trigger(overloaded=overloaded))) == is_heeded


@pytest.mark.parametrize(
    ("difference", "text"),
    [(0.3, "300m"), (-1.0, "0m"), (float("nan"), "0m"), (float("inf"), "0m"), (1e300, "1000000000m")],
)
def test_a_difference_is_asked_for_as_it_is_and_bounded(difference: float, text: str):
    [create] = made(context_of(), trigger(difference=difference, overloaded=["cpu"]))
    assert create.spec["candidates"] == [{"name": "b", "metric": "Input", "difference": text, "overloaded": ["Cpu"]}]


def test_a_trigger_that_comes_again_makes_no_second_session_while_the_first_is_made():
    context = context_of(now=100.0)
    assert made(context)
    context.outbox.now = 100.9
    assert not made(context, trigger(seq=51))
    context.outbox.now = 101.0
    assert made(context, trigger(seq=52))


@pytest.mark.parametrize(("epoch", "seq"), [(0, 1), (1, 0)])
def test_the_first_trigger_of_an_edge_is_new_under_any_number(epoch: int, seq: int):
    assert made(context_of(), trigger(epoch, seq))


@pytest.mark.parametrize("report", [{"epoch": 7}, {"seq": 999}, {"epoch": "7", "seq": 999}])
def test_a_report_without_its_number_makes_no_trigger_late(report: dict[str, Any]):
    assert made(context_of(view=fleet(a={"report": report})), trigger(6, 1))


def test_overload_passes_while_loads_settle_also_after_sessions_that_have_ended():
    running = over("s", 0.0, phase="Stabilizing", ended_at=None, kind="balance", batches=[batch("moved")])
    assert made(context_of(over("old", 80.0), running, now=100.0), trigger(overloaded=["input"]))


def test_only_ended_sessions_that_edges_wanted_are_forgotten_before_their_time():
    ended = [over(f"t{number:03}", 10.0 + number) for number in range(ENDED_SESSIONS_AT_MOST + 1)]
    others = [over("people", 1.0, triggered=False), over("open", 1.0, phase="Draining", ended_at=None)]
    every = [*others, *ended]
    context = context_of(*every, requests=tuple(request(each.uid, source="a") for each in every))
    assert [each.uid for each in surplus_sessions(context)] == ["t000"]
    del context.requests["t000"]
    assert list(surplus_sessions(context)) == [], "its object has gone"


def busy(*edges: str) -> Any:
    """A session that runs between these."""
    return session(f"with-{'-'.join(edges)}", phase="Draining", sources=[edges[0]], targets=list(edges[1:]))


def test_while_all_that_could_take_are_in_sessions_a_trigger_waits_for_the_first_to_be_free():
    running = busy("c", "b")
    context = context_of(running, now=100.0)
    assert not made(context)
    context.table.release(replace(running, ended_at=100.4, phase="Succeeded"))
    context.table.put(replace(running, ended_at=100.4, phase="Succeeded"))
    context.outbox.now, context.outbox.effects = 100.4, []
    create_due_sessions(context)
    assert [effect.name for effect in context.outbox.effects if isinstance(effect, CreateSession)] == ["balance-a-7-50"]
    assert not context.waiting_triggers


@pytest.mark.parametrize(("state", "is_free"), [("OK", True), ("BUSY", True), ("STABILIZING", False), ("N/A", False)])
def test_a_trigger_waits_for_who_has_said_that_it_would_refuse(state: str, is_free: bool):
    """The end of an edge's session is known before the edge reports it; only the edge knows that it stabilises."""
    assert bool(made(context_of(view=fleet(b={"report": {"state": state}})))) == is_free


def test_a_trigger_waits_for_two_looks_of_its_edge():
    running = busy("c", "b")
    context = context_of(running, now=100.0)
    assert not made(context)
    context.table.put(replace(running, ended_at=100.4, phase="Succeeded"))
    context.outbox.now, context.outbox.effects = 100.0 + 2 * PAUSE + 0.01, []
    create_due_sessions(context)
    assert not context.outbox.effects
    assert not context.waiting_triggers


def test_of_those_that_wait_who_is_overloaded_comes_first_and_then_who_differs_most():
    """All of a, b and c want the same edge, and one of them gets it."""
    cases: list[tuple[dict[str, tuple[float, list[Any]]], str]] = [
        ({"a": (0.5, []), "b": (0.2, ["input"])}, "b"), ({"a": (0.3, []), "b": (0.5, [])}, "b"),
        ({"a": (0.5, []), "b": (0.5, [])}, "a"),
    ]  # fmt: skip
    for wants, first in cases:
        context = context_of(now=100.0)
        for edge, (difference, overloaded) in wants.items():
            item = msg.ActionItem("c", "input", difference, overloaded)
            context.waiting_triggers[edge] = 100.0, msg.Trigger(edge, 7, 50, [item], "wanted")
        context.outbox.effects = []
        create_due_sessions(context)
        created = [effect for effect in context.outbox.effects if isinstance(effect, CreateSession)]
        assert [effect.spec["source"]["name"] for effect in created] == [first]


def test_an_empty_plan_is_followed_at_once_by_what_else_is_wanted():
    """Its edge knows which actions failed, unless other sessions were in the way, which passes."""
    plan = SessionPlan(hash="x", pairs=[], made_at=1.0)
    empty = over("s", 90.0, phase="Succeeded", reason="NothingToMove", plan=plan)
    assert made(context_of(empty, now=90.0))
    passing = replace(plan, rejected={"MovedRecently": ["x"]})
    assert not made(context_of(replace(empty, plan=passing), now=90.5))


def test_where_others_were_busy_the_pause_does_not_grow():
    offers = [Offer(edge="b", metric="input", difference=0.3, answer="STABILIZING")]
    sessions = [over(f"s{number}", 70.0 + number, offers=offers) for number in range(4)]
    assert not made(context_of(*sessions, now=73.0 + PAUSE - 0.01))
    assert made(context_of(*sessions, now=73.0 + PAUSE))
