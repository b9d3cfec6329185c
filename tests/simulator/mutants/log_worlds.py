"""Worlds in which subscribers move while they are behind, are served from logs, or their heads restart."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from tests.simulator.mutants.handover_worlds import (
    BUMPY,
    FAULTY,
    HEADS_KILLED,
    like,
)

from plimsoll.simulator.engine.network import ConnectionQuality
from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.mediators.handover_plan import HandoverMix
from plimsoll.simulator.scenarios import handover_scenarios
from plimsoll.simulator.world.brokers import FleetShape

ALL = [
    like(
        "head-restart",
        "two-heads",
        "two heads are killed at about the same time, while subscribers move",
        shape=FleetShape(3, 2),
        processes=3,
        handovers=replace(FAULTY, across=0.6, aim=1.0, crashable=("head", "target-head")),
        fault_rates=FaultRates(reconnect=0.3, crash_head=1.2, seconds=(0.05, 0.8)),
    ),
    like(
        "head-restart",
        "head-and-edge",
        "a head and an edge are killed at about the same time, while subscribers move",
        handovers=replace(FAULTY, across=0.4, replay=0.4, aim=1.0, crashable=handover_scenarios.ALL_VICTIMS),
        fault_rates=FaultRates(reconnect=0.3, crash_head=0.5, crash_edge=0.9, seconds=(0.05, 0.8)),
    ),
    like(
        "head-restart",
        "stale-restarts",
        "the same, and heads are killed",
        handovers=replace(HEADS_KILLED, across=0.3, handovers=6, lives=1.0, stale=1.0, together=0.6, aim=0.5),
        control=ConnectionQuality(0.001, 0.4, drop=0.2, duplicate=0.5, reorder=0.8),
        fault_rates=FaultRates(reconnect=0.3, crash_head=0.8, pause_edge=0.4, seconds=(0.02, 0.4)),
    ),
    like(
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
    like(
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
    like(
        "replay",
        "batch-replay",
        "many members at once by replay, over one link, in slices of a few entries",
        shape=FleetShape(1, 2),
        load=replace(handover_scenarios.LOAD, subscribers=12, publications=120, payload_bytes=100),
        handovers=replace(FAULTY, batch=10, replay=1.0, handovers=3),
        window_bytes=6_000,
    ),
    like(
        "replay",
        "overtaken",
        "a RESUME that is delayed on its way is overtaken by the next",
        fault_rates=replace(BUMPY, crash_client=1.5, wall=0.6, one_way=0.6, slow=0.6, seconds=(0.02, 0.9)),
        handovers=replace(FAULTY, handovers=4, replay=1.0, aim=1.0),
        is_gap_free=False,
    ),
    like(
        "lag",
        "lag-across",
        "between clusters over a slow network, with logs and buffers that overflow",
        connection=ConnectionQuality(0.01, 0.04),
        handovers=replace(FAULTY, handovers=5, across=1.0),
        fault_rates=replace(BUMPY, pause_edge=0.8, slow=1.5, wall=0.5),
    ),
    like(
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
    like(
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
    like(
        "lag",
        "small-vanish",
        "applications are down for longer than a small log reaches back",
        fault_rates=replace(BUMPY, crash_client=1.5, seconds=(0.1, 1.8)),
        handovers=replace(FAULTY, across=0.4),
    ),
    like(
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
    like(
        "head-restart",
        "split-report",
        "a head is killed after a subscriber has resumed and before the old edge has received RELEASE",
        shape=FleetShape(1, 3),
        handovers=replace(FAULTY, handovers=5, replay=1.0, aim=1.0, abort=0.0, crashable=("head",)),
        fault_rates=replace(BUMPY, pause_edge=2.0, one_way=1.5, wall=0.5, slow=1.0, seconds=(0.05, 0.8)),
    ),
    like(
        "replay",
        "lost-replay",
        "by replay, few subscribers on a slow network, publishers in another cluster",
        shape=FleetShape(2, 2),
        connection=ConnectionQuality(0.02, 0.06),
        load=replace(handover_scenarios.LOAD, subscribers=3, publications=250, changes=1, zero_traffic=0.0),
        handovers=replace(FAULTY, handovers=5, replay=1.0, abort=0.0),
        is_gap_free=False,
    ),
    like(
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
    like(
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
    like(
        "lag",
        "lag-local",
        "edges are paused while a small log evicts entries, and subscribers move",
        shape=FleetShape(1, 3),
        load=replace(handover_scenarios.LOAD, publications=300, payload_bytes=300, holds=2, zero_traffic=0.0),
        handovers=replace(FAULTY, handovers=6),
        fault_rates=FaultRates(reconnect=0.3, pause_edge=3.0, pause_client=0.5, slow=0.5, seconds=(0.05, 0.6)),
    ),
    like(
        "lag",
        "walled-log",
        "heads with small logs, and partitions between them",
        shape=FleetShape(3, 1),
        load=replace(handover_scenarios.LOAD, publications=300, payload_bytes=300, zero_traffic=0.0),
        handovers=replace(FAULTY, handovers=4, across=1.0),
        fault_rates=FaultRates(reconnect=0.3, wall=2.0, one_way=2.0, slow=0.5, seconds=(0.1, 0.9)),
    ),
    like(
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
]
