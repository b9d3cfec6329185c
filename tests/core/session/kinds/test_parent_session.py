"""Parents and their children: drains, sessions between clusters, rounds, and what ends them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.core.session.model import Faults, World

from plimsoll.core.session import CreateSession, EngineSettings, Session, SessionRequest, SessionUpserted


def world_of(count: int, **more: Any) -> World:
    world = World(seed=3, **more)
    world.fill("a", count)
    return world


def drained(world: World, **fields: Any) -> Session:
    uid = world.ask("drain", **{"source": "a", "action": "Drain", **fields})
    world.until_over(uid, seconds=900)
    return world.session(uid)


def children(world: World, parent: Session) -> list[Session]:
    return [world.named(child.name) for child in parent.children]


def test_a_drain_spreads_over_the_edges_of_its_cluster():
    world = world_of(20)
    world.fill("b", 6)
    session = drained(world)
    assert (session.phase, session.reason) == ("Succeeded", "Drained")
    assert not world.serves["a"]
    assert (len(world.serves["b"]), len(world.serves["c"])) == (13, 13), "to where there is least"
    assert [(child.target, child.counts) for child in session.children] == [("b", {"moved": 7}), ("c", {"moved": 13})]
    assert session.counts()["moved"] == 20


def test_children_are_sessions_with_the_parents_plan():
    world = world_of(10)
    session = drained(world, handover="Drain", limits={"maxInFlight": 3})
    assert session.plan is not None
    for child, pair in zip(children(world, session), session.plan.pairs, strict=True):
        assert (child.parent, child.sources, child.targets) == (session.uid, [pair.source], [pair.target])
        assert child.plan is not None
        assert child.plan.pairs[0].members == pair.members
        assert max(len(batch.members) for batch in child.batches) <= 3
        assert child.deadline_at <= session.deadline_at
    [spec, *_] = [one.request.spec for one in world.store.values() if one.request.parent]
    assert (spec.action, spec.mode, spec.handover) == ("Rebalance", "Execute", "Drain")


def test_a_drain_goes_to_other_clusters_only_if_it_may_and_must():
    world = world_of(6)
    world.cordoned = {"b", "c"}
    session = drained(world)
    assert (session.phase, session.reason) == ("Rejected", "NoTarget")
    session = drained(world, scope="Global")
    assert session.reason == "Drained"
    assert {child.target for child in session.children} == {"v", "w"}
    world.cordoned = set()
    world.fill("a", 4)
    world.run(1.5)
    session = drained(world, scope="Global")
    assert {child.target for child in session.children} == {"b", "c"}


def test_a_drain_with_a_target_goes_there():
    world = world_of(6)
    session = drained(world, target="c")
    assert [child.target for child in session.children] == ["c"]
    assert len(world.serves["c"]) == 6


def test_the_excluded_stay_and_the_drain_has_succeeded():
    world = world_of(6)
    session = drained(world, exclusions={"subscribers": ["a002"], "brokers": ["c"]})
    assert (session.phase, session.reason) == ("Succeeded", "Drained")
    assert world.serves["a"] == {"a002"}
    assert not world.serves["c"]
    assert session.plan is not None
    assert session.plan.rejected == {"Excluded": ["a002"]}


def test_who_comes_meanwhile_or_stays_behind_goes_in_another_round():
    world = world_of(6)
    uid = world.ask("drain", source="a", action="Drain")
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    world.fill("a", 3, prefix="late")
    world.until_over(uid)
    session = world.session(uid)
    assert (session.reason, session.round) == ("Drained", 1)
    assert not world.serves["a"]
    assert session.counts()["moved"] == 9
    assert len({child.name for child in session.children}) == len(session.children)


def test_rounds_are_limited():
    world = world_of(40, faults=Faults(leaves=0.6), settings=EngineSettings(drain_rounds=3))
    session = drained(world, deadline="10m")
    assert (session.phase, session.round) == ("Failed", 2)
    assert session.reason == "NotEmpty"
    assert f"{len(world.serves['a'])} subscribers remain: a0" in session.message


def test_who_is_away_is_waited_for_and_counted_once():
    """No subscriber can be moved for half a minute, as if all were away; then they can, or their leases have ended."""
    world = world_of(4, refuses=True)
    uid = world.ask("drain", source="a", target="b", action="Drain")
    world.until(lambda: world.mediator.sessions[uid].round == 3)
    assert world.session(uid).planned == 4
    world.refuses = False
    world.until_over(uid)
    session = world.session(uid)
    assert (session.phase, session.reason) == ("Succeeded", "Drained")
    assert (session.planned, session.counts()["moved"], session.counts()["stayed"]) == (4, 4, 0)


def test_a_client_that_never_answers_holds_up_a_drain_no_longer_than_its_patience():
    """By replay the source lets it go: it resumes from its token, or its place ends with its lease."""
    world = world_of(4)
    world.silent = {"a001"}
    session = drained(world, deadline="10m")
    assert (session.phase, session.reason) == ("Succeeded", "Drained")
    assert session.counts() == {
        "moved": 3, "stayed": 0, "away": 0, "gone": 0, "returned": 0, "detached": 1, "unknown": 0,
    }  # fmt: skip
    assert not world.serves["a"]
    requests = {one.request.name: one.request for one in world.store.values()}
    by_round = {child.round: requests[child.name].spec.handover for child in session.children}
    assert by_round[0] == "Auto"
    assert by_round[max(by_round)] == "Replay"
    settings, timings = world.settings, world.settings.timings
    assert session.moving_at is not None
    assert session.ended_at is not None
    round_and_pause = timings.prepare + timings.settle * 2.0 ** (session.round - 1)
    by_replay = timings.prepare + timings.drain + timings.settle * 2.0**session.round
    most = settings.drain_patience_seconds + round_and_pause + by_replay
    assert session.ended_at - session.moving_at <= most


@pytest.mark.parametrize("origin", ["user", "evacuation"])
def test_a_drain_of_clients_that_never_answer_takes_no_longer_for_many_than_for_one(origin: str):
    """Children of a round leave their source side by side: none waits for the time-outs of another."""
    ends: list[float] = []
    for silent in ({"a001"}, {f"a{number:03}" for number in range(20)}):
        world = world_of(20)
        world.silent = silent
        uid = world.ask("drain", source="a", action="Drain", deadline="10m")
        if origin == "evacuation":
            world.store[uid].request = replace(world.store[uid].request, evacuates=True)
            world.handle(SessionUpserted(world.store[uid].request))
        world.until_over(uid, seconds=900)
        session = world.session(uid)
        assert (session.phase, session.counts()["detached"]) == ("Succeeded", len(silent))
        assert session.ended_at is not None
        assert session.moving_at is not None
        ends.append(session.ended_at - session.moving_at)
        for number in range(session.round + 1):
            of_round = [world.named(child.name) for child in session.children if child.round == number]
            begun = [one.started_at for one in of_round if one.started_at is not None]
            assert len(begun) == len(of_round)
            assert max(begun) - min(begun) <= world.settings.timings.ask, "they begin at one time"
    one, many = ends
    assert many - one <= world.settings.timings.gather, "no time-out more"


def test_children_that_leave_one_source_share_what_may_be_in_hand_over_there():
    world = world_of(40)
    session = drained(world, limits={"maxInFlight": 6})
    shares = [one.request.spec.limits.max_in_flight for one in world.store.values() if one.request.parent]
    assert shares == [3, 3]
    alone = drained(world, source="b", target="a", limits={"maxInFlight": 6})
    assert [world.store[child.uid].request.spec.limits.max_in_flight for child in alone.children] == [6]
    assert {session.phase, alone.phase} == {"Succeeded"}


def test_a_drain_that_may_leave_its_cluster_goes_by_replay_within_it():
    world = world_of(4)
    world.silent = {"a001"}
    session = drained(world, deadline="10m", scope="Global")
    assert (session.phase, session.reason) == ("Succeeded", "Drained")
    requests = [one.request.spec for one in world.store.values() if one.request.parent]
    assert {(spec.handover, spec.scope) for spec in requests} == {("Auto", "Global"), ("Replay", "Local")}


def test_a_drain_that_is_to_go_by_drain_waits_until_its_deadline():
    world = world_of(4)
    world.silent = {"a001"}
    session = drained(world, deadline="2m", handover="Drain")
    assert (session.phase, session.counts()["moved"]) == ("Failed", 3)
    assert world.serves["a"] == {"a001"}


def test_an_approved_drain_moves_exactly_the_members_of_its_plan():
    world = world_of(6)
    uid = world.ask("drain", source="a", action="Drain", approval={"policy": "Manual"})
    world.until(lambda: world.mediator.sessions[uid].phase == "Planned")
    plan = world.session(uid).plan
    assert plan is not None
    assert [len(pair.members) for pair in plan.pairs] == [3, 3]
    world.fill("a", 1, prefix="late")
    world.change(uid, approval={"policy": "Manual", "planHash": plan.hash})
    world.until_over(uid)
    session = world.session(uid)
    assert (session.phase, session.reason, session.round) == ("Failed", "NotEmpty", 0)
    assert world.serves["a"] == {"late000"}


def test_an_empty_edge_is_drained_at_once():
    session = drained(world_of(0))
    assert (session.phase, session.reason) == ("Succeeded", "Empty")


def test_a_dry_drain_creates_nothing_and_cordons_nothing():
    world = world_of(4)
    session = drained(world, mode="DryRun")
    assert (session.phase, len(world.store)) == ("Planned", 1)
    assert session.plan is not None
    assert session.plan.members == 4


def test_stopping_a_parent_stops_its_children():
    world = world_of(30, faults=Faults(speed=0.3))
    uid = world.ask("drain", source="a", action="Drain", limits={"maxInFlight": 4})
    world.until(lambda: len(world.serves["a"]) < 28)
    world.change(uid, stop=True)
    world.until_over(uid)
    session = world.session(uid)
    assert (session.phase, session.reason) == ("Failed", "Stopped")
    assert [child.reason for child in children(world, session)] == ["ParentStopped"] * 2
    moved = len(world.serves["b"]) + len(world.serves["c"])
    assert session.counts()["moved"] == moved
    counts = session.counts()
    assert counts["stayed"] + counts["unknown"] == 30 - moved
    assert counts["unknown"] > 0, "no source was asked about those that were not begun"


@pytest.mark.parametrize("deadline", ["2s", "8s", "20s"])
def test_a_parent_ends_by_its_deadline_and_its_children_with_it(deadline: str):
    world = world_of(60, faults=Faults(speed=0.05))
    session = drained(world, deadline=deadline, limits={"maxInFlight": 5})
    assert (session.phase, session.reason) in {("Failed", "DeadlineExceeded"), ("RolledBack", "DeadlineExceeded")}
    assert session.ended_at is not None
    assert session.ended_at <= session.deadline_at + 0.1
    for child in session.children:
        if child.uid:
            assert world.session(child.uid).is_over


def test_a_child_whose_object_is_deleted_is_not_waited_for():
    world = world_of(10, faults=Faults(speed=0.05))
    uid = world.ask("drain", source="a", target="b", action="Drain", approval={"policy": "Manual"})
    world.until(lambda: world.mediator.sessions[uid].phase == "Planned")
    plan = world.session(uid).plan
    assert plan is not None
    world.change(uid, approval={"policy": "Manual", "planHash": plan.hash})
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    [child] = world.mediator.sessions[uid].children
    world.delete(child.uid)
    world.until_over(uid)
    [child] = world.session(uid).children
    assert (child.phase, child.reason) == ("Failed", "Deleted")
    assert world.session(uid).phase == "Failed"


def test_a_child_without_its_parent_stops():
    world = world_of(10, faults=Faults(speed=0.05))
    uid = world.ask("drain", source="a", target="b", action="Drain")
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    [child] = world.mediator.sessions[uid].children
    world.delete(uid)
    world.until_over(child.uid)
    assert world.session(child.uid).reason == "ParentStopped"


def test_an_object_that_is_not_there_yet_is_asked_for_again():
    world = world_of(4)
    made: list[float] = []
    world._create = lambda effect: made.append(world.now)
    world.ask("drain", source="a", target="b", action="Drain")
    world.run(5.5)
    assert 4 <= len(made) <= 6


def test_a_mediator_that_has_not_seen_a_child_yet_does_not_take_it_for_deleted():
    world = world_of(10, faults=Faults(speed=0.05))
    uid = world.ask("drain", source="a", target="b", action="Drain")
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    world.start()
    [child] = world.mediator.sessions[uid].children
    assert child.reason != "Deleted"
    world.until_over(uid)
    assert world.session(uid).reason == "Drained"


def test_between_clusters_every_edge_gives_its_share():
    world = world_of(12)
    world.fill("b", 6)
    uid = world.ask("s", scope="Global", source="east", target="west", select={"sharePercent": 50})
    world.until_over(uid)
    session = world.session(uid)
    assert (session.phase, session.reason) == ("Succeeded", "Moved")
    assert (len(world.serves["a"]), len(world.serves["b"])) == (6, 3)
    assert (len(world.serves["v"]), len(world.serves["w"])) == (5, 4)


def test_a_child_names_what_a_specification_may_say():
    world = world_of(4)
    created: list[CreateSession] = []
    create = world._create
    world._create = lambda effect: (created.append(effect), create(effect))[1]  # type: ignore[func-returns-value]  # `append` returns None, and is called for its effect
    long = "d" * 63
    uid = world.ask(long, source="a", action="Drain", deadline="90s")
    world.until_over(uid)
    for effect in created:
        assert len(effect.name) <= 63
        assert (effect.parent, effect.parent_name) == (uid, long)
        assert effect.spec["scope"] == "Local"


def test_a_retried_drain_makes_children_of_other_names():
    world = world_of(4, refuses=True, settings=EngineSettings(drain_rounds=3))
    uid = world.ask("drain", source="a", target="b", action="Drain", retries=1, approval={"planHash": "x"[:0]})
    world.until(lambda: world.mediator.sessions[uid].attempt == 2)
    first = {one.request.name for one in world.store.values() if one.request.parent}
    world.refuses = False
    world.until_over(uid)
    session = world.session(uid)
    assert (session.phase, session.reason) == ("Succeeded", "Drained")
    assert not first & {child.name for child in session.children}


def test_another_owners_session_of_that_name_is_no_child():
    world = world_of(4)
    uid = world.ask("drain", source="a", target="b", action="Drain")
    world.until(lambda: bool(world.mediator.sessions[uid].children))
    [child] = world.mediator.sessions[uid].children
    stranger = SessionRequest(child.name, "stranger", 1, world.store[uid].request.spec)
    world.handle(SessionUpserted(stranger))
    [child] = world.mediator.sessions[uid].children
    assert child.uid != "stranger"
