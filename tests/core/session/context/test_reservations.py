"""Messages of reservations: repeated until edges answer, for a limited time, and correct after a mediator's death."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.balanced import Balanced
from tests.core.session.made import context_of, session

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import HeadMessage


@pytest.fixture
def world() -> Balanced:
    world = Balanced(seed=3)
    world.fill("a", 24)
    for edge in world.edges.values():
        edge.sensing._look_at = float("inf")
    world.run(3.0)
    return world


def words(world: Balanced, edge: str) -> list[msg.Reservation]:
    return [
        effect.message
        for effect in world.sent
        if isinstance(effect.message, msg.Reservation) and effect.message.edge == edge
    ]


def deaf(world: Balanced, edge: str) -> None:
    world.edges[edge].sensing.on_reservation = lambda reservation: None


def test_words_are_in_order_and_end(world: Balanced):
    uid = world.ask("s", source="a", target="b")
    world.until_over(uid)
    world.run(10.0)
    for edge, first in (("a", "BUSY"), ("b", "ASK")):
        said = words(world, edge)
        states = [one.state for one in said]
        assert list(dict.fromkeys(states)) == list(dict.fromkeys([first, "BUSY", "STABILIZING"]))
        numbers = [one.number for one in said]
        assert numbers == sorted(set(numbers))
        assert {one.session for one in said} == {"s"}
    before = len(world.sent)
    world.run(20.0)
    assert not [effect for effect in world.sent[before:] if isinstance(effect.message, msg.Reservation)]
    assert not world.mediator._context.reservations.sent


def test_who_does_not_answer_is_told_again_and_at_last_left_alone(world: Balanced):
    uid = world.ask("s", source="a", target="b", approval={"policy": "Manual"})
    world.until(lambda: world.mediator.sessions[uid].phase == "Planned")
    deaf(world, "a")
    world.run(4.0)
    assert len([one for one in words(world, "a") if one.state == "OK"]) > 3
    world.run(30.0)
    assert "a" not in world.mediator._context.reservations.sent


def test_answers_of_another_life_or_to_older_words_are_ignored(world: Balanced):
    uid = world.ask("s", source="a", target="b")
    world.until(lambda: world.mediator.sessions[uid].phase == "Negotiating")
    deaf(world, "b")
    last = words(world, "b")[-1].number if words(world, "b") else 0
    for mediator, number in ((0, last), (1, 0), (1, last + 1000), (9, last)):
        world.handle(
            HeadMessage("east-head", msg.ReservationReply(mediator, number, "b", 7, "s", "OK", {"broker": "b"}))
        )
    assert world.mediator.sessions[uid].phase == "Negotiating"
    world.until_over(uid)
    assert world.session(uid).reason == "NobodyTakes"


def test_a_mediator_that_dies_is_followed_by_one_that_says_the_same(world: Balanced):
    uid = world.ask("s", source="a", target="b", limits={"maxInFlight": 2})
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    world.start()
    world.run(1.0)
    assert {one.mediator for one in words(world, "a")} == {1, 2}
    assert world.edges["a"].sensing.state == world.edges["b"].sensing.state == "BUSY"
    world.until_over(uid)
    world.run(10.0)
    assert set(world.states()) <= {"OK", "STABILIZING"}


def test_edges_are_told_of_sessions_of_people_too(world: Balanced):
    uid = world.ask("s", source="a", target="b", select={"count": 3})
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    world.run(0.3)
    assert world.states()[:2] == ("BUSY", "BUSY")
    world.until_over(uid)
    world.run(0.5)
    assert world.states()[:2] == ("STABILIZING", "STABILIZING")


@pytest.mark.parametrize("done", [0, 1])
def test_a_source_stays_busy_while_one_of_the_children_that_share_it_moves_subscribers(done: int):
    phases = ["Draining", "Draining"]
    phases[done] = "Stabilizing"
    children = [session(uid, parent="p", phase=phase, sources=["a"], targets=[target])
                for uid, phase, target in zip("xy", phases, "bc", strict=True)]  # fmt: skip
    context = context_of(session("p", kind="drain", phase="Draining", sources=["a"]), *children)
    context.reservations.send(context.fleet, context.table)
    sent = {edge: (each.uid, each.state) for edge, each in context.reservations.sent.items()}
    states = {child.uid: ("STABILIZING" if child.phase == "Stabilizing" else "BUSY") for child in children}
    assert sent == {"a": ("xy"[1 - done], "BUSY"), "b": ("x", states["x"]), "c": ("y", states["y"])}


def test_edges_of_clusters_without_a_policy_are_told_nothing(world: Balanced):
    world.fill("w", 5)
    uid = world.ask("s", source="w", target="v", select={"count": 2})
    world.until_over(uid)
    assert not words(world, "w")
    assert not words(world, "v")


def test_a_failure_after_a_move_stabilizes_and_one_without_a_move_releases(world: Balanced):
    world.refuses = True
    uid = world.ask("s", source="a", target="b")
    world.until_over(uid)
    world.run(2.0)
    assert world.session(uid).phase == "RolledBack"
    assert world.states() == ("OK", "OK", "OK")
    world.refuses = False
    other = world.ask("t", source="a", target="b", limits={"maxInFlight": 1})
    world.until(lambda: world.mediator.sessions[other].counts()["moved"] >= 2)
    world.change(other, stop=True)
    world.until_over(other)
    world.run(0.5)
    assert world.session(other).phase == "Failed"
    assert world.edges["a"].sensing.state == "STABILIZING"


@pytest.mark.parametrize("edge", ["a", "b"])
def test_a_restarted_edge_learns_that_it_is_busy(world: Balanced, edge: Any):
    uid = world.ask("s", source="a", target="b", limits={"maxInFlight": 1}, deadline="3m")
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    world.edges[edge].restart()
    world.edges[edge].sensing._look_at = float("inf")
    world.until(lambda: world.edges[edge].sensing.state == "BUSY" or world.mediator.sessions[uid].is_over)
    assert not world.mediator.sessions[uid].is_over
