"""Scenarios with hand-overs. Their runs are short, since a hand-over and its faults take a few seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.simulator.engine.network import ConnectionQuality
from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.mediators.handover_plan import HandoverMix
from plimsoll.simulator.mediators.session_mediator import (
    DeadlineShape,
    HeadShape,
    PlannedSessionMix,
    PulsarShape,
    SimulatedPolicy,
)
from plimsoll.simulator.scenarios.scenario import SMALL_LIMITS, SimulationScenario
from plimsoll.simulator.world.brokers import FleetShape
from plimsoll.simulator.world.durable_heads import DurableHeads
from plimsoll.simulator.world.standby_heads import StandbyHeads
from plimsoll.simulator.world.workload import WorkloadSize

QUICK = msgspec.structs.replace(
    SMALL_LIMITS, lease_seconds=2.0, heartbeat_seconds=0.4, dead_seconds=1.2, progress_seconds=0.25, report_seconds=0.5
)

LOAD = WorkloadSize(subscribers=5, publications=40, seconds=2.0, changes=3)
LOSSY_CONTROL = ConnectionQuality(0.001, 0.03, drop=0.15, duplicate=0.15, reorder=0.3)
"""The quality of control sockets: commands are lost, repeated, delayed and reordered."""

BUMPY = FaultRates(reconnect=0.5, pause_client=0.2, wall=0.15, one_way=0.15, slow=0.1, seconds=(0.02, 0.8))
BALANCING_LOAD = WorkloadSize(subscribers=12, publications=900, seconds=9.0, changes=0, zero_traffic=0.0)
PUBLISHERS_LOAD = WorkloadSize(publishers=5, subscribers=5, publications=150, seconds=4.0, changes=3)
TOPICS_LOAD = replace(BALANCING_LOAD, publications=450, topics=9)
SHARED_TOPICS_LOAD = replace(TOPICS_LOAD, topics=5)
"""Most topics have several subscribers in a cluster."""
HEADS_LOAD = replace(TOPICS_LOAD, publishers=6, topics=5)
AWAY_LOAD = replace(LOAD, subscribers=6, publications=100, seconds=6.0)
AWAY = FaultRates(pause_client=0.6, reconnect=0.3, crash_edge=0.2, crash_head=0.2, seconds=(0.2, 6.0))
"""Applications are away for longer than edges keep places."""
SHORT_LEASES = msgspec.structs.replace(QUICK, lease_seconds=1.0)
FREQUENT_REPORTS = msgspec.structs.replace(QUICK, report_seconds=0.25)
FAULTY = HandoverMix(3, replay=0.3, aim=0.4)
EMULATION = HardwareEmulation(base_seconds=0.004, per_subscription_seconds=0.0004)
QUIET_POLICY = SimulatedPolicy(check_seconds=60.0)
"""Edges report their loads but never start a session in a run, so only requested sessions move subscribers."""

LATE_UNITS_SECONDS = 30.0
"""Time after the last publications until units that have come late are at the edge that owns their bundle.

