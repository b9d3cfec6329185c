"""Faults have their effect, end when they should, and are drawn from their seed alone."""

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


class NoClients:
    """A run without applications."""

    def names(self) -> list[str]:
        return []

    def host(self, name: str) -> SimulatedHost:
        raise KeyError(name)

    def crash(self, name: str) -> None:
        raise KeyError(name)

    def restart(self, name: str) -> None:
        raise KeyError(name)

    def process_name(self, name: str) -> str:
        return ""


class World:
    def __init__(self, rates: FaultRates, seed: int = 1, spared: tuple[str, ...] = ()) -> None:
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
            rates, self.fleet, NoClients(), self.network, self.schedule, random.Random(seed), spared
        )

    def go(self, seconds: float = 10.0) -> None:
        self.faults.plan(1.0, 1.0 + seconds)
        self.schedule.run(1.0 + seconds)

    def traced_faults(self, text: str) -> list[str]:
        return [line for line in self.lines if "! " in line and text in line]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("reconnect", "breaks"),
        ("storm", "all connections of clients"),
        ("pause_edge", "is paused"),
        ("pause_head", "is paused"),
        ("wall", "partition between"),
        ("one_way", "partition from"),
        ("slow", "slow network between"),
        ("crash_edge", "is killed"),
        ("crash_head", "is killed"),
        ("lose_head", "is lost with its node"),
        ("lose_node", "is lost with the node of"),
    ],
)
def test_each_fault_has_about_the_requested_rate(kind: str, text: str):
    fields: dict[str, Any] = {kind: 2.0}
    rates = replace(FaultRates(), **fields)
    world = World(rates)
    world.go()
    assert 5 < world.faults.happened[kind] < 45
    assert world.traced_faults(text)


def test_a_fault_without_a_victim_does_not_count():
    world = World(FaultRates(crash_client=2.0, pause_client=2.0))
    world.go()
    assert world.faults.happened == {}


def test_healing_ends_all_faults():
    world = World(FaultRates(crash_edge=3.0, crash_head=3.0, pause_edge=3.0, wall=3.0, one_way=3.0, slow=3.0))
    world.go(3.0)
    world.faults.heal()
    assert all(broker.is_up and not broker.host.is_paused for broker in world.fleet.brokers.values())
    assert world.network.pair_qualities == {}
    world.schedule.run(60.0)
    assert all(broker.host.node.status()["ready"] for broker in world.fleet.brokers.values() if broker.host.node)


def test_spared_processes_are_never_struck():
    world = World(FaultRates(crash_head=3.0, pause_edge=3.0, reconnect=5.0, wall=2.0), spared=("h0", "h0e0"))
    world.go()
    struck = "\n".join(line for line in world.lines if "! " in line).split()
    assert "h1" in struck
    assert "h0" not in struck
    assert "h0e0" not in struck


def test_faults_are_drawn_from_their_seed():
    def trace(seed: int) -> list[str]:
        world = World(FaultRates(crash_edge=1.0, reconnect=1.0, slow=1.0), seed)
        world.go()
        return world.lines

    assert trace(1) == trace(1) != trace(2)
