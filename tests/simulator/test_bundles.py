"""Policy Pulsar in virtual time: bundles of topics are split, moved and looked up again, and keep every law."""

from __future__ import annotations

import pytest
from tests.simulator.test_balancing import run, sessions

from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol.topic_units import hash_of_unit
from plimsoll.simulator.mediators.session_mediator import SessionBackend
from plimsoll.simulator.run import SimulationRun, run_seed


def head(one: SimulationRun) -> Head:
    node = one.fleet.heads()[0].host.node
    assert isinstance(node, Head)
    return node


@pytest.mark.parametrize("name", ["sessions-bundles", "sessions-bundles-lookup"])
def test_bundles_are_split_and_unloaded(name: str):
    one = run(name, 0)
    assert len(head(one).bundles.partition) > 2
    assert isinstance(one.mediators.backend, SessionBackend)
    assert tuple(one.mediators.backend.memory_of("h0")["boundaries"]) == head(one).bundles.partition.boundaries
    plans = [each for each in sessions(one) if each.kind == "rebalance" and each.plan and each.plan.bundles]
    assert plans
    assert any(each.plan is not None and each.plan.handover == "lookup" for each in plans) == name.endswith("lookup")


def test_every_subscriber_of_a_topic_is_served_as_a_unit():
    one = run("sessions-bundles", 1)
    nodes = [node for broker in one.fleet.edges() if isinstance(node := broker.host.node, Edge)]
    served = [name for node in nodes for name in node.attachments.by_subscriber]
    assert len(served) == 12
    assert all(hash_of_unit(name) is not None for name in served)


@pytest.mark.parametrize("seed", [0, 1])
def test_laws_hold_under_faults(seed: int):
    one = run("sessions-bundles-faults", seed)
    assert all(session.is_over for session in sessions(one))


def test_a_seed_gives_the_same_run():
    assert run_seed("sessions-bundles-faults", 2).digest == run_seed("sessions-bundles-faults", 2).digest
