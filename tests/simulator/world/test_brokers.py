"""Fleets have the requested shape, and their processes start with rising epochs."""

from __future__ import annotations

import random

from plimsoll.core.config import BrokerHardware, BrokerLimits
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.network import ConnectionQuality, SimulatedNetwork
from plimsoll.simulator.world.brokers import FleetShape, ObservationJournal, SimulatedFleet, data_endpoint


def fleet(shape: FleetShape, hardware: dict[str, BrokerHardware] | None = None) -> SimulatedFleet:
    schedule = EventQueue()
    network = SimulatedNetwork(schedule, random.Random(1), ConnectionQuality())
    return SimulatedFleet(
        shape, BrokerLimits(), hardware or {}, schedule, network, ObservationJournal(schedule), random.Random(1)
    )


def test_trees_have_their_shape():
    rng = random.Random(1)
    assert FleetShape(4, 1, "chain").links(rng) == [("h0", "h1"), ("h1", "h2"), ("h2", "h3")]
    assert FleetShape(4, 1, "star").links(rng) == [("h0", "h1"), ("h0", "h2"), ("h0", "h3")]
    for seed in range(20):
        links = FleetShape(6, 1, "random").links(random.Random(seed))
        assert len(links) == 5
        assert all(a < b for a, b in links), "each head is linked to an earlier one"


def test_configurations_name_each_other():
    some = fleet(FleetShape(3, 2), {"h1e1": BrokerHardware(memory_bytes=7)})
    middle = some.brokers["h1"].config
    assert [peer.name for peer in middle.neighbors] == ["h0", "h2"]
    assert middle.edges == ("h1e0", "h1e1")
    edge = some.brokers["h1e1"].config
    assert edge.head is not None
    assert (edge.head.name, edge.head.data, edge.hardware.memory_bytes) == ("h1", data_endpoint("h1"), 7)
    assert [broker.name for broker in some.heads()] == ["h0", "h1", "h2"]
    assert len(some.edges()) == 6


def test_processes_restart_with_higher_epochs_and_the_fleet_becomes_ready():
    some = fleet(FleetShape(2, 1))
    for name in some.brokers:
        some.start(name)
    some.schedule.run(1.0)
    assert isinstance(some.brokers["h0"].node, Head)
    assert isinstance(some.brokers["h0e0"].node, Edge)
    before = some.brokers["h0"].epoch
    some.crash("h0")
    assert not some.brokers["h0"].is_up
    some.start("h0")
    some.schedule.run(10.0)
    assert some.brokers["h0"].epoch > before
    assert all(broker.node.status()["ready"] for broker in some.brokers.values() if broker.node)
    ends = [one for one in some.journal.all if isinstance(one, seen.HeadEndObserved)]
    assert ends == [seen.HeadEndObserved("h0", before, 1.0)]
