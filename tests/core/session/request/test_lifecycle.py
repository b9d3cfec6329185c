"""Dry runs, approvals, plans that have become stale, and what is requested again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.model import Faults, World

from plimsoll.core.protocol import messages as msg


def planned(world: World, **fields: Any) -> str:
    uid = world.ask("s", **{"source": "a", "target": "b", "select": {"count": 4}, **fields})
    world.until(lambda: world.mediator.sessions[uid].phase == "Planned")
    return uid


def world_of(count: int = 6) -> World:
    world = World()
    world.fill("a", count)
    return world


def commands(world: World) -> list[msg.Command]:
    return [send.message for send in world.sent if isinstance(send.message, msg.Command)]


def condition(world: World, uid: str, type_: str) -> tuple[str, str]:
    [found] = [each for each in world.session(uid).conditions if each["type"] == type_]
    return found["status"], found["reason"]


@pytest.mark.parametrize("mode", ["DryRun", "Simulate"])
def test_a_dry_run_ends_with_a_plan(mode: str):
    world = world_of()
    uid = planned(world, mode=mode)
    session = world.session(uid)
    assert session.is_over
    assert session.plan is not None
    assert session.plan.pairs[0].members == ["a000", "a001", "a002", "a003"]
    assert condition(world, uid, "Succeeded") == ("True", mode)
    assert (session.phase, session.reason) == ("Planned", mode)
    assert session.message == "it only plans, and it is over: move 4 from a to b; `plimsoll approve s` carries it out"
    world.run(30)
    assert not commands(world)
    assert [tell.message for tell in world.told if tell.reason == mode] == ["move 4 from a to b"]


def test_a_dry_run_may_be_carried_out_afterwards():
    world = world_of()
    uid = planned(world, mode="DryRun")
    world.run(60)
    plan = world.session(uid).plan
    assert plan is not None
    world.change(uid, mode="Execute", approval={"policy": "Manual", "planHash": plan.hash})
    world.until_over(uid)
    assert world.session(uid).phase == "Succeeded"
    assert commands(world)[0].plan.members == plan.pairs[0].members  # type: ignore[union-attr]  # a first command has its plan


def test_a_plan_waits_for_its_approval():
    world = world_of()
    uid = planned(world, approval={"policy": "Manual"})
    session = world.session(uid)
    assert (session.reason, condition(world, uid, "Approved")) == ("AwaitingApproval", ("False", "AwaitingApproval"))
    world.run(60)
    assert not commands(world)
    assert not world.mediator.sessions[uid].is_over
    assert session.plan is not None
    world.change(uid, approval={"policy": "Manual", "planHash": session.plan.hash})
    world.until_over(uid)
    assert condition(world, uid, "Approved") == ("True", "Approved")
    assert world.session(uid).counts()["moved"] == 4


def test_the_hash_of_another_plan_does_not_approve_this_one():
    world = world_of()
    uid = planned(world, approval={"policy": "Manual"})
    world.change(uid, approval={"policy": "Manual", "planHash": "abcd"})
    world.run(5)
    session = world.mediator.sessions[uid]
    assert (session.phase, session.reason) == ("Planned", "PlanStale")
    assert "plan abcd was approved, the plan is " in session.message
    assert not commands(world)
    assert [tell.type for tell in world.told if tell.reason == "PlanStale"] == ["Warning"]


def test_a_hash_that_is_given_with_the_request_counts_for_automatic_approval_too():
    world = world_of()
    uid = planned(world, approval={"planHash": "abcd"})
    world.run(5)
    assert world.mediator.sessions[uid].phase == "Planned"
    assert not commands(world)


def test_an_approved_plan_whose_subscribers_have_gone_is_stale_and_is_told_with_the_difference():
    world = world_of()
    uid = planned(world, approval={"policy": "Manual"})
    old = world.session(uid).plan
    assert old is not None
    world.move("a001", "c")
    world.change(uid, approval={"policy": "Manual", "planHash": old.hash})
    world.run(5)
    session = world.mediator.sessions[uid]
    assert (session.phase, session.reason) == ("Planned", "PlanStale")
    assert "1 no longer move: a001; 1 move as well: a004" in session.message
    assert not commands(world)
    assert session.plan is not None
    world.change(uid, approval={"policy": "Manual", "planHash": session.plan.hash})
    world.until_over(uid)
    assert sorted(world.serves["b"]) == ["a000", "a002", "a003", "a004"]


def test_newcomers_do_not_make_an_approved_plan_stale():
    world = world_of()
    uid = planned(world, approval={"policy": "Manual"})
    plan = world.session(uid).plan
    assert plan is not None
    world.fill("a", 5, prefix="A")  # before all others by name
    world.change(uid, approval={"policy": "Manual", "planHash": plan.hash})
    world.until_over(uid)
    assert sorted(world.serves["b"]) == plan.pairs[0].members


def test_on_approval_it_negotiates_again():
    world = world_of()
    uid = planned(world, approval={"policy": "Manual"})
    plan = world.session(uid).plan
    assert plan is not None
    world.cordoned = {"b"}
    world.run(2)
    world.change(uid, approval={"policy": "Manual", "planHash": plan.hash})
    world.run(2)
    session = world.mediator.sessions[uid]
    assert (session.phase, session.reason) == ("Negotiating", "TargetCordoned")


def test_an_approved_plan_queues_again():
    world = world_of()
    world.faults = Faults(speed=0.05)
    uid = planned(world, approval={"policy": "Manual"})
    plan = world.session(uid).plan
    assert plan is not None
    other = world.ask("other", source="b", target="c", select={"count": 1})
    world.fill("b", 3)
    world.run(1)
    world.change(uid, approval={"policy": "Manual", "planHash": plan.hash})
    world.run(0.5)
    assert world.mediator.sessions[uid].phase == "Planned"
    assert world.mediator.sessions[uid].message.startswith("waits for other (b)")
    world.until_over(uid, other)
    assert world.session(uid).phase == "Succeeded"


def test_a_plan_without_approval_is_rejected_in_the_end():
    world = world_of()
    uid = planned(world, approval={"policy": "Manual", "within": "20s"})
    world.run(19)
    assert not world.mediator.sessions[uid].is_over
    world.run(2)
    assert (world.session(uid).phase, world.session(uid).reason) == ("Rejected", "NotApproved")


def test_what_is_asked_for_may_change_until_it_is_approved():
    world = world_of()
    uid = planned(world, approval={"policy": "Manual"})
    old = world.session(uid).plan
    world.change(uid, select={"count": 2}, target={"name": "c"})
    world.run(2)
    session = world.mediator.sessions[uid]
    assert old is not None
    assert session.plan is not None
    assert session.plan.hash != old.hash
    assert (session.targets, session.plan.members) == (["c"], 2)


def test_what_is_asked_for_does_not_change_under_a_plan_that_runs():
    world = world_of(20)
    world.faults = Faults(speed=0.3)
    uid = world.ask("s", source="a", target="b", select={"count": 4})
    world.until(lambda: world.mediator.sessions[uid].phase == "Preparing")
    world.change(uid, select={"count": 9}, target={"name": "c"})
    world.until_over(uid)
    assert len(world.serves["b"]) == 4
    assert not world.serves["c"]
    [tell] = [tell for tell in world.told if tell.reason == "SpecIgnored"]
    assert (tell.type, tell.name) == ("Warning", "s")


def test_stopped_before_there_is_a_plan_it_is_rejected():
    world = world_of()
    uid = world.ask("s", source="a", target="b", select={"count": 2}, stop=True)
    world.run(1)
    assert (world.session(uid).phase, world.session(uid).reason) == ("Rejected", "Stopped")


def test_an_empty_plan_is_a_success_with_its_reasons():
    world = world_of(2)
    uid = world.ask("s", source="a", target="b", select={"names": ["a000", "zz"]}, exclusions={"subscribers": ["a000"]})
    world.until_over(uid)
    session = world.session(uid)
    assert (session.phase, session.reason) == ("Succeeded", "NothingToMove")
    assert "1 is excluded by the session: a000" in session.message
    assert "1 is not served by the source: zz" in session.message
    assert session.plan is not None
    assert session.plan.rejected == {"Excluded": ["a000"], "NotServed": ["zz"]}


def test_a_head_that_never_lists_its_subscribers():
    world = world_of()
    world.faults = Faults(loss=1.0)
    uid = world.ask("s", source="a", target="b", select={"count": 2})
    world.run(14)
    assert world.mediator.sessions[uid].phase == "Sampling"
    world.run(3)
    assert (world.session(uid).phase, world.session(uid).reason) == ("Rejected", "NoSample")


def test_moved_a_moment_ago_a_subscriber_stays():
    world = world_of()
    world.until_over(world.ask("one", source="a", target="b", select={"count": 3}))
    back = world.ask("two", source="b", target="a", select={"count": 3})
    world.until_over(back)
    assert (world.session(back).reason, len(world.serves["b"])) == ("NothingToMove", 3)
    world.run(30)
    later = world.ask("three", source="b", target="a", select={"count": 3})
    world.until_over(later)
    assert world.session(later).counts()["moved"] == 3


def test_a_drain_ignores_when_a_subscriber_was_last_moved():
    world = world_of()
    world.until_over(world.ask("one", source="a", target="b", select={"count": 3}))
    world.until_over(world.ask("two", source="b", action="Drain"))
    assert not world.serves["b"]
