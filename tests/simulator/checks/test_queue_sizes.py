"""The sizes of queues are measured, with the bounds that the configuration sets."""

from __future__ import annotations

from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.simulator.checks.queue_sizes import queue_sizes
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS


def test_every_queue_of_a_run_is_measured_and_within_its_bound():
    one = SimulationRun(SCENARIOS["slow-edge"], 1)
    one.go()
    measured = set()
    for broker in one.fleet.brokers.values():
        assert isinstance(broker.node, Head | Edge)
        for size in queue_sizes(broker.name, broker.node, 1.0, 2_000):
            assert size.value <= size.bound
            measured.add(size.what.rpartition(" ")[0])
    assert measured >= {"log", "bytes in flight to", "queue bytes of", "buffer bytes to"}


def test_a_queue_above_its_bound_is_found():
    one = SimulationRun(SCENARIOS["calm"], 1)
    one.go()
    node = one.fleet.brokers["h0"].node
    assert isinstance(node, Head)
    node.log.bytes = 10**9
    assert any(size.value > size.bound for size in queue_sizes("h0", node, 1.0, 2_000))
