"""Worlds that reach situations which are rare in the scenarios of the simulator.

`SETTINGS` replaces constants of the product and of the simulator, so that a short run reaches a bound or a step; they
apply to runs with a mutant and without. The name of a world is part of its seed, so renaming one changes its runs.
"""

from __future__ import annotations

import traceback
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pytest
from tests.simulator.mutants import durable_worlds
from tests.simulator.mutants.rewriting import Setting

from plimsoll.core.head import log_reader
from plimsoll.core.head.handover import outcomes
from plimsoll.core.verify import audit_journal
from plimsoll.simulator import run as simulated
from plimsoll.simulator.engine.network import ConnectionQuality
from plimsoll.simulator.fault_injection import aimed_faults
from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.mediators.handover_plan import HandoverMix
from plimsoll.simulator.run import RunOutcome, SimulationRun
from plimsoll.simulator.scenarios import handover_scenarios
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.scenarios.scenario import SimulationScenario
from plimsoll.simulator.world.brokers import FleetShape

BASE = {one.name: one for one in handover_scenarios.HANDOVER_SCENARIOS}
FAULTY, BUMPY = handover_scenarios.FAULTY, handover_scenarios.BUMPY
EDGE_VICTIMS = handover_scenarios.EDGE_VICTIMS
HEADS_KILLED = replace(FAULTY, crashable=("head", "target-head"))
LOST_AND_FOUND = replace(BUMPY, reconnect=1.5, wall=0.6, one_way=0.4)

BUMPY_PAUSES = replace(BUMPY, pause_client=3.0, pause_edge=0.5)


def _like(scenario: str, name: str, about: str, **more: Any) -> SimulationScenario:
    return replace(BASE[f"sessions-{scenario}"], name=name, about=about, **more)


