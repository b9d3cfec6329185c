"""Negotiation for a policy: which edges are asked, in what order, what the answers do, and what the session keeps."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.balanced import Balanced

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import Session


@pytest.fixture
def world() -> Balanced:
    """Edges send nothing by themselves."""
    world = Balanced(seed=1)
    world.fill("a", 24)
    world.fill("b", 6)
    for edge in world.edges.values():
        edge.sensing._trigger = lambda: None  # type: ignore[assignment, return-value]  # a stand-in, which says nothing
    world.run(6.0)
    return world


def balance(world: Balanced, name: str = "s", **fields: Any) -> Session:
    """A session that names a source and lets the policy choose, at its end."""
    uid = world.ask(name, **{"source": "a", "limits": {"moveInterval": "0s"}, **fields})
    world.until_over(uid)
    return world.session(uid)


def candidates(*edges: str, metric: str = "Input") -> list[dict[str, str]]:
    return [{"name": edge, "metric": metric, "difference": "300m"} for edge in edges]


def answers(session: Session) -> list[tuple[str, str]]:
    return [(offer.edge, offer.answer) for offer in session.offers]


def test_without_a_list_the_edge_that_differs_most_is_asked_first(world: Balanced):
    counts = world.counts()
    session = balance(world)
    assert session.phase == "Succeeded"
    assert counts[0] > counts[1] > counts[2]
    assert session.offers[0].edge == "c"
    assert [offer.difference for offer in session.offers] == sorted(
        (offer.difference for offer in session.offers), reverse=True
    )
    assert session.targets == ["c"]


def test_a_target_that_is_named_is_the_only_one_asked(world: Balanced):
    session = balance(world, target="b")
    assert {offer.edge for offer in session.offers} == {"b"}
    assert session.phase == "Succeeded"


def test_an_excluded_edge_is_not_asked(world: Balanced):
    session = balance(world, exclusions={"brokers": ["c"]})
    assert {offer.edge for offer in session.offers} == {"b"}


def test_each_refusal_is_recorded_and_the_next_is_asked(world: Balanced):
    world.edges["c"].sensing.reservation.take(msg.Reservation(0, 1, "c", "other", "BUSY", 600.0), "OK", world.now)
    session = balance(world, candidates=candidates("c", "b"))
    assert answers(session) == [("c", "BUSY"), ("b", "OK")]
    assert session.targets == ["b"]
    assert [tell.reason for tell in world.told if tell.name == "s" and tell.reason == "Refused"] == ["Refused"]


def test_what_is_down_cordoned_or_silent_is_passed_over(world: Balanced):
    world.cordoned = {"b"}
    world.down = {"c"}
    world.run(2.0)
    session = balance(world, candidates=candidates("b", "c"))
    assert (session.phase, session.reason) == ("Rejected", "NobodyTakes")
    assert answers(session) == [("b", "TargetCordoned"), ("c", "TargetNotReady")]
    assert "b is TargetCordoned, c is TargetNotReady" in session.message
    world.cordoned, world.down = set(), set()
    world.run(2.0)
    world.edges["c"].sensing.on_reservation = lambda reservation: None
    session = balance(world, "t", candidates=candidates("c", "b"))
    assert answers(session) == [("c", "NoAnswer"), ("b", "OK")]


def test_an_edge_that_was_asked_and_is_not_needed_is_released(world: Balanced):
    edge = world.edges["c"]
    post, world._post = world._post, lambda way, what: None
    uid = world.ask("s", source="a", candidates=candidates("c", "b"))
    world._post = post
    world.until(lambda: edge.sensing.state == "BUSY")
    world.change(uid, stop=True)
    world.until_over(uid)
    world.run(2.0)
    assert edge.sensing.state != "BUSY"


def test_one_edge_is_asked_for_one_session_at_a_time(world: Balanced):
    one = world.ask("one", source="a", candidates=candidates("c"))
    two = world.ask("two", source="b", candidates=candidates("c"))
    world.until_over(one, two)
    assert sorted([*answers(world.session(one)), *answers(world.session(two))]) == [("c", "BUSY"), ("c", "OK")]


def test_edges_of_another_cluster_are_not_asked(world: Balanced):
    session = balance(world, candidates=candidates("w", "v"))
    assert (session.phase, session.reason) == ("Rejected", "NobodyTakes")
    assert not session.offers


def test_where_nothing_is_known_of_loads_the_session_waits_and_then_says_so(world: Balanced):
    world.reports.clear()
    world._reported_at = float("inf")
    world.mediator._context.reservations.answered.clear()
    world.run(1.5)
    session = balance(world)
    assert (session.phase, session.reason) == ("Rejected", "NoLoad")


def test_a_policy_chooses_within_its_cluster_only(world: Balanced):
    for name, fields in (("s", {"target": "w", "scope": "Global"}), ("t", {"source": "w"}), ("u", {"source": "east"})):
        session = balance(world, name, **fields)
        assert (session.phase, session.reason) == ("Rejected", "NoPolicy"), name


def test_a_plan_that_waits_for_approval_reserves_no_edge_and_is_negotiated_again(world: Balanced):
    uid = world.ask("s", source="a", candidates=candidates("c"), approval={"policy": "Manual"})
    world.until(lambda: world.mediator.sessions[uid].phase == "Planned")
    world.run(3.0)
    assert {world.edges[name].sensing.state for name in "ac"} == {"OK"}
    plan = world.session(uid).plan
    assert plan is not None
    world.change(uid, approval={"planHash": plan.hash})
    world.until_over(uid)
    session = world.session(uid)
    assert session.phase == "Succeeded"
    assert session.plan is not None
    assert session.plan.hash == plan.hash
    assert answers(session) == [("c", "OK")]


def test_a_dry_run_ends_with_the_plan_and_its_reasons(world: Balanced):
    session = balance(world, mode="DryRun")
    assert session.phase == "Planned"
    assert session.plan is not None
    assert session.plan.moves
    world.run(3.0)
    assert set(world.states()) == {"OK"}
