"""Mediators follow one another or run side by side; their crashes and take-overs are drawn from a seed."""

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


class RecordingBackend:
    """Creates mediators that do nothing, and records the calls."""

    def __init__(self) -> None:
        self.made: list[tuple[str, float]] = []

    def mediator(self, name: str, rng: random.Random) -> OverlayNode:
        self.made.append((name, rng.random()))
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
        self.lines: list[str] = []
        network = SimulatedNetwork(self.schedule, random.Random(1), ConnectionQuality())
        network.trace = self.lines.append
        self.journal = ObservationJournal(self.schedule)
        self.backend = RecordingBackend()
        self.mediators = MediatorSuccession(self.schedule, network, self.journal, random.Random(seed), self.backend)

    def alive(self) -> list[str]:
        return [host.name for host in self.mediators.hosts if host.node is not None]


def test_each_mediator_has_its_own_name_and_generator():
    world = World()
    assert world.mediators.current is None
    world.mediators.crash()  # there is none yet
    world.mediators.restart()
    world.mediators.crash()
    assert (world.alive(), world.lines) == ([], ["! mediator m0 is killed"])
    world.mediators.crash()
    assert len(world.lines) == 1, "it has crashed already"
    world.mediators.restart()
    assert world.alive() == ["m1"]
    numbers = [number for _, number in world.backend.made]
    assert len(set(numbers)) == 2, "its generator differs from that of the mediator before"
    again = World()
    again.mediators.start()
    again.mediators.start()
    assert again.backend.made == world.backend.made, "and is the same in another run"


def test_a_later_mediator_does_not_stop_the_earlier_one():
    world = World()
    world.mediators.start()
    world.mediators.start()
    assert world.alive() == ["m0", "m1"]
    world.mediators.restart()
    assert world.alive() == ["m0", "m1"], "the latest is still running"
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


def test_crashes_and_take_overs_have_about_the_requested_rate():
    world = planned(1.0)
    killed = len(world.lines)
    replaced = len(world.mediators.hosts) - 1
    assert 25 < replaced < 60
    assert 10 < killed < replaced - 5, "the others were replaced while they were running"
    assert world.alive()[-1] == f"m{replaced}", "the latest runs at the end"


def test_with_a_rate_of_zero_the_first_mediator_runs_to_the_end():
    world = planned(0.0)
    assert (world.alive(), world.lines) == (["m0"], [])


def test_a_plan_depends_on_its_seed_and_leaves_unwanted_labels_out():
    assert planned(1.0).lines == planned(1.0).lines != planned(1.0, seed=4).lines
    assert len(planned(1.0, without="life0").mediators.hosts) == len(planned(1.0).mediators.hosts) - 1


@pytest.mark.parametrize("at", [0.0, 7.5])
def test_leftovers_are_recorded(at: float):
    world = World()
    world.schedule.run(at)
    world.mediators.leftovers()
    assert world.journal.all == [
        seen.ResidueObserved("mediator", "one that never ended", 1, at),
        seen.ResidueObserved("mediator", "another", 1, at),
    ]
