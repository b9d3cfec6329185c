"""When a policy chooses, what its plan waits for, and what it is told of the other edges: each rule by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replaced
from tests.core.session.balanced import POLICY, Balanced
from tests.core.session.model import spec_of

from plimsoll.core import records as r
from plimsoll.core.balancing.pieces import encoded, pieces
from plimsoll.core.policies.fleet import BrokerLoad
from plimsoll.core.policies.padres import Padres
from plimsoll.core.policies.steps import Action, Plan
from plimsoll.core.session import Request, Send, Session, Settings, View
from plimsoll.core.session import record as stored
from plimsoll.core.session.choosing import (
    KEY_CHARACTERS,
    _stored,
    cut,
    forecast,
    is_by_policy,
    plan_of,
    sample_seconds,
)
from plimsoll.core.session.states import Answer, Said
from plimsoll.core.session.turn import Turn
from plimsoll.core.spec.parsing import block
from plimsoll.core.spec.policy import PolicySpec

NOW = 100.0
SERVED = {"a": [f"a{number:03}" for number in range(24)]}
NONE: frozenset[str] = frozenset()


def request(parent: str = "", **fields: Any) -> Request:
    return Request("s", "uid", 1, spec_of(scope="Local", **fields), parent)


@pytest.fixture
def world() -> Balanced:
    world = Balanced()
    world.fill("a", 24)
    for edge in world.edges.values():
        world.reports[edge.name] = edge.report()
    return world


def turn_of(world: Balanced, edges: str = "abc", **policy: Any) -> Turn:
    turn = Turn(3, Settings())
    turn.now = turn.viewed_at = NOW
    view = world.view()
    turn.view = View(
        view.heads,
        {name: view.edges[name] for name in edges},
        {"east": block(PolicySpec, {**POLICY, **policy})},
    )
    return turn


@pytest.fixture
def session() -> Session:
    """At the beginning of its sample, with the yes of b."""
    offer = stored.Offer(edge="b", metric="input", difference=0.4, answer="OK")
    return Session(
        uid="uid", name="s", phase="Sampling", requested_at=0.0, queued_at=0.0, phase_at=NOW, deadline_at=NOW + 100.0,
        by_policy=True, sources=["a"], targets=["b"], offers=[offer],
    )  # fmt: skip


def answer(turn: Turn, world: Balanced, session: Session) -> None:
    """The source has answered that it is BUSY."""
    turn.states.said["a"] = Said(session.uid, session.name, "BUSY", 1, NOW, 1, NOW, is_answered=True)
    turn.states.answers["a"] = Answer(session.name, "BUSY", "BUSY", world.reports["a"], NOW)


def give_profile(turn: Turn, world: Balanced) -> None:
    """Answer the question that was asked."""
    queries = [effect.record for effect in turn.effects if isinstance(effect, Send)]
    query = next(each for each in queries if isinstance(each, r.ProfileQuery))
    for piece in pieces(query, 7, encoded(world.edges["a"].profile(query.target))):
        turn.profiles.heard(turn, piece)


def plan(turn: Turn, session: Session) -> stored.Plan | None:
    return plan_of(turn, request(source={"name": "a"}, target={"name": "b"}), session, SERVED, NONE, NONE)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (request(source={"name": "a"}), True),
        (request(source={"name": "a"}, target={"name": "b"}), True),
        (request("parent", source={"name": "a"}), False),
        (request(source={"name": "a"}, select={"count": 2}), False),
        (request(source={"name": "a"}, action="Drain"), False),
        (request(source={"name": "a"}, target={"name": "w"}), False),
        (request(source={"name": "w"}), False),
    ],
)
def test_when_a_policy_chooses(world: Balanced, asked: Request, expected: bool):
    assert is_by_policy(turn_of(world, "abcw"), asked) is expected


def test_no_policy_chooses_for_a_request_without_a_source(world: Balanced):
    asked = request(source={"name": "a"}, target={"name": "b"})
    assert not is_by_policy(turn_of(world), replace(asked, spec=replace(asked.spec, source=None)))


@pytest.mark.parametrize(
    ("estimation", "seconds"),
    [
        ({}, 15.0),
        ({"type": "Press"}, 45.0),
        ({"type": "Press", "press": {"timeout": "7s"}}, 22.0),
        ({"type": "Ring", "press": {"timeout": "7s"}}, 15.0),
    ],
)
def test_only_press_is_waited_for_and_as_long_as_it_says(
    world: Balanced, session: Session, estimation: dict[str, Any], seconds: float
):
    assert sample_seconds(turn_of(world, estimation=estimation), session) == seconds


def test_a_fleet_of_two_edges_has_a_plan(world: Balanced, session: Session):
    turn = turn_of(world, "ab")
    answer(turn, world, session)
    assert plan(turn, session) is None
    give_profile(turn, world)
    made = plan(turn, session)
    assert made is not None
    assert made.members == 12


def test_the_report_stands_in_for_an_answer_only_when_none_has_come_in_time(world: Balanced, session: Session):
    turn = turn_of(world)
    assert plan(turn, session) is None
    give_profile(turn, world)
    turn.now = NOW + 2.9
    assert plan(turn, session) is None, "the source may still answer"
    turn.now = NOW + 3.0
    assert plan(turn, session) is not None
    turn.now = NOW
    answer(turn, world, session)
    assert plan(turn, session) is not None, "it has answered"


@pytest.mark.parametrize("unknown", ["profile", "a", "b"])
def test_there_is_no_plan_while_the_profile_or_a_load_is_not_known(world: Balanced, session: Session, unknown: str):
    world.reports.pop(unknown, None)
    turn = turn_of(world)
    turn.now = NOW + 3.0
    assert plan(turn, session) is None
    if unknown != "profile":
        give_profile(turn, world)
    assert plan(turn, session) is None


def test_a_policy_is_told_the_loads_of_the_cluster_that_are_known(
    world: Balanced, session: Session, monkeypatch: pytest.MonkeyPatch
):
    told: list[BrokerLoad] = []

    def look(self: Padres, *arguments: Any) -> Plan:
        others: Iterable[BrokerLoad] = arguments[6]
        told.extend(others)
        return original(self, *arguments)

    original = Padres.plan
    monkeypatch.setattr(Padres, "plan", look)
    world.head_of["d"], world.serves["d"] = "east-head", set()  # it reports nothing
    turn = turn_of(world, "abcdw")
    answer(turn, world, session)
    plan(turn, session)
    give_profile(turn, world)
    assert plan(turn, session) is not None
    assert [load.name for load in told] == ["a", "b", "c"]


def test_forecasts_are_told_to_four_places(world: Balanced):
    def load(ratio: float) -> BrokerLoad:
        return BrokerLoad.of({**world.reports["a"], "input_utilization": ratio, "output_utilization": 0.0})

    made = forecast(load(0.123456), load(0.056789))
    assert (made.utilization_before, made.utilization_after) == (0.1235, 0.0568)


def ready(world: Balanced, session: Session) -> Turn:
    """A turn in which there is nothing left to wait for."""
    turn = turn_of(world)
    answer(turn, world, session)
    plan(turn, session)
    give_profile(turn, world)
    return turn


def test_there_is_no_plan_without_a_yes_a_policy_or_the_edge_that_said_yes(world: Balanced, session: Session):
    turn = ready(world, session)
    assert plan(turn, session) is not None
    assert plan(turn, replaced(session, offers=[])) is None
    assert turn.view is not None
    whole = turn.view
    turn.view = View(whole.heads, whole.edges, {})
    assert plan(turn, session) is None
    turn.states.answers["b"] = Answer(session.name, "ASK", "OK", world.reports["b"], NOW)
    turn.view = View(whole.heads, {name: whole.edges[name] for name in "ac"}, whole.policies)
    assert plan(turn, session) is None


def test_who_is_moved_by_others_or_was_just_now_stays_and_is_told_so(world: Balanced, session: Session):
    asked = request(source={"name": "a"}, target={"name": "b"}, exclusions={"subscribers": ["a002"]})
    made = plan_of(ready(world, session), asked, session, {"a": SERVED["a"][:-1]}, {"a000", "a001"}, {"a001"})
    assert made is not None
    assert made.rejected == {
        "Excluded": ["a002"], "InAnotherSession": ["a001"], "MovedRecently": ["a000"], "NotServed": ["a023"],
    }  # fmt: skip
    assert not {"a000", "a001", "a002", "a023"} & set(made.pairs[0].members)


def test_what_subscribers_ask_for_is_cut_beyond_a_length():
    for length in (KEY_CHARACTERS - 1, KEY_CHARACTERS):
        assert cut("x" * length) == "x" * length
    assert cut("x" * (KEY_CHARACTERS + 1)) == "x" * (KEY_CHARACTERS - 3) + "..."


@pytest.mark.parametrize(("stopped", "told"), [("", "Exhausted"), ("no more moves", "Exhausted: no more moves")])
def test_why_a_plan_is_no_more(world: Balanced, stopped: str, told: str):
    load, other = (BrokerLoad.of(world.reports[name]) for name in "ab")
    made = Plan(Action("b", "input", 0.4), load, other, load, other, stopped=stopped)
    edges = turn_of(world).view.edges  # type: ignore[union-attr]
    assert _stored(made, edges["a"], edges["b"], {}, NOW, "Padres").stop == told
