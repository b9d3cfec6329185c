"""Scenarios with a consumer group: members join, leave, are killed and cut off, and load moves slices between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.mediators.handover_plan import HandoverMix
from plimsoll.simulator.mediators.session_mediator import PlannedSessionMix
from plimsoll.simulator.scenarios.scenario import SMALL_LIMITS, SimulationScenario
from plimsoll.simulator.world.brokers import FleetShape
from plimsoll.simulator.world.consumers import GroupLoad
from plimsoll.simulator.world.durable_heads import DurableHeads
from plimsoll.simulator.world.workload import WorkloadSize

LIMITS = msgspec.structs.replace(SMALL_LIMITS, lease_seconds=3.0, queue_bytes=40_000)
"""Members are taken to be gone after 1.8 s, and loads are evened out every 3 s."""

LOAD = WorkloadSize(subscribers=2, publications=400, seconds=8.0, changes=0)
LINKS = FaultRates(reconnect=0.5, pause_client=0.2, wall=0.15, one_way=0.15, slow=0.1, seconds=(0.02, 3.0))

CACHES = GroupLoad(in_session="Cache", changes=6, work_seconds=(0.01, 0.12))
"""Slow enough that something is in the caches."""


def _scenario(name: str, about: str, **more: Any) -> SimulationScenario:
    values: dict[str, Any] = {
        "shape": FleetShape(1, 3), "load": LOAD, "base": LIMITS, "group": GroupLoad(), "settle_seconds": 20.0,
        "last_seconds": 6.0, **more,
    }  # fmt: skip
    return SimulationScenario(f"groups{name}", about, **values)


GROUP_SCENARIOS = [
    _scenario("", "consumers of a group join, leave and are unequally fast; no faults", is_gap_free=True),
    _scenario(
        "-faults",
        "consumers and edges are killed, frozen and cut off, and no item may be missing",
        fault_rates=replace(LINKS, crash_client=0.15, crash_edge=0.1, pause_edge=0.15),
        is_gap_free=True,
    ),
    _scenario(
        "-heads",
        "the head of the group is killed and frozen, too: what its log has lost is told as gaps",
        fault_rates=replace(LINKS, crash_client=0.1, crash_edge=0.1, crash_head=0.15, pause_head=0.1),
    ),
    _scenario(
        "-durable",
        "the head of a declared group loses its machine, and its log on a disk knows how far slices are: without a gap",
        group=GroupLoad(is_declared=True),
        fault_rates=replace(LINKS, crash_client=0.15, crash_edge=0.1, crash_head=0.2),
        durable=DurableHeads(),
        is_gap_free=True,
    ),
    _scenario(
        "-pairing",
        "the algorithm of the text, while links are disturbed",
        group=GroupLoad(balancing="Pairing"),
        fault_rates=LINKS,
        is_gap_free=True,
    ),
    _scenario(
        "-caches",
        "slices move with their caches, while consumers join, leave and are unequally fast; no faults",
        group=CACHES,
        is_gap_free=True,
    ),
    _scenario(
        "-caches-faults",
        "slices move with their caches and between edges, while consumers and edges are killed, frozen and cut off",
        group=CACHES,
        handovers=HandoverMix(3, aim=0.3, replay=0.3, lives=0.2, batch=3),
        fault_rates=replace(LINKS, crash_client=0.15, crash_edge=0.1, pause_edge=0.15),
        is_gap_free=True,
    ),
    _scenario(
        "-caches-heads",
        "slices move with their caches, while the head of the group is killed and frozen, too",
        group=CACHES,
        fault_rates=replace(LINKS, crash_client=0.1, crash_edge=0.1, crash_head=0.15, pause_head=0.1),
    ),
    _scenario(
        "-handovers",
        "slices move between edges while they move between consumers, and edges and consumers are killed",
        handovers=HandoverMix(4, aim=0.4, replay=0.3, lives=0.3, batch=3),
        fault_rates=replace(LINKS, crash_client=0.1, crash_edge=0.1),
        is_gap_free=True,
    ),
    _scenario(
        "-clusters",
        "consumers of two clusters share a group, while all links, those between heads too, are disturbed",
        shape=FleetShape(2, 2),
        group=GroupLoad(clusters=2),
        fault_rates=replace(LINKS, crash_client=0.15, crash_edge=0.1),
        is_gap_free=True,
    ),
    _scenario(
        "-durable-clusters",
        "consumers of two clusters share a group, and heads with disks lose their machines: without a gap",
        shape=FleetShape(2, 2),
        group=GroupLoad(clusters=2),
        fault_rates=replace(LINKS, crash_client=0.1, crash_edge=0.15, crash_head=0.2),
        durable=DurableHeads(),
        lease_seconds=1000.0,
        is_gap_free=True,
    ),
    _scenario(
        "-clusters-caches",
        "slices move with their caches between consumers of two clusters, while all links are disturbed",
        shape=FleetShape(2, 2),
        group=replace(CACHES, clusters=2),
        fault_rates=replace(LINKS, crash_client=0.15, crash_edge=0.1),
        is_gap_free=True,
    ),
    _scenario(
        "-sessions",
        "sessions move slices between consumers and between edges, while mediators and consumers are killed",
        handovers=HandoverMix(lives=0.6),
        sessions=PlannedSessionMix(8, slices=0.8),
        fault_rates=replace(LINKS, crash_client=0.1, crash_edge=0.05),
        is_gap_free=True,
    ),
    _scenario(
        "-sessions-heads",
        "the same, while the head of the group is killed, too",
        handovers=HandoverMix(lives=0.6),
        sessions=PlannedSessionMix(8, slices=0.8),
        fault_rates=replace(LINKS, crash_client=0.1, crash_head=0.15),
    ),
]
