"""All scenarios by name. Those with hand-overs are in `handover_scenarios`, those with groups in `group_scenarios`."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from plimsoll.core.head.standby.leadership import LEASE_SECONDS
from plimsoll.simulator.engine.network import ConnectionQuality
from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.scenarios import group_scenarios, handover_scenarios
from plimsoll.simulator.scenarios.scenario import SMALL_LIMITS, SimulationScenario
from plimsoll.simulator.world.brokers import FleetShape
from plimsoll.simulator.world.durable_heads import DurableHeads
from plimsoll.simulator.world.standby_heads import StandbyHeads
from plimsoll.simulator.world.workload import WorkloadSize

CALM = FaultRates(reconnect=0.3)
ROUGH = FaultRates(
    reconnect=0.3, storm=0.05, pause_client=0.15, pause_edge=0.15, wall=0.1, one_way=0.15, slow=0.15, crash_client=0.05
)

PROMOTED = (LEASE_SECONDS, LEASE_SECONDS + 0.35)
"""After the loss of a node: a mediator asks four times a second, and then changes what is stored."""

SIX = WorkloadSize(subscribers=6)

_ALL = [
    SimulationScenario("calm", "one cluster and no faults: no publication may be lost, late or uncertain"),
    SimulationScenario(
        "cluster", "one cluster of three edges, all faults but broker crashes", FleetShape(1, 3), fault_rates=ROUGH
    ),
    SimulationScenario("chain", "four clusters in a row", FleetShape(4, 1), SIX, fault_rates=ROUGH, processes=4),
    SimulationScenario(
        "far-apart",
        "four clusters in a row and a slow network: subscriptions change while publications are under way",
        FleetShape(4, 1),
        WorkloadSize(subscribers=6, publications=80, changes=20),
        connection=ConnectionQuality(0.05, 0.1),
        processes=4,
    ),
    SimulationScenario(
        "star", "five clusters, four around one", FleetShape(5, 1, "star"), SIX, fault_rates=ROUGH, processes=4
    ),
    SimulationScenario(
        "tree", "a random tree of six clusters", FleetShape(6, 1, "random"), SIX, fault_rates=ROUGH, processes=4
    ),
    SimulationScenario(
        "small-log",
        "a log so small that slow subscribers lose what it evicts, and receive a gap",
        FleetShape(2, 2),
        WorkloadSize(publications=200, payload_bytes=300),
        fault_rates=replace(ROUGH, pause_edge=0.3, slow=0.4, wall=0.2),
        log_bytes=6_000,
        window_bytes=2_500,
    ),
    SimulationScenario(
        "edge-restart",
        "edges are killed and restarted",
        FleetShape(1, 3),
        fault_rates=replace(CALM, crash_edge=0.5, pause_edge=0.1),
    ),
    SimulationScenario(
        "head-restart",
        "heads are killed and restarted with an empty log",
        FleetShape(1, 2),
        fault_rates=replace(CALM, crash_head=0.3),
    ),
    SimulationScenario(
        "head-restart-tree",
        "heads of a tree are killed and restarted",
        FleetShape(4, 1, "random"),
        SIX,
        fault_rates=replace(CALM, crash_head=0.3),
        processes=4,
    ),
    SimulationScenario(
        "durable-head",
        "heads that keep their log on a disk lose their machine and recover: nothing is lost, and there is no gap",
        FleetShape(1, 2),
        fault_rates=replace(CALM, crash_head=0.3),
        is_gap_free=True,
        durable=DurableHeads(),
        is_always_answered=True,
    ),
    SimulationScenario(
        "durable-tree",
        "heads of a tree that keep their logs on disks lose their machines and recover",
        FleetShape(4, 1, "random"),
        SIX,
        fault_rates=replace(CALM, crash_head=0.3),
        processes=4,
        is_gap_free=True,
        durable=DurableHeads(),
        is_always_answered=True,
    ),
    SimulationScenario(
        "durable-small",
        "durable heads with little memory and small segments: slow subscribers are served from the disk",
        FleetShape(2, 2),
        WorkloadSize(publications=200, payload_bytes=300),
        fault_rates=replace(ROUGH, crash_head=0.2, pause_edge=0.3, slow=0.4, wall=0.2),
        log_bytes=6_000,
        window_bytes=2_500,
        durable=DurableHeads(segment_bytes=5_000),
        is_always_answered=True,
    ),
    SimulationScenario(
        "durable-interval",
        "heads that sync their disk now and then lose their machine: what is lost is reported",
        FleetShape(3, 1, "random"),
        SIX,
        fault_rates=replace(CALM, crash_head=0.3),
        processes=3,
        durable=DurableHeads(always=False),
    ),
    SimulationScenario(
        "standby-head",
        "heads are killed, and their standbys take their place; standbys are killed, too: no loss, no gap",
        FleetShape(1, 2),
        fault_rates=replace(CALM, crash_head=0.5, crash_standby=0.2),
        is_gap_free=True,
        durable=StandbyHeads(),
        is_always_answered=True,
    ),
    SimulationScenario(
        "standby-tree",
        "the same in a tree of heads, with slow connections",
        FleetShape(3, 1, "random"),
        SIX,
        fault_rates=replace(CALM, crash_head=0.4, crash_standby=0.2, slow=0.2),
        processes=3,
        is_gap_free=True,
        durable=StandbyHeads(segment_bytes=5_000),
        is_always_answered=True,
    ),
    SimulationScenario(
        "standby-switched",
        "heads take on standbys and let them go while they run, and are killed while they have one: no loss, no gap",
        FleetShape(2, 2),
        WorkloadSize(publications=80),
        fault_rates=replace(CALM, crash_head=0.4, crash_standby=0.1, slow=0.2),
        is_gap_free=True,
        durable=StandbyHeads(segment_bytes=5_000, switch_seconds=(0.3, 2.5)),
        is_always_answered=True,
    ),
    SimulationScenario(
        "standby-lost",
        "heads are lost with their nodes, and no connection is closed: publishing again within the lease and a second",
        FleetShape(2, 2),
        WorkloadSize(publications=120, seconds=24.0),
        fault_rates=FaultRates(lose_head=0.1, seconds=PROMOTED),
        is_gap_free=True,
        durable=StandbyHeads(),
        is_always_answered=True,
        base=msgspec.structs.replace(SMALL_LIMITS, heartbeat_seconds=1.0, dead_seconds=10.0, lease_seconds=30.0),
    ),
    SimulationScenario(
        "standby-node-lost",
        "heads are lost with their nodes and an edge on each: publishing again within the lease and two seconds",
        FleetShape(1, 3),
        WorkloadSize(publications=120, seconds=48.0),
        fault_rates=FaultRates(lose_node=0.05, seconds=PROMOTED),
        is_gap_free=True,
        durable=StandbyHeads(),
        is_always_answered=True,
        base=msgspec.structs.replace(SMALL_LIMITS, heartbeat_seconds=1.0, dead_seconds=10.0, lease_seconds=30.0),
    ),
    SimulationScenario(
        "standby-both",
        "heads and standbys are killed at any moment, both of a pair as well: what is lost is reported",
        FleetShape(2, 2),
        fault_rates=replace(ROUGH, crash_head=0.3, crash_standby=0.5),
        durable=StandbyHeads(spares_alone=False),
    ),
    SimulationScenario(
        "durable-away",
        "applications go away for longer than edges keep their places, while edges and heads with disks are killed",
        FleetShape(2, 2),
        WorkloadSize(subscribers=6, publications=80),
        fault_rates=FaultRates(pause_client=0.4, reconnect=0.2, crash_edge=0.2, crash_head=0.2, seconds=(0.2, 7.0)),
        processes=4,
        is_gap_free=True,
        durable=DurableHeads(),
        lease_seconds=1000.0,
        base=msgspec.structs.replace(SMALL_LIMITS, lease_seconds=1.0),
    ),
    SimulationScenario(
        "durable-apart",
        "heads of a tree with disks lose their machines while neighbours are away for longer than those are waited for",
        FleetShape(4, 1, "random"),
        WorkloadSize(subscribers=6, publications=120, seconds=10.0),
        fault_rates=FaultRates(reconnect=0.2, pause_head=1.0, crash_head=0.8, seconds=(0.2, 8.0)),
        processes=4,
        is_gap_free=True,
        durable=DurableHeads(),
        is_always_answered=True,
        lease_seconds=1000.0,
        base=msgspec.structs.replace(SMALL_LIMITS, lease_seconds=0.5),
    ),
    SimulationScenario(
        "storm",
        "all clients lose their connections at once, again and again",
        FleetShape(2, 2),
        fault_rates=FaultRates(storm=1.5),
    ),
    SimulationScenario(
        "clients",
        "applications are killed and restarted as new incarnations",
        FleetShape(1, 2),
        fault_rates=FaultRates(crash_client=0.8, reconnect=0.2),
    ),
    SimulationScenario(
        "lossy",
        "single frames are dropped, repeated and reordered on every link",
        FleetShape(2, 2),
        connection=ConnectionQuality(0.002, 0.02, drop=0.03, duplicate=0.03, reorder=0.05),
        last_seconds=10.0,  # the same frame may be dropped many times
    ),
    SimulationScenario(
        "everything",
        "all faults, in a random tree",
        FleetShape(3, 2, "random"),
        SIX,
        fault_rates=replace(ROUGH, crash_edge=0.1, crash_head=0.05, pause_head=0.05),
        log_bytes=30_000,
        processes=3,
    ),
    SimulationScenario(
        "slow-edge",
        "one edge has a fraction of the bandwidth that it needs",
        FleetShape(1, 3),
        WorkloadSize(publications=150, payload_bytes=400, changes=0, subscribers=8),
        log_bytes=20_000,
        processes=4,
        victim="edge",
        settle_seconds=30.0,  # its queue takes seconds to drain
        last_seconds=10.0,
        undisturbed_seconds=0.25,
    ),
    SimulationScenario(
        "frozen-subscriber",
        "one application is paused",
        FleetShape(1, 2),
        WorkloadSize(publications=150, payload_bytes=400, changes=0),
        log_bytes=20_000,
        processes=4,
        victim="subscriber",
        undisturbed_seconds=0.25,
    ),
    SimulationScenario(
        "flooding-publisher",
        "one publisher publishes as fast as it can",
        FleetShape(2, 2),
        WorkloadSize(changes=0),
        victim="publisher",
        undisturbed_seconds=0.5,
    ),
]

SCENARIOS = {
    scenario.name: scenario
    for scenario in (*_ALL, *handover_scenarios.HANDOVER_SCENARIOS, *group_scenarios.GROUP_SCENARIOS)
}
