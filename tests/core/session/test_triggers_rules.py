"""Triggers rule by rule: which of them become a session, when, and what it asks for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.made import fleet, request, session, turn_of

from plimsoll.core import records as r
from plimsoll.core.session import Create
from plimsoll.core.session.record import Batch, Offer, Plan
from plimsoll.core.session.triggers import KEPT_AT_MOST, LATE_REPORTS, grant, heed, superseded
from plimsoll.core.session.turn import Turn

PAUSE = 1.0
"""The interval of the policy."""


def trigger(epoch: int = 7, seq: int = 50, **item: Any) -> r.Trigger:
    action = r.ActionItem(**{"target": "b", "metric": "input", "difference": 0.3, **item})
    return r.Trigger("a", epoch, seq, [action], "wanted")


def made(turn: Turn, said: r.Trigger | None = None) -> list[Create]:
    """The sessions that become of a trigger."""
    turn.effects = []
    heed(turn, said or trigger())
    return [effect for effect in turn.effects if isinstance(effect, Create)]


def batch(outcome: str) -> Batch:
    return Batch(
        id="2.1", head="east-head", head_epoch=1, source="a", target="b", target_head="east-head", replay=False,
        prepare_seconds=1.0, drain_seconds=1.0, begun_at=0.0, ended_at=1.0, members={"x": outcome},
    )  # fmt: skip


def over(uid: str, at: float, **fields: Any) -> Any:
    return session(uid, **{"phase": "Rejected", "ended_at": at, "triggered": True, "sources": ["a"], **fields})


def test_an_edge_on_its_way_out_wants_nothing():
    assert made(turn_of())
    assert not made(turn_of(view=fleet(a={"leaving": True})))


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
    turn = turn_of(view=fleet(a={"report": {"epoch": 7, "seq": 50}}))
    assert bool(made(turn, trigger(epoch, seq))) == is_heeded


@pytest.mark.parametrize(
    ("ends", "at"),
    [
        ([90.0], 90.0 + PAUSE),
        ([80.0, 90.0], 90.0 + 2 * PAUSE),
        ([70.0, 80.0, 90.0], 90.0 + 4 * PAUSE),
        ([60.0, 70.0, 80.0, 90.0], 90.0 + 4 * PAUSE),
    ],
)
def test_the_pause_after_sessions_that_moved_nobody_doubles_up_to_four(ends: list[float], at: float):
    sessions = [over(f"s{number}", ended) for number, ended in enumerate(ends)]
    assert not made(turn_of(*sessions, now=at - 0.01))
    assert made(turn_of(*sessions, now=at))


def test_a_session_that_moved_somebody_is_followed_at_once_and_begins_the_count_anew():
    moved = over("moved", 85.0, phase="Succeeded", batches=[batch("moved")])
    assert made(turn_of(over("old", 80.0), moved, now=85.0))
    turn = turn_of(over("old", 80.0), moved, over("new", 90.0), now=90.0 + PAUSE)
    assert made(turn), "of three only the last moved nobody since"


def test_only_sessions_that_edges_wanted_count_for_the_pause():
    assert made(turn_of(over("s", 90.0, triggered=False), now=90.0))


def test_a_session_that_has_not_begun_is_known_by_the_source_it_asks_for():
    waiting = session("waiting")
    assert not made(turn_of(waiting, requests=(request("waiting", source="a"),)))
    assert made(turn_of(waiting, requests=(request("waiting", source="c"),)))
    assert made(turn_of(waiting, requests=(request("waiting", select={"count": 1}),))), "it names no source"
    assert made(turn_of(waiting)), "its object is not known"


@pytest.mark.parametrize(
    ("fields", "overloaded", "is_heeded"),
    [
        ({"by_policy": True}, ["input"], True),
        ({"by_policy": True}, [], False),
        ({"by_policy": False}, ["input"], False),
        ({"by_policy": True, "phase": "Draining"}, ["input"], False),
    ],
)
def test_overload_passes_only_a_policys_session_that_waits_for_loads_to_settle(
    fields: dict[str, Any], overloaded: list[str], is_heeded: bool
):
    running = session("s", **{"phase": "Stabilizing", "sources": ["a"], "targets": ["c"], **fields})
    assert bool(made(turn_of(running), trigger(overloaded=overloaded))) == is_heeded
    taking = session("s", **{"phase": "Stabilizing", "sources": ["c"], "targets": ["a"], **fields})
    assert bool(made(turn_of(taking), trigger(overloaded=overloaded))) == is_heeded


@pytest.mark.parametrize(
    ("difference", "text"),
    [(0.3, "300m"), (-1.0, "0m"), (float("nan"), "0m"), (float("inf"), "0m"), (1e300, "1000000000m")],
)
def test_a_difference_is_asked_for_as_it_is_and_bounded(difference: float, text: str):
    [create] = made(turn_of(), trigger(difference=difference, overloaded=["cpu"]))
    assert create.spec["candidates"] == [{"name": "b", "metric": "Input", "difference": text, "overloaded": ["Cpu"]}]


def test_a_trigger_that_comes_again_makes_no_second_session_while_the_first_is_made():
    turn = turn_of(now=100.0)
    assert made(turn)
    turn.now = 100.9
    assert not made(turn, trigger(seq=51))
    turn.now = 101.0
    assert made(turn, trigger(seq=52))


@pytest.mark.parametrize(("epoch", "seq"), [(0, 1), (1, 0)])
def test_the_first_trigger_of_an_edge_is_new_whatever_its_number(epoch: int, seq: int):
    assert made(turn_of(), trigger(epoch, seq))


@pytest.mark.parametrize("report", [{"epoch": 7}, {"seq": 999}, {"epoch": "7", "seq": 999}])
def test_a_report_without_its_number_makes_no_trigger_late(report: dict[str, Any]):
    assert made(turn_of(view=fleet(a={"report": report})), trigger(6, 1))


def test_overload_passes_while_loads_settle_also_after_sessions_that_have_ended():
    running = over("s", 0.0, phase="Stabilizing", ended_at=None, by_policy=True, batches=[batch("moved")])
    assert made(turn_of(over("old", 80.0), running, now=100.0), trigger(overloaded=["input"]))


def test_only_ended_sessions_that_edges_wanted_are_forgotten_before_their_time():
    ended = [over(f"t{number:03}", 10.0 + number) for number in range(KEPT_AT_MOST + 1)]
    others = [over("people", 1.0, triggered=False), over("open", 1.0, phase="Draining", ended_at=None)]
    every = [*others, *ended]
    turn = turn_of(*every, requests=tuple(request(each.uid, source="a") for each in every))
    assert [each.uid for each in superseded(turn)] == ["t000"]
    del turn.requests["t000"]
    assert list(superseded(turn)) == [], "its object has gone"


def busy(*edges: str) -> Any:
    """A session that runs between these."""
    return session(f"with-{'-'.join(edges)}", phase="Draining", sources=[edges[0]], targets=list(edges[1:]))


def test_while_all_that_could_take_are_in_sessions_a_trigger_waits_for_the_first_to_be_free():
    running = busy("c", "b")
    turn = turn_of(running, now=100.0)
    assert not made(turn)
    turn.book.close(replace(running, ended_at=100.4, phase="Succeeded"))
    turn.book.put(replace(running, ended_at=100.4, phase="Succeeded"))
    turn.now, turn.effects = 100.4, []
    grant(turn)
    assert [effect.name for effect in turn.effects if isinstance(effect, Create)] == ["balance-a-7-50"]
    assert not turn.wishes


@pytest.mark.parametrize(("state", "is_free"), [("OK", True), ("BUSY", True), ("STABILIZING", False), ("N/A", False)])
def test_a_trigger_waits_for_who_has_said_that_it_would_refuse(state: str, is_free: bool):
    """What an edge was in is known to be over before it says so; that it stabilises only it knows."""
    assert bool(made(turn_of(view=fleet(b={"report": {"state": state}})))) == is_free


def test_a_trigger_waits_for_two_looks_of_its_edge():
    running = busy("c", "b")
    turn = turn_of(running, now=100.0)
    assert not made(turn)
    turn.book.put(replace(running, ended_at=100.4, phase="Succeeded"))
    turn.now, turn.effects = 100.0 + 2 * PAUSE + 0.01, []
    grant(turn)
    assert not turn.effects
    assert not turn.wishes


def test_of_those_that_wait_who_is_overloaded_comes_first_and_then_who_differs_most():
    """All of a, b and c want the same edge, and one of them gets it."""
    cases: list[tuple[dict[str, tuple[float, list[Any]]], str]] = [
        ({"a": (0.5, []), "b": (0.2, ["input"])}, "b"), ({"a": (0.3, []), "b": (0.5, [])}, "b"),
        ({"a": (0.5, []), "b": (0.5, [])}, "a"),
    ]  # fmt: skip
    for wants, first in cases:
        turn = turn_of(now=100.0)
        for edge, (difference, overloaded) in wants.items():
            item = r.ActionItem("c", "input", difference, overloaded)
            turn.wishes[edge] = 100.0, r.Trigger(edge, 7, 50, [item], "wanted")
        turn.effects = []
        grant(turn)
        assert [effect.spec["source"]["name"] for effect in turn.effects if isinstance(effect, Create)] == [first]


def test_an_empty_plan_is_followed_at_once_by_what_else_is_wanted():
    """Its edge knows what came to nothing; unless others' sessions were in the way, which passes."""
    plan = Plan(hash="x", pairs=[], made_at=1.0)
    empty = over("s", 90.0, phase="Succeeded", reason="NothingToMove", plan=plan)
    assert made(turn_of(empty, now=90.0))
    passing = replace(plan, rejected={"MovedRecently": ["x"]})
    assert not made(turn_of(replace(empty, plan=passing), now=90.5))


def test_where_others_were_busy_the_pause_does_not_grow():
    offers = [Offer(edge="b", metric="input", difference=0.3, answer="STABILIZING")]
    sessions = [over(f"s{number}", 70.0 + number, offers=offers) for number in range(4)]
    assert not made(turn_of(*sessions, now=73.0 + PAUSE - 0.01))
    assert made(turn_of(*sessions, now=73.0 + PAUSE))
