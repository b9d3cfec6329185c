"""Worlds of heads with logs on disks, or with standbys, in which the moments that matter are long."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.simulator.engine.disk import DiskQuality
from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.mediators.handover_plan import HandoverMix
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.world.brokers import FleetShape
from plimsoll.simulator.world.durable_heads import DurableHeads
from plimsoll.simulator.world.standby_heads import StandbyHeads

ALL = [
    replace(
        SCENARIOS["durable-tree"],
        name="slow-disk",
        about="heads with logs on slow disks lose their machines often",
        fault_rates=FaultRates(reconnect=0.3, crash_head=1.0, seconds=(0.05, 0.5)),
        durable=DurableHeads(disk=DiskQuality(sync_seconds=(0.05, 0.4))),
    ),
    replace(
        SCENARIOS["durable-away"],
        name="far-away",
        about="applications are away for long and often, while edges and heads with disks are killed",
        fault_rates=FaultRates(pause_client=1.0, crash_edge=0.6, crash_head=0.5, seconds=(0.5, 7.0)),
    ),
    replace(
        SCENARIOS["sessions-durable-away"],
        name="away-across",
        about="subscribers with a lease are moved between two clusters while they are away, and edges are killed",
        shape=FleetShape(2, 2),
        handovers=HandoverMix(8, replay=0.3, across=0.6, aim=0.3, crashable=("source", "target")),
        fault_rates=FaultRates(pause_client=0.6, reconnect=0.3, crash_edge=0.2, seconds=(0.2, 6.0)),
    ),
    replace(
        SCENARIOS["durable-interval"],
        name="rare-syncs",
        about="heads that seldom sync their disks lose their machines often",
        fault_rates=FaultRates(reconnect=0.3, crash_head=1.0, seconds=(0.05, 0.5)),
        durable=DurableHeads(always=False, interval_seconds=1.0),
    ),
    replace(
        SCENARIOS["standby-head"],
        name="standby-often",
        about="heads and standbys are killed often, with slow connections between them",
        fault_rates=FaultRates(reconnect=1.5, slow=0.5, crash_head=1.0, crash_standby=0.5, seconds=(0.05, 0.5)),
    ),
    replace(
        SCENARIOS["standby-switched"],
        name="switched-often",
        about="heads take on standbys, and are killed as soon as those are in sync, while publishers start again",
        load=replace(SCENARIOS["standby-switched"].load, publications=150),
        fault_rates=FaultRates(reconnect=1.0, slow=0.4, crash_client=0.5, crash_head=4.0, seconds=(0.05, 0.4)),
        durable=StandbyHeads(segment_bytes=5_000, switch_seconds=(0.5, 1.5)),
    ),
]
