"""Which sessions may begin, which wait for others, and which are impossible."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.model import Faults, World

from plimsoll.core.session import EngineSettings

SLOW = Faults(speed=0.05)


def phases(world: World, *uids: str) -> list[str]:
    return [world.mediator.sessions[uid].phase for uid in uids]


def pair(world: World, name: str, source: str, target: str | None, **fields: object) -> str:
    if target is not None:
        fields["target"] = target
    return world.ask(name, source=source, select={"count": 5}, scope="Global", **fields)


def busy_world(faults: Faults = SLOW, **settings: Any) -> World:
    world = World(seed=1, faults=faults, settings=EngineSettings(**settings))
    for edge in "abcw":
        world.fill(edge, 10)
    return world


def test_a_broker_takes_part_in_one_session_at_a_time():
    world = busy_world()
    first, second, third = pair(world, "one", "a", "b"), pair(world, "two", "b", "c"), pair(world, "three", "w", "v")
    world.run(1)
    assert phases(world, first, second, third) == ["Preparing", "Requested", "Preparing"]
    waiting = world.mediator.sessions[second]
    assert (waiting.reason, waiting.message) == ("Queued", "waits for one (b); place 1 of 1 in the queue")
    assert [tell.message for tell in world.told if tell.reason == "Queued"] == [
        "waits for one (b); place 1 of 2 in the queue"
    ]
    world.until_over(first, second, third)
    assert phases(world, first, second, third) == ["Succeeded"] * 3
    assert world.session(second).started_at >= world.session(first).ended_at  # type: ignore[operator]  # both are over


def test_how_many_sessions_a_broker_takes_part_in_is_a_setting():
    world = busy_world(sessions_per_broker=2)
    world.check_stored = lambda session: None
    first, second, third = pair(world, "one", "a", "b"), pair(world, "other", "a", "c"), pair(world, "third", "a", "v")
    world.run(2)
    assert phases(world, first, second, third) == ["Preparing", "Preparing", "Requested"]
    world.until_over(first, second)
    plans = [world.session(uid).plan for uid in (first, second)]
    named = [set(plan.pairs[0].members) for plan in plans if plan is not None]
    assert [len(names) for names in named] == [5, 5]
    assert not named[0] & named[1], "one session per subscriber"


def test_no_session_overtakes_another_that_wants_the_same_broker():
    world = busy_world()
    running, wide = pair(world, "one", "a", "b"), pair(world, "two", "b", "c")
    world.run(0.1)
    narrow = pair(world, "three", "c", "v")
    world.run(0.1)
    other = pair(world, "four", "w", "v")
    world.run(1)
    assert phases(world, running, wide, narrow) == ["Preparing", "Requested", "Requested"]
    assert world.mediator.sessions[narrow].message.startswith("waits for two (c)")
    assert world.mediator.sessions[other].message.startswith("waits for three (v)")
    world.until_over(running, wide, narrow, other)
    started = [world.session(uid).started_at for uid in (running, wide, narrow, other)]
    assert started == sorted(started)  # type: ignore[type-var]  # all have started


def test_the_fleet_has_a_cap():
    world = busy_world(max_sessions=1)
    first, second = pair(world, "one", "a", "b"), pair(world, "two", "w", "v")
    world.run(1)
    assert phases(world, first, second) == ["Preparing", "Requested"]
    assert "1 sessions are running, the limit of the fleet" in world.mediator.sessions[second].message
    world.until_over(first, second)


def test_a_cap_of_one_does_not_keep_a_parent_from_its_children():
    world = busy_world(max_sessions=1)
    uid = world.ask("drain", source="a", action="Drain")
    world.until_over(uid)
    assert world.session(uid).phase == "Succeeded"


def test_a_session_queues_for_its_time_only():
    world = busy_world()
    first = pair(world, "one", "a", "b", deadline="60s")
    second = pair(world, "two", "a", "c", limits={"queueFor": "2s"})
    world.run(3)
    over = world.session(second)
    assert (over.phase, over.reason) == ("Rejected", "QueueTimeout")
    assert over.phase_at - over.requested_at == pytest.approx(2, abs=0.2)
    assert "waits for one (a)" in over.message
    world.until_over(first)


def test_a_session_that_waits_for_approval_keeps_no_other_waiting():
    world = busy_world(Faults())
    waiting = pair(world, "one", "a", "b", approval={"policy": "Manual"})
    world.until(lambda: world.mediator.sessions[waiting].phase == "Planned")
    other = pair(world, "two", "a", "b")
    world.until_over(other)
    assert phases(world, waiting, other) == ["Planned", "Succeeded"]


def test_without_a_target_one_that_is_free_is_chosen():
    world = busy_world()
    first = pair(world, "one", "a", "b")
    world.run(1)
    second = world.ask("two", source="c", select={"count": 2})
    world.run(3)
    assert world.mediator.sessions[second].reason == "NoTarget", "both others of the cluster are busy"
    world.until_over(first, second)
    assert world.session(second).phase == "Succeeded"


def test_the_least_loaded_edge_is_the_target():
    world = World()
    world.fill("a", 10)
    world.reports = {"b": {"input_utilization": 0.7}, "c": {"input_utilization": 0.2}}
    uid = world.ask("s", source="a", select={"count": 2})
    world.until_over(uid)
    assert world.session(uid).targets == ["c"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"source": None, "select": {"count": 1}}, "NoPolicy"),
        ({"select": None}, "NoPolicy"),
        ({"exclusions": {"brokers": ["b"]}}, "Excluded"),
        ({"target": "v"}, "DifferentClusters"),
        ({"scope": "Global", "handover": "Replay"}, "ReplayAcross"),
    ],
)
def test_what_cannot_be_done_is_rejected_at_once(fields: dict[str, object], reason: str):
    world = World()
    world.fill("a", 3)
    whole = {"source": "a", "target": "b", "select": {"count": 1}, **fields}
    uid = world.ask("s", retries=3, **{name: value for name, value in whole.items() if value is not None})
    world.run(1)
    assert (world.session(uid).phase, world.session(uid).reason) == ("Rejected", reason)
    assert not world.sent


def test_a_passing_want_is_waited_for():
    world = World()
    world.fill("a", 3)
    world.cordoned = {"b"}
    uid = world.ask("s", source="a", target="b", select={"count": 1})
    world.run(5)
    assert (world.mediator.sessions[uid].phase, world.mediator.sessions[uid].reason) == (
        "Negotiating",
        "TargetCordoned",
    )
    world.cordoned = set()
    world.until_over(uid)
    assert world.session(uid).phase == "Succeeded"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda world: world.cordoned.add("b"), "TargetCordoned"),
        (lambda world: world.down.add("b"), "TargetNotReady"),
        (lambda world: world.down.add("a"), "SourceNotReady"),
        (lambda world: setattr(world.heads["east-head"], "starting_until", 1e9), "HeadNotReady"),
        (lambda world: world.head_of.pop("b"), "NotFound"),
    ],
)
def test_a_want_that_does_not_pass_rejects(change, reason: str):
    world = World()
    world.fill("a", 3)
    change(world)
    uid = world.ask("s", source="a", target="b", select={"count": 1})
    world.run(14)
    assert not world.mediator.sessions[uid].is_over
    world.run(3)
    session = world.session(uid)
    assert (session.phase, session.reason, session.may_retry) == ("Rejected", reason, True)


def test_an_old_view_is_no_view():
    world = World()
    world.fill("a", 3)
    world.until_over(world.ask("one", source="a", target="b", select={"count": 1}))
    world._next_view = float("inf")
    world.run(20)
    uid = world.ask("two", source="a", target="b", select={"count": 1}, limits={"moveInterval": "0s"})
    world.run(2)
    assert world.mediator.sessions[uid].reason == "NoView"


def test_a_draining_edge_takes_no_subscriber():
    world = busy_world()
    drain = world.ask("drain", source="b", action="Drain", scope="Global")
    world.until(lambda: world.mediator.sessions[drain].phase == "Draining")
    other = world.ask("other", source="w", action="Drain", scope="Global")
    world.run(2)
    plan = world.mediator.sessions[other].plan
    assert plan is not None
    assert {pair.target for pair in plan.pairs} == {"v"}
    world.until_over(drain, other)


def test_two_drains_of_one_another_do_not_wait_for_one_another_for_ever():
    for seed in range(10):
        world = World(seed=seed, faults=Faults(speed=0.2))
        world.fill("a", 10)
        world.fill("b", 10)
        uids = [world.ask(f"drain-{edge}", source=edge, action="Drain") for edge in "ab"]
        world.until_over(*uids, seconds=200)
        assert phases(world, *uids) == ["Succeeded"] * 2
        assert len(world.serves["c"]) == 20
