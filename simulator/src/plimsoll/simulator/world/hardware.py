"""The hardware of simulated brokers that are not as fast as the processes that run them."""

from __future__ import annotations

import random

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.simulator.scenarios.scenario import SimulationScenario

PUBLICATION_SECONDS = (0.0004, 0.0016)
"""The time for one publication per subscription, at a normal and at a slow edge, in scenarios with a policy."""


def hardware_of(scenario: SimulationScenario, rng: random.Random) -> dict[str, BrokerHardware]:
    """The hardware by broker; of a scenario with neither a policy nor slow brokers there is none."""
    if scenario.policy is not None:
        return _uneven_hardware(scenario)
    if scenario.slow is None:
        return {}
    shape = scenario.shape
    return {
        name: scenario.slow
        for head in shape.heads()
        for name in (head, *shape.edges_of(head))
        if rng.random() < 0.5
    }  # fmt: skip


def _uneven_hardware(scenario: SimulationScenario) -> dict[str, BrokerHardware]:
    """The first edge of each cluster is slower; where heads may be overloaded, the first can send less."""
    shape, policy = scenario.shape, scenario.policy
    normal, slow = (
        BrokerHardware(emulation=HardwareEmulation(per_subscription_seconds=each)) for each in PUBLICATION_SECONDS
    )
    edges = {edge: normal for head in shape.heads() for edge in shape.edges_of(head)}
    edges |= {shape.edges_of(head)[0]: slow for head in shape.heads()}
    own = policy.deadlines.heads if policy is not None and policy.deadlines is not None else None
    if own is None:
        return edges
    rates = {head: own.others if number else own.first for number, head in enumerate(shape.heads())}
    return edges | {head: BrokerHardware(output_bytes_per_second=rate) for head, rate in rates.items()}
