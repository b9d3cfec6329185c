"""Policies that plan for a whole cluster: when they look, what they remember, and when a session begins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.core.session.aggregating import BAD, Aggregating

from plimsoll.core.policies import rebalancer
from plimsoll.core.policies.rebalancer import FleetSample
from plimsoll.core.session import FleetView
from plimsoll.core.session.request import fleet_plan
from plimsoll.core.session.triggers import fleet_policies
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec


def world_of(**bad: Any) -> Aggregating:
    """F = 7000, 1200 and 400 bytes per second."""
    policy = parse_block(PolicySpec, {**BAD, "bad": {**BAD["bad"], **bad}})
    world = Aggregating(seed=4, policy=policy)
    world.people("a", "ab", "a", "bc", "ad")
    world.people("b", "cd")
    world.people("c", "d")
    return world


def without_report(view: FleetView, edge: str) -> FleetView:
    return replace(view, edges={**view.edges, edge: replace(view.edges[edge], report={})})


def plans(world: Aggregating) -> list[str]:
    """Sessions of the policy, without their children."""
    return sorted(one.request.name for one in world.store.values() if not one.request.parent)


def test_a_cluster_out_of_balance_is_balanced_by_itself():
    world = world_of(shuffle="None")
    assert world.loads == [7000.0, 1200.0, 400.0]
    world.until(lambda: bool(plans(world)))
    assert world.cov > 1.0
    world.until(lambda: world.cov < 0.15)
    [name] = plans(world)
    world.until(lambda: world.named(name).is_over)
    session = world.named(name)
    assert (session.phase, session.reason, session.kind) == ("Succeeded", "Moved", "rebalance")
    assert session.triggered
    assert world.loads == [4000.0, 3400.0, 3600.0]
    assert session.plan is not None
    assert {(pair.source, pair.target) for pair in session.plan.pairs} == {("a", "b"), ("a", "c")}
    assert session.plan.policy == "Bad"
    world.run(60.0)
    assert plans(world) == [name], "a balanced cluster is left alone"


def test_a_plan_knows_which_edges_subscribers_have_left_at_this_load(monkeypatch: pytest.MonkeyPatch):
    """The subscribers that the first plan moved are brought back by hand; the next plan is told that they left `a`."""
    told, make = list[dict[str, frozenset[str]]](), rebalancer.fleet_plan

    def noted(policy: Any, sample: FleetSample, memory: Any) -> Any:
        told.append(dict(sample.left))
        return make(policy, sample, memory)

    monkeypatch.setattr(fleet_plan, "fleet_plan", noted)
    world = world_of(shuffle="None")
    world.until(lambda: bool(plans(world)) and world.named(plans(world)[0]).is_over)
    assert told == [{}]
    session = world.named(plans(world)[0])
    assert session.plan is not None
    assert session.plan.deliveries_per_second > 0.0
    moved = {name for pair in session.plan.pairs for name in pair.members}
    for name in moved:
        world.move(name, "a")
    world.until(lambda: len(told) > 1)
    assert told[1] == dict.fromkeys(moved, frozenset({"a"}))


def test_a_shuffle_above_gamma_leaves_the_cluster_balanced():
    world = world_of()
    world.until(lambda: bool(plans(world)) and world.named(plans(world)[0]).is_over)
    assert sorted(world.loads) == [3400.0, 3600.0, 4000.0]


def test_below_beta_there_is_no_session_and_nothing_is_remembered_but_looks():
    world = world_of(beta="300k")
    world.run(30.0)
    assert plans(world) == []
    assert world.stored["east"]["memory"]["looks"] == 0


def test_looks_come_at_the_interval_and_one_of_them_is_not_enough():
    world = world_of()
    world.until(lambda: bool(world.remembered))
    assert (world.remembered[0].cluster, world.remembered[0].policy) == ("east", "Bad")
    assert world.remembered[0].memory["looks"] == 1
    assert plans(world) == []
    at = world.now
    world.until(lambda: len(world.remembered) == 2)
    assert world.now - at == pytest.approx(2.0, abs=0.2)
    world.until(lambda: bool(plans(world)), seconds=1.0)


def test_memory_outlasts_a_restart_of_the_mediator():
    """The next life finds one look in the cluster's status: one more is enough. Without it there would be two."""
    world = world_of()
    world.until(lambda: bool(world.remembered))
    world.start()
    world.until(lambda: len(world.remembered) == 2)
    assert world.remembered[1].memory["looks"] == 2
    world.stored.clear()
    other = world_of()
    other.until(lambda: bool(other.remembered))
    other.stored.clear()
    other.start()
    other.until(lambda: len(other.remembered) == 2)
    assert other.remembered[1].memory["looks"] == 1


