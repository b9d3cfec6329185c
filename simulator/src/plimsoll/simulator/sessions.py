"""Worlds in which subscribers are moved: short runs, for what can go wrong in a hand-over goes wrong within seconds."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from plimsoll.core.config import Emulation, Hardware
from plimsoll.simulator.faults import Chances
from plimsoll.simulator.fleet import Shape
from plimsoll.simulator.moves import Moving
from plimsoll.simulator.network import Weather
from plimsoll.simulator.planning import Asking, Policy
from plimsoll.simulator.scenario import LIMITS, Scenario
from plimsoll.simulator.workload import Load

QUICK = msgspec.structs.replace(
    LIMITS, lease_seconds=2.0, heartbeat_seconds=0.4, dead_seconds=1.2, progress_seconds=0.25, report_seconds=0.5
)

LOAD = Load(subscribers=5, publications=40, seconds=2.0, changes=3)
SPOTTY = Weather(0.001, 0.03, drop=0.15, duplicate=0.15, reorder=0.3)
"""Control sockets on a bad day: commands are lost, repeated, late and overtaken."""

BUMPY = Chances(reconnect=0.5, pause_client=0.2, wall=0.15, one_way=0.15, slow=0.1, seconds=(0.02, 0.8))
STEADY = Load(subscribers=12, publications=900, seconds=9.0, changes=0, zero_traffic=0.0)
WATCHED = msgspec.structs.replace(QUICK, report_seconds=0.25)
FAULTY = Moving(3, replay=0.3, aim=0.4)
EMULATION = Emulation(base_seconds=0.004, per_subscription_seconds=0.0004)
QUIET_POLICY = Policy(look=60.0)
"""Loads are kept and told, and nobody looks: what moves was asked for."""

EDGES = ("subscriber", "source", "target")
ALL_BROKERS = (*EDGES, "head", "target-head", "neighbor")


def _scenario(name: str, about: str, shape: Shape, moving: Moving, **more: object) -> Scenario:
    values: dict[str, object] = {"load": LOAD, "control": SPOTTY, "base": QUICK, "settle_seconds": 20.0, **more}
    return Scenario(f"sessions-{name}", about, shape, moving=moving, **values)  # type: ignore[arg-type]


ALL = [
    _scenario(
        "calm", "hand-overs by drain and by replay, and nothing else happens", Shape(1, 3), Moving(4, replay=0.4),
        control=None, is_steady=True,
    ),
    _scenario(
        "local", "by drain within a cluster", Shape(1, 3), replace(FAULTY, replay=0.0), chances=BUMPY, is_steady=True
    ),
    _scenario(
        "replay", "by replay within a cluster", Shape(1, 3), replace(FAULTY, replay=1.0), chances=BUMPY,
        is_steady=True,
    ),
    _scenario(
        "across", "between clusters in a row", Shape(3, 2), replace(FAULTY, across=0.8), chances=BUMPY, processes=3,
        is_steady=True,
    ),
    _scenario(
        "tree", "between clusters of a random tree, one edge each", Shape(4, 1, "random"), FAULTY, chances=BUMPY,
        processes=4, is_steady=True,
    ),
    _scenario(
        "batch", "many at once, through small windows", Shape(1, 2), replace(FAULTY, batch=10, handovers=2),
        load=replace(LOAD, subscribers=14), chances=BUMPY, window_bytes=3_000, processes=3, is_steady=True,
    ),
    _scenario(
        "drain-deadline", "deadlines that cannot be kept", Shape(2, 2),
        replace(FAULTY, across=0.3, tight=0.7), chances=replace(BUMPY, pause_client=0.6),
    ),
    _scenario(
        "hold", "queues so small that what is held overflows", Shape(2, 2), replace(FAULTY, across=0.3),
        load=replace(LOAD, publications=80, payload_bytes=200, holds=4),
        base=msgspec.structs.replace(QUICK, queue_bytes=1_200, link_buffer_bytes=1_500),
        chances=replace(BUMPY, pause_client=0.6),
    ),
    _scenario(
        "lag", "a log so small that gaps fall into sessions", Shape(2, 2), replace(FAULTY, across=0.4),
        load=replace(LOAD, publications=120, payload_bytes=300, holds=2), log_bytes=4_000, window_bytes=2_500,
        chances=replace(BUMPY, pause_edge=0.4, slow=0.4, wall=0.3),
    ),
    _scenario(
        "edge-crash", "edges are killed during hand-overs", Shape(2, 2),
        replace(FAULTY, across=0.3, aim=0.7, mortal=EDGES), chances=replace(BUMPY, crash_edge=0.2), is_steady=True,
    ),
    _scenario(
        "head-restart", "heads are killed during hand-overs", Shape(2, 2),
        replace(FAULTY, across=0.5, aim=0.7, mortal=("head", "target-head")),
        chances=Chances(reconnect=0.3, crash_head=0.1),
    ),
    _scenario(
        "mediator", "mediators are killed, and taken for dead", Shape(2, 2),
        replace(FAULTY, across=0.3, handovers=4, lives=1.5, aim=0.2, stale=0.4), chances=Chances(reconnect=0.3),
        is_steady=True,
    ),
    _scenario(
        "slow", "brokers that compute slowly and send little", Shape(1, 3), replace(FAULTY, replay=0.6),
        load=replace(LOAD, publications=80, payload_bytes=200), control=None,
        slow=Hardware(output_bytes_per_second=20_000, emulation=EMULATION), is_steady=True,
    ),
    _scenario(
        "planned", "sessions of balancing, planned and driven by the mediator of the product", Shape(2, 3),
        Moving(lives=0.4), asking=Asking(4), chances=BUMPY, processes=3, is_steady=True,
    ),
    _scenario(
        "planned-restarts", "the same, while brokers and mediators are killed", Shape(2, 3), Moving(lives=1.0),
        asking=Asking(4), chances=replace(BUMPY, crash_edge=0.2, crash_head=0.15), processes=3,
    ),
    _scenario(
        "balanced", "a policy balances edges of unequal hardware, and nothing else happens", Shape(1, 3), Moving(),
        load=STEADY, control=None, policy=Policy(), base=WATCHED, is_steady=True,
    ),
    _scenario(
        "balanced-faults", "the same, while mediators die, and control sockets lose, repeat and delay", Shape(2, 3),
        Moving(lives=0.4), load=STEADY, policy=Policy(), base=WATCHED, chances=BUMPY, processes=3, is_steady=True,
    ),
    _scenario(
        "shuffled", "clusters of unequal hardware are shuffled, and nothing else happens", Shape(1, 3), Moving(),
        load=STEADY, control=None, asking=Asking(2, shuffle=1.0, stop=0.0), policy=QUIET_POLICY, base=WATCHED,
        is_steady=True,
    ),
    _scenario(
        "shuffled-faults", "the same in two clusters, while mediators die and control sockets lose, repeat and delay",
        Shape(2, 3), Moving(lives=0.4), load=STEADY, asking=Asking(3, shuffle=0.9), policy=QUIET_POLICY, base=WATCHED,
        chances=BUMPY, processes=3, is_steady=True,
    ),
    _scenario(
        "shuffled-restarts", "the same in one cluster, while brokers are killed", Shape(1, 3), Moving(lives=0.6),
        load=STEADY, asking=Asking(3, shuffle=0.9), policy=QUIET_POLICY, base=WATCHED,
        chances=replace(BUMPY, crash_edge=0.15, crash_head=0.1), processes=3,
    ),
    _scenario(
        "everything", "every fault there is, and hand-overs in a random tree", Shape(3, 2, "random"),
        replace(FAULTY, across=0.4, handovers=4, tight=0.2, lives=0.3, mortal=ALL_BROKERS),
        load=replace(LOAD, holds=2), log_bytes=30_000, processes=3,
        chances=replace(BUMPY, crash_client=0.1, crash_edge=0.15, crash_head=0.1, pause_edge=0.2, pause_head=0.1),
    ),
]  # fmt: skip
