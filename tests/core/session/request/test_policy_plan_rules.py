"""When a policy chooses, what its plan waits for, and what it knows of the other edges: each rule by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replaced
from tests.core.session.alone import batch_of
from tests.core.session.balanced import POLICY, Balanced
from tests.core.session.model import spec_of

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.plan import OffloadPlan
from plimsoll.core.policies.padres import Padres
from plimsoll.core.profiling.profile_codec import encode_profile, split_reply
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import EngineSettings, FleetView, SendMessage, Session, SessionRequest
from plimsoll.core.session import session_plan as stored
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.reservations import AnsweredReservation, SentReservation
from plimsoll.core.session.request.policy_plan import (
    make_policy_plan,
    sample_seconds,
)
from plimsoll.core.session.request.session_kind import is_by_policy
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

NOW = 100.0
SERVED = {"a": [f"a{number:03}" for number in range(24)]}
NONE: frozenset[str] = frozenset()


def request(parent: str = "", **fields: Any) -> SessionRequest:
    return SessionRequest("s", "uid", 1, spec_of(scope="Local", **fields), parent)


@pytest.fixture
def world() -> Balanced:
    world = Balanced()
    world.fill("a", 24)
    for edge in world.edges.values():
        world.reports[edge.name] = edge.report()
    return world


def context_of(world: Balanced, edges: str = "abc", **policy: Any) -> EngineContext:
    context = EngineContext(3, EngineSettings())
    context.outbox.now = context.fleet_observed_at = NOW
    view = world.view()
    context.fleet = FleetView(
        view.heads,
        {name: view.edges[name] for name in edges},
        {"east": parse_block(PolicySpec, {**POLICY, **policy})},
    )
    return context


@pytest.fixture
def session() -> Session:
    """At the beginning of its sample, with the yes of b."""
    offer = stored.Offer(edge="b", metric="input", difference=0.4, answer="OK")
    return Session(
        uid="uid", name="s", phase="Sampling", requested_at=0.0, queued_at=0.0, phase_at=NOW, deadline_at=NOW + 100.0,
        kind="balance", sources=["a"], targets=["b"], offers=[offer],
    )  # fmt: skip


def answer(context: EngineContext, world: Balanced, session: Session) -> None:
    """The source has answered that it is BUSY."""
    context.reservations.sent["a"] = SentReservation(
        session.uid, session.name, "BUSY", 1, NOW, 1, NOW, is_answered=True
    )
    context.reservations.answered["a"] = AnsweredReservation(session.name, "BUSY", world.reports["a"], NOW)


def give_profile(context: EngineContext, world: Balanced) -> None:
    """Answer the question that was asked."""
    queries = [effect.message for effect in context.outbox.effects if isinstance(effect, SendMessage)]
    query = next(each for each in queries if isinstance(each, msg.ProfileQuery))
    for piece in split_reply(query, 7, encode_profile(world.edges["a"].profile(query.target))):
        context.profile_queries.receive_profile(piece)


def plan(context: EngineContext, session: Session) -> stored.SessionPlan | None:
    return make_policy_plan(context, request(source={"name": "a"}, target={"name": "b"}), session, SERVED, NONE, NONE)


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
def test_when_a_policy_chooses(world: Balanced, asked: SessionRequest, expected: bool):
    assert is_by_policy(asked, context_of(world, "abcw").fleet) is expected


def test_no_policy_chooses_for_a_request_without_a_source(world: Balanced):
    asked = request(source={"name": "a"}, target={"name": "b"})
    assert not is_by_policy(replace(asked, spec=replace(asked.spec, source=None)), context_of(world).fleet)


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
    assert sample_seconds(context_of(world, estimation=estimation), session) == seconds


def test_a_fleet_of_two_edges_has_a_plan(world: Balanced, session: Session):
    context = context_of(world, "ab")
    answer(context, world, session)
    assert plan(context, session) is None
    give_profile(context, world)
    made = plan(context, session)
    assert made is not None
    assert made.members == 12


def test_the_report_stands_in_for_an_answer_only_when_none_has_come_in_time(world: Balanced, session: Session):
    context = context_of(world)
    assert plan(context, session) is None
    give_profile(context, world)
    context.outbox.now = NOW + 2.9
    assert plan(context, session) is None, "the source may still answer"
    context.outbox.now = NOW + 3.0
    assert plan(context, session) is not None
    context.outbox.now = NOW
    answer(context, world, session)
    assert plan(context, session) is not None, "it has answered"


@pytest.mark.parametrize("unknown", ["profile", "a", "b"])
def test_there_is_no_plan_while_the_profile_or_a_load_is_not_known(world: Balanced, session: Session, unknown: str):
    world.reports.pop(unknown, None)
    context = context_of(world)
    context.outbox.now = NOW + 3.0
    assert plan(context, session) is None
    if unknown != "profile":
        give_profile(context, world)
    assert plan(context, session) is None


def test_a_policy_is_told_the_loads_of_the_cluster_that_are_known(
    world: Balanced, session: Session, monkeypatch: pytest.MonkeyPatch
):
    told: list[BrokerLoad] = []

    def look(self: Padres, *arguments: Any) -> OffloadPlan:
        others: Iterable[BrokerLoad] = arguments[6]
        told.extend(others)
        return original(self, *arguments)

    original = Padres.plan
    monkeypatch.setattr(Padres, "plan", look)
    world.head_of["d"], world.serves["d"] = "east-head", set()  # it reports nothing
    context = context_of(world, "abcdw")
    answer(context, world, session)
    plan(context, session)
    give_profile(context, world)
    assert plan(context, session) is not None
    assert [load.name for load in told] == ["a", "b", "c"]


def test_across_clusters_a_policy_is_told_the_loads_of_both(
    world: Balanced, session: Session, monkeypatch: pytest.MonkeyPatch
):
    """b and c are of the cluster west for once: what moves from a to b counts for c too."""
    told: list[BrokerLoad] = []

    def look(self: Padres, *arguments: Any) -> OffloadPlan:
        told.extend(arguments[6])
        return original(self, *arguments)

    original = Padres.plan
    monkeypatch.setattr(Padres, "plan", look)
    context = context_of(world)
    edges = {name: edge if name == "a" else replace(edge, cluster="west") for name, edge in context.fleet.edges.items()}
    context.fleet = replace(context.fleet, edges=edges)
    answer(context, world, session)
    plan(context, session)
    give_profile(context, world)
    assert plan(context, session) is not None
    assert [load.name for load in told] == ["a", "b", "c"]


@pytest.mark.parametrize("overloaded", [[], ["input"]])
def test_who_was_moved_away_from_the_target_stays_unless_the_source_is_overloaded(
    world: Balanced, session: Session, overloaded: list[Any]
):
    context = ready(world, replaced(session, offers=[replaced(session.offers[0], overloaded=overloaded)]))
    delivered = sum(load.output_rate for name in "abc" if (load := context.loads.current(name)) is not None)
    pair = stored.PlannedPair(source="b", target="a", source_head="h", target_head="h", members=SERVED["a"])
    before = stored.SessionPlan(hash="h", pairs=[pair], made_at=1.0, deliveries_per_second=delivered)
    batch = batch_of(members=dict.fromkeys(SERVED["a"], "moved"), ended_at=1.0)
    context.table.put(replaced(session, uid="e", phase="Succeeded", plan=before, batches=[batch]))
    made = plan(context, replaced(session, offers=[replaced(session.offers[0], overloaded=overloaded)]))
    assert made is not None
    assert ("MovedAway" in made.rejected) == (not overloaded)
    assert bool(made.members) == bool(overloaded)


def ready(world: Balanced, session: Session) -> EngineContext:
    """A context in which there is nothing left to wait for."""
    context = context_of(world)
    answer(context, world, session)
    plan(context, session)
    give_profile(context, world)
    return context


def test_there_is_no_plan_without_a_yes_a_policy_or_the_edge_that_said_yes(world: Balanced, session: Session):
    context = ready(world, session)
    assert plan(context, session) is not None
    assert plan(context, replaced(session, offers=[])) is None
    whole = context.fleet
    context.fleet = FleetView(whole.heads, whole.edges, {})
    assert plan(context, session) is None
    context.reservations.answered["b"] = AnsweredReservation(session.name, "OK", world.reports["b"], NOW)
    context.fleet = FleetView(whole.heads, {name: whole.edges[name] for name in "ac"}, whole.policies)
    assert plan(context, session) is None


def test_who_is_moved_by_others_or_was_just_now_stays_and_is_told_so(world: Balanced, session: Session):
    asked = request(source={"name": "a"}, target={"name": "b"}, exclusions={"subscribers": ["a002"]})
    made = make_policy_plan(ready(world, session), asked, session, {"a": SERVED["a"][:-1]}, {"a000", "a001"}, {"a001"})
    assert made is not None
    assert made.rejected == {
        "Excluded": ["a002"], "InAnotherSession": ["a001"], "MovedRecently": ["a000"], "NotServed": ["a023"],
    }  # fmt: skip
    assert not {"a000", "a001", "a002", "a023"} & set(made.pairs[0].members)