_ALL = [
    *durable_worlds.ALL,
    _like(
        "calm",
        "calm-drain",
        "by drain, one after another, no faults",
        handovers=HandoverMix(3, replay=0.0, abort=0.0, together=0.0, non_members=0.0, stale=0.0),
    ),
    _like(
        "calm",
        "calm-replay",
        "by replay, one after another, no faults",
        handovers=HandoverMix(3, replay=1.0, abort=0.0, together=0.0, non_members=0.0, stale=0.0),
    ),
    _like(
        "across",
        "calm-across",
        "between clusters, one hand-over after another, no faults",
        handovers=HandoverMix(3, across=1.0, abort=0.0, together=0.0, non_members=0.0, stale=0.0),
        control=None,
        fault_rates=FaultRates(),
        is_gap_free=True,
    ),
    _like(
        "across",
        "steady-across",
        "between clusters; no process is killed and no bound is reached, so there is no gap",
        fault_rates=replace(BUMPY, wall=0.3, one_way=0.3),
        is_gap_free=True,
    ),
    _like(
        "across",
        "far",
        "between clusters over a slow network, while subscriptions change",
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, publications=80, changes=14, seconds=3.0),
        handovers=replace(FAULTY, across=0.7, abort=0.0, prepare_seconds=(2.0, 3.0), drain_seconds=(2.0, 3.0)),
    ),
    _like(
        "across",
        "far-bumpy",
        "the same, with connections that break and partitions",
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, publications=80, changes=14, seconds=3.0),
        handovers=replace(FAULTY, across=0.7, abort=0.0, prepare_seconds=(2.0, 3.0), drain_seconds=(2.0, 3.0)),
        fault_rates=LOST_AND_FOUND,
    ),
    _like(
        "edge-crash",
        "edge-crash-across",
        "edges are killed while their subscribers move to another cluster",
        handovers=replace(FAULTY, across=1.0, aim=0.9, crashable=EDGE_VICTIMS),
    ),
    _like(
        "edge-crash",
        "edge-crash-replay",
        "edges are killed while their subscribers move by replay, next to another cluster",
        handovers=replace(FAULTY, across=0.0, replay=1.0, aim=0.9, crashable=EDGE_VICTIMS),
    ),
    _like(
        "local",
        "churn",
        "connections break and come back, with publishers in a neighbouring cluster",
        shape=FleetShape(2, 2),
        fault_rates=LOST_AND_FOUND,
        handovers=replace(FAULTY, across=0.3, aim=0.7),
        is_gap_free=False,
    ),
    _like(
        "head-restart",
        "two-heads",
        "two heads are killed at about the same time, while subscribers move",
        shape=FleetShape(3, 2),
        processes=3,
        handovers=replace(FAULTY, across=0.6, aim=1.0, crashable=("head", "target-head")),
        fault_rates=FaultRates(reconnect=0.3, crash_head=1.2, seconds=(0.05, 0.8)),
    ),
    _like(
        "head-restart",
        "head-and-edge",
        "a head and an edge are killed at about the same time, while subscribers move",
        handovers=replace(FAULTY, across=0.4, replay=0.4, aim=1.0, crashable=handover_scenarios.ALL_VICTIMS),
        fault_rates=FaultRates(reconnect=0.3, crash_head=0.5, crash_edge=0.9, seconds=(0.05, 0.8)),
    ),
    _like(
        "mediator",
        "stale-commands",
        "late and repeated commands of deposed mediators, and heads that remember few outcomes",
        handovers=replace(FAULTY, across=0.3, handovers=6, lives=2.0, stale=1.0, together=0.6),
        control=ConnectionQuality(0.001, 0.4, drop=0.2, duplicate=0.5, reorder=0.8),
    ),
    _like(
        "head-restart",
        "stale-restarts",
        "the same, and heads are killed",
        handovers=replace(HEADS_KILLED, across=0.3, handovers=6, lives=1.0, stale=1.0, together=0.6, aim=0.5),
        control=ConnectionQuality(0.001, 0.4, drop=0.2, duplicate=0.5, reorder=0.8),
        fault_rates=FaultRates(reconnect=0.3, crash_head=0.8, pause_edge=0.4, seconds=(0.02, 0.4)),
    ),
    _like(
        "lag",
        "slices",
        "subscribers that are behind are served from the log, in slices of a few entries",
        load=replace(handover_scenarios.LOAD, publications=150, payload_bytes=300, holds=10),
        log_bytes=400_000,
        window_bytes=2_500,
        handovers=replace(FAULTY, replay=0.5, across=0.2, batch=6, aim=0.2),
        base=msgspec.structs.replace(handover_scenarios.QUICK, queue_bytes=1_200, link_buffer_bytes=1_500),
        fault_rates=replace(BUMPY, pause_edge=0.2, pause_client=0.6, slow=0.3),
    ),
    _like(
        "lag",
        "slow-cut",
        "the same, with enough time between START_MOVE and CUT to fall behind",
        load=replace(
            handover_scenarios.LOAD, subscribers=8, publications=400, payload_bytes=300, holds=14, zero_traffic=0.0
        ),
        log_bytes=400_000,
        window_bytes=2_500,
        processes=6,
        control=ConnectionQuality(0.1, 0.5),
        handovers=replace(
            FAULTY, across=0.2, batch=6, aim=0.0, abort=0.0, prepare_seconds=(2.0, 3.0), drain_seconds=(2.0, 3.0)
        ),
        base=msgspec.structs.replace(handover_scenarios.QUICK, queue_bytes=700, link_buffer_bytes=700),
        fault_rates=replace(BUMPY, pause_client=6.0, seconds=(0.1, 0.6)),
    ),
    _like(
        "replay",
        "batch-replay",
        "many members at once by replay, over one link, in slices of a few entries",
        shape=FleetShape(1, 2),
        load=replace(handover_scenarios.LOAD, subscribers=12, publications=120, payload_bytes=100),
        handovers=replace(FAULTY, batch=10, replay=1.0, handovers=3),
        window_bytes=6_000,
    ),
    _like(
        "calm",
        "idle",
        "a log that holds less than a run, and subscribers that keep up, many of them idle",
        load=replace(handover_scenarios.LOAD, publications=220, payload_bytes=200, seconds=4.0, zero_traffic=0.6),
        log_bytes=30_000,
        handovers=HandoverMix(4, replay=0.5, abort=0.0),
        fault_rates=FaultRates(reconnect=1.0),
    ),
    _like(
        "edge-crash",
        "vanish",
        "applications are killed during hand-overs, and restarted at once or seconds later",
        handovers=replace(FAULTY, across=0.4, aim=0.9, crashable=("subscriber",)),
        fault_rates=replace(BUMPY, crash_client=1.0, seconds=(0.02, 3.5)),
    ),
    _like(
        "local",
        "reborn",
        "applications are killed while they move, and resume elsewhere as a new incarnation before the cut is made",
        fault_rates=replace(BUMPY, pause_edge=1.0, crash_client=0.7, seconds=(0.01, 0.5)),
        handovers=replace(FAULTY, handovers=4, aim=1.0),
        is_gap_free=False,
    ),
    _like(
        "across",
        "reborn-across",
        "the same, between clusters",
        shape=FleetShape(2, 2),
        connection=ConnectionQuality(0.02, 0.06),
        fault_rates=replace(BUMPY, pause_edge=1.0, crash_client=0.7, seconds=(0.01, 0.5)),
        handovers=replace(FAULTY, handovers=4, across=1.0, aim=1.0),
        is_gap_free=False,
    ),
    _like(
        "replay",
        "overtaken",
        "a RESUME that is delayed on its way is overtaken by the next",
        fault_rates=replace(BUMPY, crash_client=1.5, wall=0.6, one_way=0.6, slow=0.6, seconds=(0.02, 0.9)),
        handovers=replace(FAULTY, handovers=4, replay=1.0, aim=1.0),
        is_gap_free=False,
    ),
    _like(
        "local",
        "busy",
        "many subscribers on a slow network that change their subscriptions all the time and have to attach again",
        connection=ConnectionQuality(0.01, 0.05),
        load=replace(handover_scenarios.LOAD, subscribers=9, publications=160, changes=60, zero_traffic=0.0),
        fault_rates=replace(BUMPY, crash_edge=0.5),
        handovers=replace(FAULTY, handovers=5, batch=5, prepare_seconds=(1.0, 2.0), drain_seconds=(1.0, 2.0)),
        is_gap_free=False,
    ),
    _like(
        "across",
        "busy-across",
        "the same, between clusters",
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, subscribers=9, publications=200, changes=80, zero_traffic=0.0),
        fault_rates=FaultRates(reconnect=0.3, slow=0.5),
        handovers=replace(FAULTY, across=0.7, prepare_seconds=(2.0, 3.0), drain_seconds=(2.0, 3.0)),
        is_gap_free=False,
    ),
    _like(
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
    _like(
        "edge-crash",
        "slow-mediator",
        "edges and applications are killed while a mediator behind a slow network has not decided yet",
        control=ConnectionQuality(0.1, 0.4),
        fault_rates=replace(BUMPY, crash_edge=0.3, crash_client=0.3),
        handovers=replace(FAULTY, across=0.4, replay=0.2, aim=1.0, abort=0.0, crashable=EDGE_VICTIMS),
        is_gap_free=False,
    ),
    _like(
        "drain-deadline",
        "across-deadline",
        "between clusters, few subscribers, deadlines that cannot be met",
        load=replace(handover_scenarios.LOAD, subscribers=3, publications=150, changes=1, zero_traffic=0.0),
        handovers=replace(FAULTY, handovers=5, across=1.0, tight=1.0, non_members=0.0),
        fault_rates=replace(BUMPY, pause_client=2.0),
    ),
    _like(
        "lag",
        "lag-across",
        "between clusters over a slow network, with logs and buffers that overflow",
        connection=ConnectionQuality(0.01, 0.04),
        handovers=replace(FAULTY, handovers=5, across=1.0),
        fault_rates=replace(BUMPY, pause_edge=0.8, slow=1.5, wall=0.5),
    ),
    _like(
        "across",
        "long-walls",
        "partitions so long that links between clusters, and to edges, are closed",
        fault_rates=replace(BUMPY, pause_head=0.3, wall=1.0, one_way=1.0, seconds=(0.8, 3.0)),
        handovers=replace(FAULTY, handovers=5, across=0.9),
        is_gap_free=False,
    ),
    _like(
        "edge-crash",
        "lease-end",
        "applications restart when their leases are about to end",
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, subscribers=3, publications=200, seconds=4.0, zero_traffic=0.0),
        fault_rates=FaultRates(crash_client=2.0, seconds=(1.7, 3.5)),
        handovers=replace(FAULTY, across=0.3, non_members=0.0),
        is_gap_free=False,
    ),
    _like(
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
    _like(
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
    _like(
        "lag",
        "logged-gaps",
        "heads miss publications of one another and log gaps, which subscribers receive when they resume",
        shape=FleetShape(3, 2),
        processes=3,
        load=replace(
            handover_scenarios.LOAD, subscribers=4, publications=400, payload_bytes=100, seconds=4.0, zero_traffic=0.0
        ),
        handovers=HandoverMix(),
        fault_rates=FaultRates(wall=1.5, pause_client=0.6, crash_edge=1.0, pause_head=1.0, seconds=(0.3, 1.0)),
    ),
    _like(
        "lag",
        "lag-at-the-cut",
        "between clusters over a slow network; the source is paused at the cut while a small log evicts entries",
        shape=FleetShape(2, 2),
        connection=ConnectionQuality(0.02, 0.08),
        log_bytes=3_000,
        load=replace(
            handover_scenarios.LOAD, subscribers=3, publications=500, payload_bytes=300, changes=0, zero_traffic=0.0
        ),
        handovers=replace(
            FAULTY, handovers=6, across=1.0, aim=1.0, abort=0.0, prepare_seconds=(2.0, 3.0), drain_seconds=(3.0, 4.0)
        ),
        fault_rates=FaultRates(seconds=(0.2, 0.8)),
    ),
    _like(
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
    _like(
        "lag",
        "small-vanish",
        "applications are down for longer than a small log reaches back",
        fault_rates=replace(BUMPY, crash_client=1.5, seconds=(0.1, 1.8)),
        handovers=replace(FAULTY, across=0.4),
    ),
    _like(
        "head-restart",
        "doubts",
        "heads on a slow network are killed with publications in flight, and edges at the same time",
        shape=FleetShape(3, 2),
        processes=3,
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, publications=200, changes=20, zero_traffic=0.0),
        handovers=replace(FAULTY, across=0.5, aim=0.5, crashable=("head", "target-head")),
        fault_rates=FaultRates(crash_head=1.0, crash_edge=0.6, crash_client=0.5, seconds=(0.05, 0.8)),
    ),
    _like(
        "head-restart",
        "split-report",
        "a head is killed after a subscriber has resumed and before the old edge has received RELEASE",
        shape=FleetShape(1, 3),
        handovers=replace(FAULTY, handovers=5, replay=1.0, aim=1.0, abort=0.0, crashable=("head",)),
        fault_rates=replace(BUMPY, pause_edge=2.0, one_way=1.5, wall=0.5, slow=1.0, seconds=(0.05, 0.8)),
    ),
    _like(
        "replay",
        "lost-replay",
        "by replay, few subscribers on a slow network, publishers in another cluster",
        shape=FleetShape(2, 2),
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, subscribers=3, publications=250, changes=1, zero_traffic=0.0),
        handovers=replace(FAULTY, handovers=5, replay=1.0, abort=0.0),
        is_gap_free=False,
    ),
    _like(
        "hold",
        "long-hold",
        "much is buffered for subscribers that are paused when they should continue",
        shape=FleetShape(1, 2),
        load=replace(handover_scenarios.LOAD, publications=600, payload_bytes=300, zero_traffic=0.0),
        window_bytes=2_500,
        control=None,
        fault_rates=FaultRates(pause_client=1.0, seconds=(0.3, 1.0)),
        handovers=replace(FAULTY, handovers=5, replay=0.0, abort=0.0, aim=1.0, drain_seconds=(2.0, 3.0)),
        base=msgspec.structs.replace(handover_scenarios.QUICK, queue_bytes=700, link_buffer_bytes=1_500),
    ),
    _like(
        "hold",
        "long-hold-across",
        "the same, between clusters",
        shape=FleetShape(2, 2),
        load=replace(handover_scenarios.LOAD, publications=600, payload_bytes=300, zero_traffic=0.0),
        window_bytes=2_500,
        control=None,
        fault_rates=FaultRates(pause_client=1.0, seconds=(0.3, 1.0)),
        handovers=replace(FAULTY, handovers=5, across=1.0, abort=0.0, aim=1.0, drain_seconds=(2.0, 3.0)),
        base=msgspec.structs.replace(handover_scenarios.QUICK, queue_bytes=700, link_buffer_bytes=1_500),
    ),
    _like(
        "lag",
        "lag-local",
        "edges are paused while a small log evicts entries, and subscribers move",
        shape=FleetShape(1, 3),
        load=replace(handover_scenarios.LOAD, publications=300, payload_bytes=300, holds=2, zero_traffic=0.0),
        handovers=replace(FAULTY, handovers=6),
        fault_rates=FaultRates(reconnect=0.3, pause_edge=3.0, pause_client=0.5, slow=0.5, seconds=(0.05, 0.6)),
    ),
    _like(
        "lag",
        "walled-log",
        "heads with small logs, and partitions between them",
        shape=FleetShape(3, 1),
        load=replace(handover_scenarios.LOAD, publications=300, payload_bytes=300, zero_traffic=0.0),
        handovers=replace(FAULTY, handovers=4, across=1.0),
        fault_rates=FaultRates(reconnect=0.3, wall=2.0, one_way=2.0, slow=0.5, seconds=(0.1, 0.9)),
    ),
    _like(
        "hold",
        "held-gap",
        "a small log evicts entries that an edge with a full buffer still needs",
        shape=FleetShape(1, 2),
        load=replace(handover_scenarios.LOAD, publications=600, payload_bytes=300, zero_traffic=0.0),
        log_bytes=4_000,
        window_bytes=2_500,
        control=None,
        fault_rates=FaultRates(pause_client=1.0, pause_edge=4.0, seconds=(0.05, 0.6)),
        handovers=replace(FAULTY, handovers=6, replay=0.0, abort=0.0, aim=1.0, drain_seconds=(2.0, 3.0)),
        base=msgspec.structs.replace(handover_scenarios.QUICK, queue_bytes=60_000, link_buffer_bytes=1_500),
    ),
    _like(
        "across",
        "cut-source",
        "between clusters; the source is killed at the cut",
        shape=FleetShape(2, 2),
        fault_rates=replace(BUMPY, seconds=(0.02, 0.3)),
        handovers=replace(FAULTY, handovers=4, across=1.0, aim=1.0, abort=0.0, crashable=EDGE_VICTIMS),
        is_gap_free=False,
    ),
    _like(
        "across",
        "far-aborts",
        "between clusters over a slow network; most hand-overs are aborted on the way",
        connection=ConnectionQuality(0.02, 0.06),
        handovers=replace(FAULTY, across=1.0, abort=0.8, prepare_seconds=(2.0, 3.0), drain_seconds=(2.0, 3.0)),
    ),
    _like(
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
    _like(
        "across",
        "lost-source",
        "between clusters, few subscribers; the source is killed before it has delivered its whole queue",
        shape=FleetShape(2, 2),
        load=replace(handover_scenarios.LOAD, subscribers=2, publications=150, changes=1, zero_traffic=0.0),
        fault_rates=replace(BUMPY, pause_client=4.0, seconds=(0.05, 0.5)),
        handovers=replace(FAULTY, handovers=4, across=1.0, aim=1.0, abort=0.0, non_members=0.0, crashable=EDGE_VICTIMS),
        is_gap_free=False,
    ),
    _like(
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


def _aimed(
    points: tuple[str, ...], victims: tuple[str, ...], faults: tuple[str, ...] = ("crash", "pause")
) -> tuple[Setting, ...]:
    """Settings that aim the faults of a world at these points and victims."""
    return (
        Setting(aimed_faults, "COMMON_POINTS", points),
        Setting(aimed_faults, "VICTIMS", victims),
        Setting(aimed_faults, "FAULTS", faults),
    )


_LONG_HOLD = (
    *_aimed(("CutRequest", "Installed", "Cut"), ("subscriber",), ("pause",)),
    Setting(simulated, "MEASURE_SECONDS", 0.1),
)
_SLICES = (Setting(log_reader, "FETCH_SLICE_ENTRIES", 3),)
SETTINGS: Final = MappingProxyType(
    {
        "slices": _SLICES,
        "slow-cut": _SLICES,
        "batch-replay": _SLICES,
        "stale-commands": (Setting(outcomes, "REMEMBERED_SESSIONS", 2),),
        "reborn": _aimed(("Attach", "TargetAttached", "Install"), ("subscriber", "target"), ("crash", "pause")),
        "reborn-across": _aimed(
            ("Attach", "TargetAttached", "Install", "CutRequest"), ("subscriber", "subscriber", "target", "target-head")
        ),
        "walled-target": _aimed(("Attach", "TargetAttached", "Install"), ("target", "subscriber"), ("wall", "one-way")),
        "slow-mediator": _aimed(
            ("Attach", "TargetAttached", "Slot", "Install"), ("source", "target"), ("crash", "crash", "pause")
        ),
        "split-report": (
            *_aimed(("Resume", "Moved", "Revoke"), ("head",), ("crash",)),
            Setting(aimed_faults, "DELAYS_SECONDS", (0.0, 0.004, 0.02, 0.05, 0.1)),
        ),
        "long-hold": _LONG_HOLD,
        "long-hold-across": _LONG_HOLD,
        "held-gap": _LONG_HOLD,
        "lag-at-the-cut": _aimed(("Install", "CutRequest"), ("source",), ("pause",)),
        "cut-source": _aimed(("Cut", "End"), ("source",)),
        "lost-source": (
            *_aimed(("Cut", "End"), ("source",), ("crash",)),
            Setting(aimed_faults, "DELAYS_SECONDS", (0.01, 0.02, 0.05, 0.1)),
        ),
        "lost-target": _aimed(("Cut", "Installed", "Marker", "End"), ("target",), ("crash",)),
        "overtaken": _aimed(("Resume", "Moved"), ("target", "link"), ("wall", "one-way")),
    }
)
WORLDS: Final = MappingProxyType({**SCENARIOS, **{one.name: one for one in _ALL}})
OWN: Final = tuple(one.name for one in _ALL)
"""The worlds that are not scenarios of the simulator."""

CALM: Final = ("calm-drain", "calm-replay", "calm-across")
"""Worlds without faults and with enough time, so that every member that is cut must end as `moved`."""


def run(world: str, seed: int) -> RunOutcome:
    """Run a world under a seed; an exception of a machine is part of the outcome."""
    with pytest.MonkeyPatch.context() as patch:
        for setting in SETTINGS.get(world, ()):
            patch.setattr(setting.owner, setting.name, setting.value)
        one = SimulationRun(WORLDS[world], seed)
        try:
            return one.go()
        except Exception:  # noqa: BLE001  # any exception of a machine is a failed run
            return one._outcome(audit_journal([]), traceback.format_exc())


def broken(world: str, outcome: RunOutcome) -> set[str]:
    """The laws that a run has broken; `calm`: in a world of CALM a member that was cut did not arrive."""
    is_hindered = world in CALM and outcome.handovers.keys() & {"detached", "returned", "unknown", "failed", "open"}
    return outcome.broken | ({"calm"} if is_hindered else set())