A session that begins then may wait 3 s for lookups that end elsewhere, loads settle for 2 s in it and for 2 s after it,
and halves that have just been split are unloaded first: some 7 s, perhaps more than once. Only then two looks in a row
find units that are late, and a session brings them. A run that has settled ends earlier.
"""

EDGE_VICTIMS = ("subscriber", "source", "target")
ALL_VICTIMS = (*EDGE_VICTIMS, "head", "target-head", "neighbor")


def _handover_scenario(name: str, about: str, shape: FleetShape, mix: HandoverMix, **more: Any) -> SimulationScenario:
    values: dict[str, Any] = {"load": LOAD, "control": LOSSY_CONTROL, "base": QUICK, "settle_seconds": 20.0, **more}
    return SimulationScenario(f"sessions-{name}", about, shape, handovers=mix, **values)


HANDOVER_SCENARIOS = [
    _handover_scenario(
        "calm",
        "hand-overs by drain and by replay, no faults",
        FleetShape(1, 3),
        HandoverMix(4, replay=0.4),
        control=None,
        is_gap_free=True,
    ),
    _handover_scenario(
        "local",
        "by drain within a cluster",
        FleetShape(1, 3),
        replace(FAULTY, replay=0.0),
        fault_rates=BUMPY,
        is_gap_free=True,
    ),
    _handover_scenario(
        "clients",
        "applications are killed and restarted before and while their subscribers move",
        FleetShape(1, 3),
        HandoverMix(12, replay=0.2),
        load=replace(LOAD, subscribers=8, seconds=6.0),
        fault_rates=FaultRates(crash_client=1.0, reconnect=0.3, seconds=(1.0, 5.0)),
        processes=3,
    ),
    _handover_scenario(
        "replay",
        "by replay within a cluster",
        FleetShape(1, 3),
        replace(FAULTY, replay=1.0),
        fault_rates=BUMPY,
        is_gap_free=True,
    ),
    _handover_scenario(
        "across",
        "between clusters in a row",
        FleetShape(3, 2),
        replace(FAULTY, across=0.8),
        fault_rates=BUMPY,
        processes=3,
        is_gap_free=True,
    ),
    _handover_scenario(
        "tree",
        "between clusters of a random tree, one edge each",
        FleetShape(4, 1, "random"),
        FAULTY,
        fault_rates=BUMPY,
        processes=4,
        is_gap_free=True,
    ),
    _handover_scenario(
        "batch",
        "many members at once, through small windows",
        FleetShape(1, 2),
        replace(FAULTY, batch=10, handovers=2),
        load=replace(LOAD, subscribers=14),
        fault_rates=BUMPY,
        window_bytes=3_000,
        processes=3,
        is_gap_free=True,
    ),
    _handover_scenario(
        "drain-deadline",
        "deadlines that cannot be met",
        FleetShape(2, 2),
        replace(FAULTY, across=0.3, tight=0.7),
        fault_rates=replace(BUMPY, pause_client=0.6),
    ),
    _handover_scenario(
        "hold",
        "queues so small that they overflow during a hand-over",
        FleetShape(2, 2),
        replace(FAULTY, across=0.3),
        load=replace(LOAD, publications=80, payload_bytes=200, holds=4),
        base=msgspec.structs.replace(QUICK, queue_bytes=1_200, link_buffer_bytes=1_500),
        fault_rates=replace(BUMPY, pause_client=0.6),
    ),
    _handover_scenario(
        "lag",
        "a log so small that gaps occur during hand-overs",
        FleetShape(2, 2),
        replace(FAULTY, across=0.4),
        load=replace(LOAD, publications=120, payload_bytes=300, holds=2),
        log_bytes=4_000,
        window_bytes=2_500,
        fault_rates=replace(BUMPY, pause_edge=0.4, slow=0.4, wall=0.3),
    ),
    _handover_scenario(
        "edge-crash",
        "edges are killed during hand-overs",
        FleetShape(2, 2),
        replace(FAULTY, across=0.3, aim=0.7, crashable=EDGE_VICTIMS),
        fault_rates=replace(BUMPY, crash_edge=0.2),
        is_gap_free=True,
    ),
    _handover_scenario(
        "head-restart",
        "heads are killed during hand-overs",
        FleetShape(2, 2),
        replace(FAULTY, across=0.5, aim=0.7, crashable=("head", "target-head")),
        fault_rates=FaultRates(reconnect=0.3, crash_head=0.1),
    ),
    _handover_scenario(
        "durable-head",
        "heads that keep their log on a disk lose their machine during hand-overs, in one cluster: without a gap",
        FleetShape(1, 3),
        replace(FAULTY, aim=0.7, crashable=("head",)),
        fault_rates=FaultRates(reconnect=0.3, crash_head=0.1),
        is_gap_free=True,
        durable=DurableHeads(),
        is_always_answered=True,
    ),
    _handover_scenario(
        "durable-head-across",
        "the same in two clusters",
        FleetShape(2, 2),
        replace(FAULTY, across=0.5, aim=0.7, crashable=("head", "target-head")),
        fault_rates=FaultRates(reconnect=0.3, crash_head=0.1),
        is_gap_free=True,
        durable=DurableHeads(),
        is_always_answered=True,
    ),
    _handover_scenario(
        "durable-away",
        "subscribers with a lease are moved while they are away or back, and edges and heads with disks are killed",
        FleetShape(1, 4),
        HandoverMix(8, replay=0.3, aim=0.3, crashable=("head", "source", "target")),
        load=AWAY_LOAD,
        fault_rates=AWAY,
        processes=3,
        is_gap_free=True,
        durable=DurableHeads(),
        lease_seconds=1000.0,
        base=SHORT_LEASES,
    ),
    _handover_scenario(
        "durable-away-across",
        "the same in two clusters: of two places that a subscriber has, the one that is left over goes",
        FleetShape(2, 2),
        HandoverMix(8, replay=0.3, across=0.6, aim=0.3, crashable=("head", "target-head", "source", "target")),
        load=AWAY_LOAD,
        fault_rates=replace(AWAY, crash_head=0.3),
        processes=3,
        is_gap_free=True,
        durable=DurableHeads(),
        lease_seconds=1000.0,
        base=SHORT_LEASES,
    ),
    _handover_scenario(
        "standby-head",
        "heads are killed during hand-overs in one cluster, and their standbys take their place: without a gap",
        FleetShape(1, 3),
        replace(FAULTY, aim=0.7, crashable=("head",)),
        fault_rates=FaultRates(reconnect=0.3, crash_head=0.1, crash_standby=0.1),
        is_gap_free=True,
        durable=StandbyHeads(),
        is_always_answered=True,
    ),
    _handover_scenario(
        "mediator",
        "mediators are killed, or replaced while they still run",
        FleetShape(2, 2),
        replace(FAULTY, across=0.3, handovers=4, lives=1.5, aim=0.2, stale=0.4),
        fault_rates=FaultRates(reconnect=0.3),
        is_gap_free=True,
    ),
    _handover_scenario(
        "slow",
        "brokers with slow processors and little bandwidth",
        FleetShape(1, 3),
        replace(FAULTY, replay=0.6),
        load=replace(LOAD, publications=80, payload_bytes=200),
        control=None,
        slow=BrokerHardware(output_bytes_per_second=20_000, emulation=EMULATION),
        is_gap_free=True,
    ),
    _handover_scenario(
        "planned",
        "balancing sessions, planned and driven by the mediator of the product",
        FleetShape(2, 3),
        HandoverMix(lives=0.4),
        sessions=PlannedSessionMix(4),
        fault_rates=BUMPY,
        processes=3,
        is_gap_free=True,
    ),
    _handover_scenario(
        "planned-restarts",
        "the same, while brokers and mediators are killed",
        FleetShape(2, 3),
        HandoverMix(lives=1.0),
        sessions=PlannedSessionMix(4),
        fault_rates=replace(BUMPY, crash_edge=0.2, crash_head=0.15),
        processes=3,
    ),
    _handover_scenario(
        "publishers",
        "publishers move between heads, and subscribers between edges, while links are disturbed",
        FleetShape(3, 2),
        HandoverMix(lives=0.4),
        load=PUBLISHERS_LOAD,
        sessions=PlannedSessionMix(6, publishers=0.75),
        fault_rates=BUMPY,
        processes=3,
        is_gap_free=True,
    ),
    _handover_scenario(
        "publishers-restarts",
        "publishers move between heads, while brokers and mediators are killed",
        FleetShape(3, 2),
        HandoverMix(lives=1.0),
        load=PUBLISHERS_LOAD,
        sessions=PlannedSessionMix(6, publishers=0.75),
        fault_rates=replace(BUMPY, crash_edge=0.1, crash_head=0.2),
        processes=3,
    ),
    _handover_scenario(
        "publishers-links",
        "publishers move between heads, while links break for so long that clients and heads give them up",
        FleetShape(3, 2),
        HandoverMix(lives=0.4),
        load=PUBLISHERS_LOAD,
        sessions=PlannedSessionMix(6, publishers=0.8),
        fault_rates=FaultRates(reconnect=0.5, wall=0.6, one_way=0.4, slow=0.2, seconds=(0.2, 2.5)),
        processes=3,
    ),
    _handover_scenario(
        "publishers-across",
        "publishers move between heads and subscribers between clusters at the same time, while heads are killed",
        FleetShape(3, 2),
        HandoverMix(lives=0.4),
        load=PUBLISHERS_LOAD,
        sessions=PlannedSessionMix(8, across=1.0, publishers=0.5),
        fault_rates=replace(BUMPY, crash_head=0.3),
        processes=3,
    ),
    _handover_scenario(
        "publishers-replaced",
        "heads are drained of publishers and replaced, while subscribers move between clusters",
        FleetShape(3, 2),
        HandoverMix(lives=0.4),
        load=PUBLISHERS_LOAD,
        sessions=PlannedSessionMix(6, across=0.6, publishers=0.7, replace=True, stop=0.0),
        fault_rates=FaultRates(reconnect=0.5, slow=0.2, seconds=(0.02, 0.3)),
        processes=3,
        is_always_answered=True,
    ),
    _handover_scenario(
        "balanced",
        "a policy balances edges of unequal hardware, no faults",
        FleetShape(1, 3),
        HandoverMix(),
        load=BALANCING_LOAD,
        control=None,
        policy=SimulatedPolicy(),
        base=FREQUENT_REPORTS,
        is_gap_free=True,
    ),
    _handover_scenario(
        "balanced-faults",
        "the same, while mediators are killed and control sockets lose, repeat and delay commands",
        FleetShape(2, 3),
        HandoverMix(lives=0.4),
        load=BALANCING_LOAD,
        policy=SimulatedPolicy(),
        base=FREQUENT_REPORTS,
        fault_rates=BUMPY,
        processes=3,
        is_gap_free=True,
    ),
    _handover_scenario(
        "shuffled",
        "clusters of unequal hardware are shuffled, no faults",
        FleetShape(1, 3),
        HandoverMix(),
        load=BALANCING_LOAD,
        control=None,
        sessions=PlannedSessionMix(2, shuffle=1.0, stop=0.0),
        policy=QUIET_POLICY,
        base=FREQUENT_REPORTS,
        is_gap_free=True,
    ),
    _handover_scenario(
        "shuffled-faults",
        "the same in two clusters, while mediators are killed and control sockets lose, repeat and delay commands",
        FleetShape(2, 3),
        HandoverMix(lives=0.4),
        load=BALANCING_LOAD,
        sessions=PlannedSessionMix(3, shuffle=0.9),
        policy=QUIET_POLICY,
        base=FREQUENT_REPORTS,
        fault_rates=BUMPY,
        processes=3,
        is_gap_free=True,
    ),
    _handover_scenario(
        "shuffled-restarts",
        "the same in one cluster, while brokers are killed",
        FleetShape(1, 3),
        HandoverMix(lives=0.6),
        load=BALANCING_LOAD,
        sessions=PlannedSessionMix(3, shuffle=0.9),
        policy=QUIET_POLICY,
        base=FREQUENT_REPORTS,
        fault_rates=replace(BUMPY, crash_edge=0.15, crash_head=0.1),
        processes=3,
    ),
    _handover_scenario(
        "bundles",
        "policy Pulsar splits bundles of topics and hands them over, no faults",
        FleetShape(1, 3),
        HandoverMix(),
        load=TOPICS_LOAD,
        control=None,
        policy=SimulatedPolicy("Pulsar", pulsar=PulsarShape()),
        base=FREQUENT_REPORTS,
        is_gap_free=True,
    ),
    _handover_scenario(
        "bundles-lookup",
        "policy Pulsar splits bundles of topics, whose units look them up again, no faults",
        FleetShape(1, 3),
        HandoverMix(),
        load=TOPICS_LOAD,
        control=None,
        policy=SimulatedPolicy("Pulsar", pulsar=PulsarShape("Lookup")),
        base=FREQUENT_REPORTS,
        is_gap_free=True,
    ),
    _handover_scenario(
        "bundles-faults",
        "bundles of topics, while edges, heads and mediators are killed, frozen or cut off",
        FleetShape(1, 3),
        HandoverMix(lives=0.6),
        load=TOPICS_LOAD,
        policy=SimulatedPolicy("Pulsar", pulsar=PulsarShape()),
        base=FREQUENT_REPORTS,
        fault_rates=replace(BUMPY, crash_edge=0.15, crash_head=0.1, pause_edge=0.2, pause_head=0.1),
        processes=3,
        settle_seconds=30.0,
        last_seconds=LATE_UNITS_SECONDS,
    ),
    _handover_scenario(
        "bundles-lookup-faults",
        "bundles of topics that units look up again, with the same faults",
        FleetShape(1, 3),
        HandoverMix(lives=0.6),
        load=TOPICS_LOAD,
        policy=SimulatedPolicy("Pulsar", pulsar=PulsarShape("Lookup")),
        base=FREQUENT_REPORTS,
        fault_rates=replace(BUMPY, crash_edge=0.15, crash_head=0.1, pause_edge=0.2, pause_head=0.1),
        processes=3,
        settle_seconds=30.0,
        last_seconds=LATE_UNITS_SECONDS,
    ),
    _handover_scenario(
        "deadlines",
        "policy DelaySensitive moves topics away from overloaded edges, no faults",
        FleetShape(2, 3),
        HandoverMix(),
        load=SHARED_TOPICS_LOAD,
        control=None,
        policy=SimulatedPolicy("DelaySensitive", deadlines=DeadlineShape()),
        base=FREQUENT_REPORTS,
        is_gap_free=True,
    ),
    _handover_scenario(
        "deadlines-clusters",
        "topics with deadlines that go to a neighbouring cluster where the own edges do not suffice, with faults",
        FleetShape(3, 2),
        HandoverMix(lives=0.6),
        load=SHARED_TOPICS_LOAD,
        policy=SimulatedPolicy("DelaySensitive", deadlines=DeadlineShape(is_across=True)),
        base=FREQUENT_REPORTS,
        fault_rates=replace(BUMPY, crash_edge=0.1, crash_head=0.1, pause_edge=0.2, pause_head=0.1),
        processes=3,
        settle_seconds=30.0,
        last_seconds=10.0,
    ),
    _handover_scenario(
        "deadlines-faults",
        "topics with deadlines, while edges, heads and mediators are killed, frozen or cut off",
        FleetShape(2, 3),
        HandoverMix(lives=0.6),
        load=SHARED_TOPICS_LOAD,
        policy=SimulatedPolicy("DelaySensitive", deadlines=DeadlineShape()),
        base=FREQUENT_REPORTS,
        fault_rates=replace(BUMPY, crash_edge=0.15, crash_head=0.1, pause_edge=0.2, pause_head=0.1),
        processes=3,
        settle_seconds=30.0,
        last_seconds=10.0,  # a session may begin after the last publications
    ),
    _handover_scenario(
        "deadlines-heads",
        "publishers leave an overloaded head by themselves, and topics overloaded edges, no faults",
        FleetShape(3, 2),
        HandoverMix(),
        load=HEADS_LOAD,
        control=None,
        policy=SimulatedPolicy("DelaySensitive", deadlines=DeadlineShape(heads=HeadShape())),
        base=FREQUENT_REPORTS,
        processes=3,
        is_gap_free=True,
    ),
    _handover_scenario(
        "deadlines-heads-faults",
        "publishers leave an overloaded head by themselves, while heads, edges and mediators are killed or cut off",
        FleetShape(3, 2),
        HandoverMix(lives=0.6),
        load=HEADS_LOAD,
        policy=SimulatedPolicy("DelaySensitive", deadlines=DeadlineShape(heads=HeadShape())),
        base=FREQUENT_REPORTS,
        fault_rates=replace(BUMPY, crash_edge=0.1, crash_head=0.3, pause_head=0.1),
        processes=3,
        settle_seconds=30.0,
        last_seconds=10.0,  # a session may begin after the last publications
    ),
    _handover_scenario(
        "everything",
        "all faults, and hand-overs in a random tree",
        FleetShape(3, 2, "random"),
        replace(FAULTY, across=0.4, handovers=4, tight=0.2, lives=0.3, crashable=ALL_VICTIMS),
        load=replace(LOAD, holds=2),
        log_bytes=30_000,
        processes=3,
        fault_rates=replace(BUMPY, crash_client=0.1, crash_edge=0.15, crash_head=0.1, pause_edge=0.2, pause_head=0.1),
    ),
]