def test_no_fleet_is_judged_before_all_edges_have_reported():
    world = world_of()
    views = world.view
    world.view = lambda: without_report(views(), "c")
    world.run(20.0)
    assert world.remembered == []


def test_no_look_is_taken_while_a_session_has_the_edges():
    world = world_of(beta="300k")
    world.until(lambda: bool(world.remembered))
    uid = world.ask("away", source="a", target="b", select={"count": 2}, limits={"maxMovesPerMinute": 2})
    world.until(lambda: world.mediator.sessions[uid].is_running)
    world.rate = 2.0  # so that another look would remember something else
    before = len(world.remembered)
    world.run(20.0)
    assert world.mediator.sessions[uid].is_running
    assert len(world.remembered) == before


def test_plans_without_moves_become_rarer():
    """One subscriber is all the load there is: cov is high, and nothing can be done about it."""
    world = Aggregating(seed=4)
    world.people("a", "a")
    world.run(30.0)
    assert len(plans(world)) in (2, 3)
    early = len(plans(world))
    world.run(30.0)
    assert len(plans(world)) - early <= 1
    assert world.counts() == (1, 0, 0)
    assert all(world.named(name).reason == "NothingToMove" for name in plans(world))


def test_a_user_may_ask_for_a_plan_and_see_it_first():
    world = world_of(beta="300k", shuffle="None")
    world.policy = parse_block(PolicySpec, {**BAD, "bad": {"interval": "10m", "beta": "10", "shuffle": "None"}})
    uid = world.ask("see", source="east", mode="DryRun")
    world.until_over(uid)
    session = world.session(uid)
    assert (session.phase, session.reason, session.planned) == ("Planned", "DryRun", 2)
    assert world.loads == [7000.0, 1200.0, 400.0]
    assert session.plan is not None
    world.change(uid, mode="Execute", approval={"policy": "Manual", "planHash": session.plan.hash})
    world.until_over(uid)
    assert world.session(uid).reason == "Moved"
    assert world.loads == [4000.0, 3400.0, 3600.0]


def test_a_plan_that_a_user_has_yet_to_approve_keeps_no_policy_waiting():
    world = world_of(shuffle="None")
    uid = world.ask("see", source="east", approval={"policy": "Manual"})
    world.until(lambda: world.mediator.sessions[uid].reason == "AwaitingApproval")
    world.until(lambda: world.cov < 0.15)
    assert world.mediator.sessions[uid].phase == "Planned"


@pytest.mark.parametrize("dies_at", range(1, 40, 3))
def test_wherever_the_mediator_dies_the_cluster_is_balanced(dies_at: int):
    world = Aggregating(seed=4, dies_at=dies_at, policy=parse_block(PolicySpec, BAD))
    world.people("a", "ab", "a", "bc", "ad")
    world.people("b", "cd")
    world.people("c", "d")
    world.until(lambda: world.cov < 0.15)
    world.until(lambda: all(one.is_over for one in world.mediator.sessions.values()))
    assert sum(world.counts()) == 6
    assert world.epoch > 1


def test_without_a_plan_before_the_next_one_may_come_at_once():
    assert fleet_policies.earliest_next([], 2.0) == 0.0
