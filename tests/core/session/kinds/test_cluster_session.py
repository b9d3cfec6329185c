"""Clusters that differ are joined, their edges balance with one another, and then they are released."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.balanced import Faults
from tests.core.session.joined import Joined
from tests.core.session.model import Stored

from plimsoll.core.session import Session


def between(world: Joined) -> list[Session]:
    return [one for one in world.mediator.sessions.values() if one.between]


def children(world: Joined, parent: Session) -> list[Session]:
    return [one for one in world.mediator.sessions.values() if one.parent == parent.uid]


def object_of(world: Joined, session: Session) -> Stored:
    return world.store[session.uid]


@pytest.fixture
def world() -> Joined:
    """Much in the east, evenly spread; nothing in the west."""
    world = Joined(seed=1)
    for edge in "abc":
        world.fill(edge, 16)
    return world


def test_what_one_cluster_has_too_much_goes_to_its_neighbour(world: Joined):
    world.run(120.0)
    east, west = world.averages()
    assert abs(east - west) <= 7, world.serves
    [session] = between(world)
    assert (session.phase, session.between) == ("Succeeded", ["east", "west"])
    assert session.reason in ("AllBalanced", "NothingMore")
    assert session.counts()["moved"] == sum(len(world.serves[edge]) for edge in "wv")
    assert {one.phase for one in children(world, session)} <= {"Succeeded", "Rejected"}
    assert object_of(world, session).request.spec.trigger is not None


def test_a_full_cluster_asks_an_idle_neighbour_though_its_average_is_no_overload():
    """Three edges at 0.92 take nothing more from one another, and the west is empty."""
    world = Joined(seed=1)
    for edge in "abc":
        world.fill(edge, 46)
    world.run(150.0)
    east, west = world.averages()
    assert abs(east - west) <= 7, world.serves


def test_a_cluster_behind_a_head_without_edges_is_near():
    world = Joined(seed=1, middle=True)
    for edge in "abc":
        world.fill(edge, 16)
    world.run(120.0)
    assert [one.between for one in between(world)] == [["east", "west"]]


def test_without_being_asked_for_nothing_crosses():
    world = Joined(seed=1, seconds=None)
    for edge in "abc":
        world.fill(edge, 16)
    world.run(60.0)
    assert between(world) == []
    assert world.averages() == (16.0, 0.0)


def test_clusters_that_are_even_are_let_be():
    world = Joined(seed=1)
    for edge in "abcwv":
        world.fill(edge, 10)
    world.run(60.0)
    assert between(world) == []


def test_locality_comes_first():
    """One edge of the east has all: its own cluster shares it before the west is asked."""
    world = Joined(seed=1)
    world.fill("a", 44)
    world.until(lambda: bool(between(world)), 120.0)
    assert min(len(world.serves[edge]) for edge in "bc") > 0
    assert all(not world.serves[edge] for edge in "wv")


def test_people_may_join_clusters(world: Joined):
    world = Joined(seed=1, seconds=None)
    for edge in "abc":
        world.fill(edge, 16)
    world.run(2.0)
    uid = world.ask("by-hand", scope="Global", source="east", target="west", action="Rebalance")
    world.until(lambda: world.session(uid).is_over, 180.0)
    assert world.session(uid).phase == "Succeeded"
    assert world.session(uid).counts()["moved"] > 0


def test_what_it_leaves_alone_its_edges_leave_alone():
    """Edge a gives nothing across, v takes nothing across, and two subscribers of b stay where they are."""
    world = Joined(seed=1, seconds=None)
    for edge in "abc":
        world.fill(edge, 16)
    staying = sorted(world.serves["b"])[:2]
    world.run(2.0)
    uid = world.ask(
        "by-hand", scope="Global", source="east", target="west", action="Rebalance", handover="Drain",
        exclusions={"subscribers": staying, "brokers": ["a", "v"]},
    )  # fmt: skip
    world.until(lambda: world.session(uid).is_over, 180.0)
    assert world.session(uid).counts()["moved"] > 0
    assert not set(staying) & {*world.serves["w"], *world.serves["v"]}
    across = children(world, world.session(uid))
    assert all("a" not in one.sources for one in across)
    assert all("v" not in one.targets for one in across)  # its own cluster may still balance it
    specs = [object_of(world, one).request.spec for one in across]
    assert {(spec.exclusions.subscribers, spec.handover) for spec in specs} == {(tuple(staying), "Drain")}


def test_a_dry_run_joins_nothing(world: Joined):
    world = Joined(seed=1, seconds=None)
    world.fill("a", 30)
    world.run(2.0)
    uid = world.ask("dry", scope="Global", source="east", target="west", action="Rebalance", mode="DryRun")
    world.until(lambda: world.session(uid).is_over, 60.0)
    assert (world.session(uid).phase, world.session(uid).reason) == ("Planned", "DryRun")
    world.run(20.0)
    assert all(not world.serves[edge] for edge in "wv")


def test_a_dry_run_may_be_carried_out_afterwards():
    world = Joined(seed=1, seconds=None)
    for edge in "abc":
        world.fill(edge, 16)
    world.run(2.0)
    uid = world.ask("dry", scope="Global", source="east", target="west", action="Rebalance", mode="DryRun")
    world.until(lambda: world.session(uid).is_over, 60.0)
    world.change(uid, mode="Execute")
    world.until(lambda: world.session(uid).is_over and world.session(uid).phase != "Planned", 180.0)
    assert world.session(uid).phase == "Succeeded"
    assert world.session(uid).counts()["moved"] > 0
    assert world.session(uid).spent["Planned"] >= 0.0


def test_what_was_dry_waits_for_its_turn(world: Joined):
    uid = world.ask("dry", scope="Global", source="east", target="west", action="Rebalance", mode="DryRun")
    world.until(lambda: world.session(uid).is_over, 60.0)
    world.until(lambda: any(one.phase in ("Preparing", "Draining") for one in between(world)), 60.0)
    world.change(uid, mode="Execute", limits={"queueFor": "5s"})
    world.run(2.0)
    assert world.session(uid).reason == "Queued"
    world.until(lambda: world.session(uid).is_over, 30.0)
    assert world.session(uid).reason == "QueueTimeout"


def test_a_cluster_takes_part_in_one_session_at_a_time(world: Joined):
    world.until(lambda: any(one.phase in ("Preparing", "Draining") for one in between(world)), 60.0)
    world.run(1.0)
    uid = world.ask("second", scope="Global", source="west", target="east", action="Rebalance")
    world.run(2.0)
    assert world.session(uid).reason == "Queued"
    assert "waits for global-east-west" in world.session(uid).message


def test_stopped_it_lets_its_edges_go(world: Joined):
    world.until(lambda: any(one.phase == "Draining" for one in between(world)), 60.0)
    [session] = between(world)
    world.change(session.uid, stop=True)
    world.until(lambda: world.session(session.uid).is_over, 60.0)
    assert world.session(session.uid).reason == "Stopped"
    assert all(one.is_over for one in children(world, session))


def test_by_its_deadline_it_ends(world: Joined):
    world = Joined(seed=1, seconds=None)
    for edge in "abc":
        world.fill(edge, 16)
    world.run(2.0)
    uid = world.ask("short", scope="Global", source="east", target="west", action="Rebalance", deadline="10s")
    began = world.now
    world.until(lambda: world.session(uid).is_over, 60.0)
    assert world.session(uid).reason == "DeadlineExceeded"
    assert world.now - began <= 12.0


@pytest.mark.parametrize("seed", range(6))
def test_under_faults_every_session_ends_and_all_are_served_once(seed: int):
    faults = Faults(
        loss=0.1, repeat=0.1, delay=0.3, mediator_dies=0.002, head_restarts=0.0005, leaves=0.01, heal_at=1_000_060.0
    )
    world = Joined(seed=seed, faults=faults)
    names: list[Any] = []
    for edge in "abc":
        names += world.fill(edge, 12)
    world.run(60.0)
    world.run(150.0)
    assert sorted(name for served in world.serves.values() for name in served) == sorted(names)
    late = [one for one in world.mediator.sessions.values() if not one.is_over and one.deadline_at < world.now]
    assert late == []
    assert abs(world.averages()[0] - world.averages()[1]) <= 8, world.serves
