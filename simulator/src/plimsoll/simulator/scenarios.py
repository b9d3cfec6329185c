"""Named worlds. Those in which subscribers are moved are in `sessions`."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.simulator import sessions
from plimsoll.simulator.faults import Chances
from plimsoll.simulator.fleet import Shape
from plimsoll.simulator.network import Weather
from plimsoll.simulator.scenario import Scenario
from plimsoll.simulator.workload import Load

CALM = Chances(reconnect=0.3)
ROUGH = Chances(
    reconnect=0.3, storm=0.05, pause_client=0.15, pause_edge=0.15, wall=0.1, one_way=0.15, slow=0.15, crash_client=0.05
)

SIX = Load(subscribers=6)

_ALL = [
    Scenario("calm", "one cluster and no faults: nothing may be lost, late or in doubt"),
    Scenario("cluster", "one cluster of three edges, all faults but crashes of brokers", Shape(1, 3), chances=ROUGH),
    Scenario("chain", "four clusters in a row", Shape(4, 1), SIX, chances=ROUGH, processes=4),
    Scenario(
        "far-apart",
        "four clusters in a row and a slow network: subscriptions change while publications are under way",
        Shape(4, 1),
        Load(subscribers=6, publications=80, changes=20),
        weather=Weather(0.05, 0.1),
        processes=4,
    ),
    Scenario("star", "five clusters, one in the middle", Shape(5, 1, "star"), SIX, chances=ROUGH, processes=4),
    Scenario("tree", "a random tree of six clusters", Shape(6, 1, "random"), SIX, chances=ROUGH, processes=4),
    Scenario(
        "small-log",
        "a log so small that who is behind loses what it has evicted, and is told",
        Shape(2, 2),
        Load(publications=200, payload_bytes=300),
        chances=replace(ROUGH, pause_edge=0.3, slow=0.4, wall=0.2),
        log_bytes=6_000,
        window_bytes=2_500,
    ),
    Scenario(
        "edge-restart",
        "edges are killed and come back",
        Shape(1, 3),
        chances=replace(CALM, crash_edge=0.5, pause_edge=0.1),
    ),
    Scenario(
        "head-restart",
        "heads are killed and come back with an empty log",
        Shape(1, 2),
        chances=replace(CALM, crash_head=0.3),
    ),
    Scenario(
        "head-restart-tree",
        "heads of a tree are killed and come back",
        Shape(4, 1, "random"),
        SIX,
        chances=replace(CALM, crash_head=0.3),
        processes=4,
    ),
    Scenario("storm", "all clients lose their connections, again and again", Shape(2, 2), chances=Chances(storm=1.5)),
    Scenario(
        "clients",
        "applications are killed and come back as new incarnations",
        Shape(1, 2),
        chances=Chances(crash_client=0.8, reconnect=0.2),
    ),
    Scenario(
        "lossy",
        "single frames are dropped, doubled and overtaken on every link",
        Shape(2, 2),
        weather=Weather(0.002, 0.02, drop=0.03, duplicate=0.03, reorder=0.05),
        last_seconds=10.0,  # the same frame may be dropped again and again
    ),
    Scenario(
        "everything",
        "every fault there is, in a random tree",
        Shape(3, 2, "random"),
        SIX,
        chances=replace(ROUGH, crash_edge=0.1, crash_head=0.05, pause_head=0.05),
        log_bytes=30_000,
        processes=3,
    ),
    Scenario(
        "slow-edge",
        "one edge has a fraction of the bandwidth that it needs",
        Shape(1, 3),
        Load(publications=150, payload_bytes=400, changes=0, subscribers=8),
        log_bytes=20_000,
        processes=4,
        victim="edge",
        settle_seconds=30.0,  # what it holds by then takes it seconds
        last_seconds=10.0,
        undisturbed_seconds=0.25,
    ),
    Scenario(
        "frozen-subscriber",
        "one application stands still",
        Shape(1, 2),
        Load(publications=150, payload_bytes=400, changes=0),
        log_bytes=20_000,
        processes=4,
        victim="subscriber",
        undisturbed_seconds=0.25,
    ),
    Scenario(
        "flooding-publisher",
        "one publisher says all that it can",
        Shape(2, 2),
        Load(changes=0),
        victim="publisher",
        undisturbed_seconds=0.5,
    ),
]

SCENARIOS = {scenario.name: scenario for scenario in (*_ALL, *sessions.ALL)}
