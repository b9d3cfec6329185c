"""Faults do what they say, end when they should, and are drawn from their seed alone."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.core.config import BrokerLimits
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.host import SimulatedHost
from plimsoll.simulator.engine.network import ConnectionQuality, SimulatedNetwork
from plimsoll.simulator.fault_injection.random_faults import FaultInjector, FaultRates
from plimsoll.simulator.world.brokers import FleetShape, ObservationJournal, SimulatedFleet


class Nobody:
    """No applications."""

    def names(self) -> list[str]:
        return []

    def host(self, name: str) -> SimulatedHost:
        raise KeyError(name)

    def crash(self, name: str) -> None:
        raise KeyError(name)

    def restart(self, name: str) -> None:
        raise KeyError(name)

    def home(self, name: str) -> str:
        return ""


class World:
    def __init__(self, chances: FaultRates, seed: int = 1, spared: tuple[str, ...] = ()) -> None:
        self.lines: list[str] = []
        self.schedule = EventQueue()
        self.network = SimulatedNetwork(self.schedule, random.Random(seed), ConnectionQuality())
        self.network.trace = lambda text: self.lines.append(f"{self.schedule.now:.3f} {text}")
        self.fleet = SimulatedFleet(
            FleetShape(2, 2),
            BrokerLimits(),
            {},
            self.schedule,
            self.network,
            ObservationJournal(self.schedule),
            random.Random(seed),
        )
        for name in self.fleet.brokers:
            self.fleet.start(name)
        self.schedule.run(1.0)
        self.faults = FaultInjector(
            chances, self.fleet, Nobody(), self.network, self.schedule, random.Random(seed), spared
        )

    def go(self, seconds: float = 10.0) -> None:
        self.faults.plan(1.0, 1.0 + seconds)
        self.schedule.run(1.0 + seconds)

    def said(self, word: str) -> list[str]:
        return [line for line in self.lines if "! " in line and word in line]


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("reconnect", "breaks"),
        ("storm", "all connections of clients"),
        ("pause_edge", "stands still"),
        ("pause_head", "stands still"),
        ("wall", "no way between"),
        ("one_way", "no way from"),
        ("slow", "far apart"),
        ("crash_edge", "is killed"),
        ("crash_head", "is killed"),
    ],
)
def test_each_fault_happens_about_as_often_as_asked(kind: str, word: str):
    asked: dict[str, Any] = {kind: 2.0}
    chances = replace(FaultRates(), **asked)
    world = World(chances)
    world.go()
    assert 5 < world.faults.happened[kind] < 45
    assert world.said(word)


def test_nothing_happens_where_nobody_is():
    world = World(FaultRates(crash_client=2.0, pause_client=2.0))
    world.go()
    assert world.faults.happened == {}


def test_healing_ends_everything():
    world = World(FaultRates(crash_edge=3.0, crash_head=3.0, pause_edge=3.0, wall=3.0, one_way=3.0, slow=3.0))
    world.go(3.0)
    world.faults.heal()
    assert all(broker.is_up and not broker.host.is_paused for broker in world.fleet.brokers.values())
    assert world.network.weathers == {}
    world.schedule.run(60.0)
    assert all(broker.host.node.status()["ready"] for broker in world.fleet.brokers.values() if broker.host.node)


def test_the_spared_are_left_alone():
    world = World(FaultRates(crash_head=3.0, pause_edge=3.0, reconnect=5.0, wall=2.0), spared=("h0", "h0e0"))
    world.go()
    touched = "\n".join(line for line in world.lines if "! " in line).split()
    assert "h1" in touched
    assert "h0" not in touched
    assert "h0e0" not in touched


def test_faults_are_drawn_from_their_seed():
    def story(seed: int) -> list[str]:
        world = World(FaultRates(crash_edge=1.0, reconnect=1.0, slow=1.0), seed)
        world.go()
        return world.lines

    assert story(1) == story(1) != story(2)
