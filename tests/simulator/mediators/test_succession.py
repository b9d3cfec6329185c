"""Lives of mediators: one after another or side by side, each with an epoch of its own; deaths come from their seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.simulator.engine.test_host import Echo

from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.network import ConnectionQuality, SimulatedNetwork
from plimsoll.simulator.mediators.succession import MediatorSuccession
from plimsoll.simulator.world.brokers import ObservationJournal


class Office:
    """Makes mediators that do nothing, and keeps what it was asked with."""

    def __init__(self) -> None:
        self.made: list[tuple[str, float]] = []

    def mediator(self, name: str, draw: random.Random) -> OverlayNode:
        self.made.append((name, draw.random()))
        return Echo(name)

    def is_settled(self) -> bool:
        return True

    def leftovers(self) -> Iterator[str]:
        yield from ("one that never ended", "another")

    def counts(self) -> dict[str, int]:
        return {}


class World:
    def __init__(self, seed: int = 1) -> None:
        self.schedule = EventQueue()
        self.said: list[str] = []
        network = SimulatedNetwork(self.schedule, random.Random(1), ConnectionQuality())
        network.trace = self.said.append
        self.journal = ObservationJournal(self.schedule)
        self.office = Office()
        self.mediators = MediatorSuccession(self.schedule, network, self.journal, random.Random(seed), self.office)

    def alive(self) -> list[str]:
        return [host.name for host in self.mediators.hosts if host.node is not None]


def test_each_life_is_another_one():
    world = World()
    assert world.mediators.current is None
    world.mediators.crash()  # of nobody
    world.mediators.restart()
    world.mediators.crash()
    assert (world.alive(), world.said) == ([], ["! mediator m0 is killed"])
    world.mediators.crash()
    assert len(world.said) == 1, "it is dead already"
    world.mediators.restart()
    assert world.alive() == ["m1"]
    draws = [draw for _, draw in world.office.made]
    assert len(set(draws)) == 2, "it draws differently than the one before"
    again = World()
    again.mediators.start()
    again.mediators.start()
    assert again.office.made == world.office.made, "and the same in another run"


def test_a_younger_one_leaves_the_older_alone():
    world = World()
    world.mediators.start()
    world.mediators.start()
    assert world.alive() == ["m0", "m1"]
    world.mediators.restart()
    assert world.alive() == ["m0", "m1"], "the youngest lives"
    world.mediators.crash()
    assert world.alive() == ["m0"]
    world.mediators.restart()
    assert world.alive() == ["m0", "m2"]


def planned(rate: float, seed: int = 3, without: str = "") -> World:
    world = World()
    world.mediators.start()
    labels: list[str] = []

    def wanted(label: str) -> bool:
        labels.append(label)
        return label != without

    world.mediators.plan(rate, random.Random(seed), 1.0, 41.0, wanted)
    world.schedule.run(50.0)
    assert labels == [f"life{number}" for number in range(len(labels))]
    return world


def test_deaths_and_take_overs_are_about_as_many_as_asked():
    world = planned(1.0)
    killed = len(world.said)
    lives = len(world.mediators.hosts) - 1
    assert 25 < lives < 60
    assert 10 < killed < lives - 5, "the others were taken for dead"
    assert world.alive()[-1] == f"m{lives}", "at the end one lives"


def test_who_is_asked_for_none_lives_for_ever():
    world = planned(0.0)
    assert (world.alive(), world.said) == (["m0"], [])


def test_a_plan_comes_from_its_seed_and_can_do_without_some():
    assert planned(1.0).said == planned(1.0).said != planned(1.0, seed=4).said
    assert len(planned(1.0, without="life0").mediators.hosts) == len(planned(1.0).mediators.hosts) - 1


@pytest.mark.parametrize("at", [0.0, 7.5])
def test_what_is_left_over_is_seen(at: float):
    world = World()
    world.schedule.run(at)
    world.mediators.leftovers()
    assert world.journal.all == [
        seen.ResidueObserved("mediator", "one that never ended", 1, at),
        seen.ResidueObserved("mediator", "another", 1, at),
    ]
