"""Worlds in which subscribers move: by drain, between clusters, while edges and applications are killed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plimsoll.simulator.engine.network import ConnectionQuality
from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.mediators.handover_plan import HandoverMix
from plimsoll.simulator.scenarios import handover_scenarios
from plimsoll.simulator.scenarios.scenario import SimulationScenario
from plimsoll.simulator.world.brokers import FleetShape

BASE = {one.name: one for one in handover_scenarios.HANDOVER_SCENARIOS}
FAULTY, BUMPY = handover_scenarios.FAULTY, handover_scenarios.BUMPY
EDGE_VICTIMS = handover_scenarios.EDGE_VICTIMS
HEADS_KILLED = replace(FAULTY, crashable=("head", "target-head"))
LOST_AND_FOUND = replace(BUMPY, reconnect=1.5, wall=0.6, one_way=0.4)

BUMPY_PAUSES = replace(BUMPY, pause_client=3.0, pause_edge=0.5)


def like(scenario: str, name: str, about: str, **more: Any) -> SimulationScenario:
    """A scenario of hand-overs with some changes."""
    return replace(BASE[f"sessions-{scenario}"], name=name, about=about, **more)


ALL = [
    like(
        "calm",
        "calm-drain",
        "by drain, one after another, no faults",
        handovers=HandoverMix(3, replay=0.0, abort=0.0, together=0.0, non_members=0.0, stale=0.0),
    ),
    like(
        "calm",
        "calm-replay",
        "by replay, one after another, no faults",
        handovers=HandoverMix(3, replay=1.0, abort=0.0, together=0.0, non_members=0.0, stale=0.0),
    ),
    like(
        "across",
        "calm-across",
        "between clusters, one hand-over after another, no faults",
        handovers=HandoverMix(3, across=1.0, abort=0.0, together=0.0, non_members=0.0, stale=0.0),
        control=None,
        fault_rates=FaultRates(),
        is_gap_free=True,
    ),
    like(
        "across",
        "steady-across",
        "between clusters; no process is killed and no bound is reached, so there is no gap",
        fault_rates=replace(BUMPY, wall=0.3, one_way=0.3),
        is_gap_free=True,
    ),
    like(
        "across",
        "far",
        "between clusters over a slow network, while subscriptions change",
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, publications=80, changes=14, seconds=3.0),
        handovers=replace(FAULTY, across=0.7, abort=0.0, prepare_seconds=(2.0, 3.0), drain_seconds=(2.0, 3.0)),
    ),
    like(
        "across",
        "far-bumpy",
        "the same, with connections that break and partitions",
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, publications=80, changes=14, seconds=3.0),
        handovers=replace(FAULTY, across=0.7, abort=0.0, prepare_seconds=(2.0, 3.0), drain_seconds=(2.0, 3.0)),
        fault_rates=LOST_AND_FOUND,
    ),
    like(
        "edge-crash",
        "edge-crash-across",
        "edges are killed while their subscribers move to another cluster",
        handovers=replace(FAULTY, across=1.0, aim=0.9, crashable=EDGE_VICTIMS),
    ),
    like(
        "edge-crash",
        "edge-crash-replay",
        "edges are killed while their subscribers move by replay, next to another cluster",
        handovers=replace(FAULTY, across=0.0, replay=1.0, aim=0.9, crashable=EDGE_VICTIMS),
    ),
    like(
        "local",
        "churn",
        "connections break and come back, with publishers in a neighbouring cluster",
        shape=FleetShape(2, 2),
        fault_rates=LOST_AND_FOUND,
        handovers=replace(FAULTY, across=0.3, aim=0.7),
        is_gap_free=False,
    ),
    like(
        "mediator",
        "stale-commands",
        "late and repeated commands of deposed mediators, and heads that remember few outcomes",
        handovers=replace(FAULTY, across=0.3, handovers=6, lives=2.0, stale=1.0, together=0.6),
        control=ConnectionQuality(0.001, 0.4, drop=0.2, duplicate=0.5, reorder=0.8),
    ),
    like(
        "calm",
        "idle",
        "a log that holds less than a run, and subscribers that keep up, many of them idle",
        load=replace(handover_scenarios.LOAD, publications=220, payload_bytes=200, seconds=4.0, zero_traffic=0.6),
        log_bytes=30_000,
        handovers=HandoverMix(4, replay=0.5, abort=0.0),
        fault_rates=FaultRates(reconnect=1.0),
    ),
    like(
        "edge-crash",
        "vanish",
        "applications are killed during hand-overs, and restarted at once or seconds later",
        handovers=replace(FAULTY, across=0.4, aim=0.9, crashable=("subscriber",)),
        fault_rates=replace(BUMPY, crash_client=1.0, seconds=(0.02, 3.5)),
    ),
    like(
        "local",
        "reborn",
        "applications are killed while they move, and resume elsewhere as a new incarnation before the cut is made",
        fault_rates=replace(BUMPY, pause_edge=1.0, crash_client=0.7, seconds=(0.01, 0.5)),
        handovers=replace(FAULTY, handovers=4, aim=1.0),
        is_gap_free=False,
    ),
    like(
        "across",
        "reborn-across",
        "the same, between clusters",
        shape=FleetShape(2, 2),
        connection=ConnectionQuality(0.02, 0.06),
        fault_rates=replace(BUMPY, pause_edge=1.0, crash_client=0.7, seconds=(0.01, 0.5)),
        handovers=replace(FAULTY, handovers=4, across=1.0, aim=1.0),
        is_gap_free=False,
    ),
    like(
        "local",
        "busy",
        "many subscribers on a slow network that change their subscriptions all the time and have to attach again",
        connection=ConnectionQuality(0.01, 0.05),
        load=replace(handover_scenarios.LOAD, subscribers=9, publications=160, changes=60, zero_traffic=0.0),
        fault_rates=replace(BUMPY, crash_edge=0.5),
        handovers=replace(FAULTY, handovers=5, batch=5, prepare_seconds=(1.0, 2.0), drain_seconds=(1.0, 2.0)),
        is_gap_free=False,
    ),
    like(
        "across",
        "busy-across",
        "the same, between clusters",
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, subscribers=9, publications=200, changes=80, zero_traffic=0.0),
        fault_rates=FaultRates(reconnect=0.3, slow=0.5),
        handovers=replace(FAULTY, across=0.7, prepare_seconds=(2.0, 3.0), drain_seconds=(2.0, 3.0)),
        is_gap_free=False,
    ),
    like(
        "local",
        "walled-target",
        "changes of subscriptions reach the target of the hand-over late",
        load=replace(handover_scenarios.LOAD, publications=200, changes=70, zero_traffic=0.0),
        fault_rates=replace(BUMPY, slow=1.5, wall=0.5, one_way=0.5, seconds=(0.05, 0.8)),
        handovers=replace(
            FAULTY, handovers=5, aim=1.0, abort=0.0, prepare_seconds=(2.0, 3.0), drain_seconds=(2.0, 3.0)
        ),
        is_gap_free=False,
    ),
    like(
        "edge-crash",
        "slow-mediator",
        "edges and applications are killed while a mediator behind a slow network has not decided yet",
        control=ConnectionQuality(0.1, 0.4),
        fault_rates=replace(BUMPY, crash_edge=0.3, crash_client=0.3),
        handovers=replace(FAULTY, across=0.4, replay=0.2, aim=1.0, abort=0.0, crashable=EDGE_VICTIMS),
        is_gap_free=False,
    ),
    like(
        "drain-deadline",
        "across-deadline",
        "between clusters, few subscribers, deadlines that cannot be met",
        load=replace(handover_scenarios.LOAD, subscribers=3, publications=150, changes=1, zero_traffic=0.0),
        handovers=replace(FAULTY, handovers=5, across=1.0, tight=1.0, non_members=0.0),
        fault_rates=replace(BUMPY, pause_client=2.0),
    ),
    like(
        "across",
        "long-walls",
        "partitions so long that links between clusters, and to edges, are closed",
        fault_rates=replace(BUMPY, pause_head=0.3, wall=1.0, one_way=1.0, seconds=(0.8, 3.0)),
        handovers=replace(FAULTY, handovers=5, across=0.9),
        is_gap_free=False,
    ),
    like(
        "edge-crash",
        "lease-end",
        "applications restart when their leases are about to end",
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, subscribers=3, publications=200, seconds=4.0, zero_traffic=0.0),
        fault_rates=FaultRates(crash_client=2.0, seconds=(1.7, 3.5)),
        handovers=replace(FAULTY, across=0.3, non_members=0.0),
        is_gap_free=False,
    ),
    like(
        "across",
        "stopped",
        "applications are paused for longer than their leases, with publishers in other clusters over a slow network",
        shape=FleetShape(3, 1),
        processes=3,
        connection=ConnectionQuality(0.02, 0.08),
        load=replace(
            handover_scenarios.LOAD, subscribers=3, publications=300, seconds=7.0, changes=2, zero_traffic=0.0
        ),
        handovers=HandoverMix(),
        control=None,
        fault_rates=FaultRates(pause_client=0.5, seconds=(3.2, 4.5)),
        is_gap_free=False,
    ),
    like(
        "drain-deadline",
        "parted",
        "within a cluster, deadlines that cannot be met, publishers in another cluster",
        shape=FleetShape(2, 2),
        connection=ConnectionQuality(0.01, 0.05),
        load=replace(
            handover_scenarios.LOAD, subscribers=2, publications=250, seconds=3.0, changes=0, zero_traffic=0.0
        ),
        handovers=replace(FAULTY, handovers=5, across=0.0, replay=0.0, abort=0.0, tight=0.6, non_members=0.0),
        fault_rates=BUMPY_PAUSES,
        is_gap_free=False,
    ),
    like(
        "local",
        "far-acks",
        "subscribers add subscriptions during a hand-over, and distant clusters acknowledge them late",
        shape=FleetShape(3, 2),
        processes=3,
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(
            handover_scenarios.LOAD, subscribers=4, publications=500, changes=120, seconds=3.0, zero_traffic=0.0
        ),
        handovers=replace(
            FAULTY,
            handovers=8,
            across=0.0,
            replay=0.0,
            aim=0.0,
            abort=0.0,
            prepare_seconds=(2.0, 3.0),
            drain_seconds=(2.0, 3.0),
        ),
        fault_rates=FaultRates(pause_head=2.0, wall=2.0, one_way=1.0, seconds=(0.1, 0.8)),
        is_gap_free=False,
    ),
    like(
        "across",
        "cut-source",
        "between clusters; the source is killed at the cut",
        shape=FleetShape(2, 2),
        fault_rates=replace(BUMPY, seconds=(0.02, 0.3)),
        handovers=replace(FAULTY, handovers=4, across=1.0, aim=1.0, abort=0.0, crashable=EDGE_VICTIMS),
        is_gap_free=False,
    ),
    like(
        "across",
        "far-aborts",
        "between clusters over a slow network; most hand-overs are aborted on the way",
        connection=ConnectionQuality(0.02, 0.06),
        handovers=replace(FAULTY, across=1.0, abort=0.8, prepare_seconds=(2.0, 3.0), drain_seconds=(2.0, 3.0)),
    ),
    like(
        "across",
        "on-and-on",
        "subscribers are moved again soon after they have arrived in another cluster",
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, publications=80, seconds=3.0),
        shape=FleetShape(2, 2),
        handovers=replace(
            FAULTY,
            handovers=9,
            batch=8,
            across=0.5,
            replay=0.6,
            abort=0.0,
            together=0.5,
            non_members=0.0,
            prepare_seconds=(2.0, 3.0),
            drain_seconds=(2.0, 3.0),
        ),
    ),
    like(
        "across",
        "lost-source",
        "between clusters, few subscribers; the source is killed before it has delivered its whole queue",
        shape=FleetShape(2, 2),
        load=replace(handover_scenarios.LOAD, subscribers=2, publications=150, changes=1, zero_traffic=0.0),
        fault_rates=replace(BUMPY, pause_client=4.0, seconds=(0.05, 0.5)),
        handovers=replace(FAULTY, handovers=4, across=1.0, aim=1.0, abort=0.0, non_members=0.0, crashable=EDGE_VICTIMS),
        is_gap_free=False,
    ),
    like(
        "across",
        "lost-target",
        "between clusters; the target is killed after the cut, while the source still has a long queue",
        shape=FleetShape(2, 2),
        load=replace(handover_scenarios.LOAD, publications=120, payload_bytes=300, zero_traffic=0.0, holds=3),
        fault_rates=replace(BUMPY, slow=0.6, seconds=(0.02, 0.5)),
        handovers=replace(FAULTY, handovers=4, across=1.0, aim=1.0, abort=0.0, crashable=EDGE_VICTIMS),
        is_gap_free=False,
    ),
]
