"""Deadlines in pods: two topics at one edge are too much for it, and one of them moves while it is published.

The other edge is cordoned first, so that both topics begin at one and the danger is seen before it is averted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.e2e.cluster import ROOT, Cluster, Crowd

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(1800)]

TOPICS = ("buoys", "gauges")
REQUIRED = {"buoys": 2000, "gauges": 5000}
SUBSCRIBERS, PER_SECOND, SIZE = 8, 60.0, 2_000
"""Four subscribers of each topic take 240 kB a second: both are more than an edge sends, and one is less."""
SHORT = 20
"""Messages that may wait for a subscriber once one topic has left."""


@pytest.fixture(scope="module")
def fleet(installed: Cluster) -> Cluster:
    """The fleet of the example, with the topics of the crowd; only its first edge takes newcomers."""
    objects = list(yaml.safe_load_all((ROOT / "examples" / "kubernetes" / "deadlines.yaml").read_text()))
    for item in objects:
        if item["kind"] == "BrokerCluster":
            item["spec"]["policy"]["delaySensitive"]["topicAttribute"] = "class"
    installed.apply(*objects)
    installed.wait(lambda: installed.is_true("brokercluster", "tides", "Ready"), 120, "the cluster to be ready")
    installed.plimsoll("cordon", "edge-1")
    return installed


@pytest.fixture(scope="module")
def crowd(fleet: Cluster) -> Iterator[Crowd]:
    """Publishes all the time; in all tests nothing may be lost, repeated or reordered."""
    crowd = Crowd(fleet, "traders", "tides", SUBSCRIBERS, PER_SECOND, classes=TOPICS, size=SIZE)
    yield crowd
    found = crowd.verdict()
    assert (found["lost"], found["duplicated"], found["reordered"], found["gaps"]) == (0, 0, 0, 0), found
    assert found["ok"], found


def topics(fleet: Cluster) -> dict[str, dict[str, Any]]:
    """The topics of the cluster's status, by name."""
    found = fleet.get("brokercluster", "tides").get("status", {}).get("topics", [])
    return {row["name"]: dict(row) for row in found}


def plans(fleet: Cluster) -> list[dict[str, Any]]:
    """The sessions that the policy has asked for."""
    return [item for item in fleet.get("loadbalancingsessions") if item["metadata"]["name"].startswith("plan-tides")]


def moved_by(session: dict[str, Any]) -> int:
    """How many subscribers a session has moved."""
    return int(session.get("status", {}).get("progress", {}).get("moved", 0))


def test_a_deadline_in_danger_is_seen(fleet: Cluster, crowd: Crowd):
    def in_danger() -> dict[str, dict[str, Any]]:
        rows = topics(fleet)
        if not rows.keys() >= set(TOPICS) or not all("depth" in row for row in rows.values()):
            return {}  # not measured yet
        return rows if rows["buoys"]["depth"] > max(SHORT, rows["buoys"]["depthThreshold"]) else {}

    rows = fleet.wait(in_danger, 120, "a queue of buoys that is deeper than its deadline allows")
    assert {row["edge"] for row in rows.values()} == {"edge-0"}
    assert {name: rows[name]["requiredMilliseconds"] for name in TOPICS} == REQUIRED
    assert {name: rows[name]["subscribers"] for name in TOPICS} == dict.fromkeys(TOPICS, SUBSCRIBERS // len(TOPICS))
    fleet.wait(lambda: plans(fleet), 60, "a session that the policy has asked for")


def test_both_commands_show_the_topics(fleet: Cluster, crowd: Crowd):
    lines = fleet.plimsoll("get", "topics").splitlines()
    titles = ("TOPIC", "EDGE", "REQUIRED", "LATENCY", "DEPTH", "THRESHOLD", "LATE")
    assert all(title in lines[0].split() for title in titles), lines[0]
    assert {line.split()[0]: line.split()[1] for line in lines[1:]} == dict.fromkeys(TOPICS, "tides")
    assert "2000 ms" in next(line for line in lines if line.startswith("buoys"))
    own = json.loads(fleet.kubectl("get", "bc/tides", "-o", "jsonpath={.status.topics}"))
    assert {row["name"] for row in own} == set(TOPICS)


def test_a_topic_moves_to_the_edge_that_takes_it(fleet: Cluster, crowd: Crowd):
    fleet.plimsoll("uncordon", "edge-1")

    def is_divided() -> bool:
        places = [crowd.of_class(name) for name in TOPICS]
        return all(len(place) == 1 for place in places) and len({next(iter(place)) for place in places}) == 2

    fleet.wait(is_divided, 180, "each topic whole at an edge of its own")
    places = {name: next(iter(crowd.of_class(name))) for name in TOPICS}
    # A topic that is between two edges is reported by neither: its row has no load yet.
    fleet.wait(
        lambda: {name: row.get("edge") for name, row in topics(fleet).items()} == places, 60, "the status to say where"
    )
    moved = fleet.wait(lambda: [item for item in plans(fleet) if moved_by(item)], 60, "a session that has moved some")
    assert sum(map(moved_by, moved)) % (SUBSCRIBERS // len(TOPICS)) == 0, "topics move whole"
    explained = fleet.plimsoll("explain", f"lbs/{moved[0]['metadata']['name']}")
    assert "relieves edge-0" in explained
    assert any(name in explained for name in TOPICS)


def test_deadlines_are_kept_once_it_has_moved(fleet: Cluster, crowd: Crowd):
    def is_relieved() -> bool:
        rows = topics(fleet).values()
        return all("depth" in row and row["depth"] < SHORT and not row["late"] for row in rows)

    fleet.wait(is_relieved, 180, "short queues, and no late delivery in a report interval")
    assert crowd.progress()["gaps"] == 0
