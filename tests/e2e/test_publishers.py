"""Publishers that move between heads in pods: by a drain, by the operator, and by the policy of an overloaded head.

All subscribers are served in the west, so that what the head in the east knows alone is nothing that they miss. Over
all tests no publication may be unknown, lost, repeated or reordered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.cluster import Cluster, Crowd, Object, manifest

from plimsoll.core.spec.brokers import head_name

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(900)]

SUBSCRIBERS = 40
PER_SECOND = 60.0
PUBLISHERS = 3
"""As in crowd.py."""

EAST, WEST = head_name("east"), head_name("west")
OVERLOADED = {"headUplink": {"lower": "10m", "higher": "15m"}}
"""Of the 200 kB/s that a head may send, the crowd needs some 5 %."""


def hardware(name: str, memory: str) -> Object:
    return manifest("HardwareProfile", name, cpu="500m", memory=memory, bandwidth={"outputBytesPerSecond": "200k"})


def broker_cluster(name: str, head: str, thresholds: dict[str, Any] | None = None) -> Object:
    own: dict[str, Any] = {"topicAttribute": "class", **({} if thresholds is None else {"thresholds": thresholds})}
    detection = {"interval": "1s", "stabilizeFor": "5s"}
    linked: dict[str, Any] = {"neighbors": [{"name": "west"}]} if name == "east" else {}
    edges = [{"name": f"{name}-edge", "profile": "edge", "replicas": 1}]
    return manifest(
        "BrokerCluster", name, head={"profile": head}, edges=edges,
        policy={"type": "DelaySensitive", "detection": detection, "delaySensitive": own}, **linked,
    )  # fmt: skip


def is_ready(fleet: Cluster, cluster: str) -> bool:
    return fleet.is_true("brokercluster", cluster, "Ready")


@pytest.fixture(scope="module")
def fleet(installed: Cluster) -> Cluster:
    """Two clusters whose heads are linked; the head of the west may send so much that it is never overloaded."""
    wide = manifest("HardwareProfile", "wide", cpu="500m", memory="128Mi", bandwidth={"outputBytesPerSecond": "100M"})
    edge = manifest("HardwareProfile", "edge", cpu="500m", memory="128Mi")
    security = {"clients": [{"name": "traders", "roles": ["Publish", "Subscribe"]}]}
    installed.apply(
        manifest("BrokerFleet", "exchange", security=security), hardware("narrow", "128Mi"), hardware("other", "160Mi"),
        wide, edge,
        broker_cluster("west", "wide"), broker_cluster("east", "narrow"),
    )  # fmt: skip
    installed.wait(
        lambda: is_ready(installed, "east") and is_ready(installed, "west"), 240, "both clusters to be ready"
    )
    return installed


@pytest.fixture(scope="module")
def crowd(fleet: Cluster) -> Iterator[Crowd]:
    crowd = Crowd(fleet, "traders", "east", SUBSCRIBERS, PER_SECOND, served_at="west")
    yield crowd
    found = crowd.verdict()
    assert [found[name] for name in ("unknown", "lost", "duplicated", "reordered")] == [0, 0, 0, 0], found
    assert found["ok"], found


def moves(fleet: Cluster, source: str) -> list[Object]:
    """Sessions that moved all publishers away from the head of this cluster, the oldest first."""
    sessions = sorted(fleet.get("loadbalancingsessions"), key=lambda one: str(one["metadata"]["creationTimestamp"]))
    return [
        one for one in sessions
        if one["spec"].get("action") == "MovePublishers" and one["spec"]["source"]["name"] == source
        and one.get("status", {}).get("phase") == "Succeeded"
        and one["status"].get("progress", {}).get("moved") == PUBLISHERS
    ]  # fmt: skip


def bring_back(fleet: Cluster) -> None:
    """All publishers to the east again."""
    before = len(moves(fleet, "west"))
    fleet.plimsoll("rebalance", "--publishers", "--from", "west", "--to", "east", "--share", "100%")
    fleet.wait(lambda: len(moves(fleet, "west")) > before, 60, "the publishers to be back in the east")


def test_a_head_is_drained_of_its_publishers(fleet: Cluster, crowd: Crowd):
    assert crowd.at() == {"west-edge-0": SUBSCRIBERS}
    fleet.plimsoll("drain", EAST)
    [drain] = fleet.wait(lambda: moves(fleet, "east"), 60, "the drain to succeed")
    assert drain["status"]["reason"] == "Drained"
    fleet.wait(
        lambda: fleet.condition("brokercluster", "east", "TakesPublishers").get("reason") == "HeadCordoned",
        30, "the cordon of the head",
    )  # fmt: skip
    fleet.plimsoll("uncordon", EAST)
    fleet.wait(
        lambda: fleet.condition("brokercluster", "east", "TakesPublishers").get("status") == "True", 30, "its end"
    )
    bring_back(fleet)


def test_a_rolling_change_of_heads_leaves_no_publication_unknown(fleet: Cluster, crowd: Crowd):
    """The operator moves the publishers of each head before it replaces its pod."""
    before, sent = fleet.get("pod", f"{EAST}-0")["metadata"]["uid"], crowd.progress()["sent"]
    drained = len(moves(fleet, "east"))
    fleet.apply(broker_cluster("east", "other"))
    fleet.wait(lambda: fleet.get("pod", f"{EAST}-0")["metadata"]["uid"] != before, 240, "another pod of the head")
    fleet.wait(lambda: is_ready(fleet, "east"), 180, "the east to be ready")
    assert len(moves(fleet, "east")) > drained, "the publishers were moved away first"
    fleet.wait(lambda: crowd.progress()["sent"] > sent + PER_SECOND, 30, "the crowd to go on")
    bring_back(fleet)


def test_publishers_leave_an_overloaded_head_by_themselves(fleet: Cluster, crowd: Crowd):
    relieved = len(moves(fleet, "east"))
    fleet.apply(broker_cluster("east", "other", OVERLOADED))
    fleet.wait(lambda: len(moves(fleet, "east")) > relieved, 120, "the publishers to leave the east")
    session = moves(fleet, "east")[-1]
    assert session["spec"]["trigger"]["broker"] == EAST
    assert "uplink at" in session["spec"]["trigger"]["reason"]
    explained = fleet.plimsoll("explain", f"lbs/{session['metadata']['name']}")
    assert "Chosen by:   DelaySensitive" in explained
    assert f"{PUBLISHERS} publishers) relieves {EAST}: uplink at" in explained
    measured = {one["name"]: one for one in session["status"]["measured"]["edges"]}
    assert measured[EAST]["after"]["outputPercent"] <= 1, measured
    assert measured[EAST]["subscribers"] == 0, measured
    count = len(moves(fleet, "east")) + len(moves(fleet, "west"))
    sent = crowd.progress()["sent"]
    fleet.wait(lambda: crowd.progress()["sent"] > sent + 30 * PER_SECOND, 90, "half a minute of the same load")
    assert len(moves(fleet, "east")) + len(moves(fleet, "west")) == count, "none comes back"
