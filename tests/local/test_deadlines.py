"""Real clusters that defend deadlines: three topics are too much for an edge.

One moves to the other edge of its cluster, and one to a neighbouring cluster, since no edge of its own can take it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import wait_for

from plimsoll import client
from plimsoll.cli.main import main
from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime, store_edits
from plimsoll.local.head_access import head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: tides}
spec:
  telemetry: {reportInterval: 1s}
  globalBalancing: {enabled: true, interval: 2s}
  defaults:
    timing: {heartbeat: 1s, deadAfter: 20s}
    policy:
      type: DelaySensitive
      detection: {stabilizeFor: 4s}
      delaySensitive:
        topicAttribute: topic
        topics: [{name: buoys, latency: 2s}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: head}
spec: {memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: edge}
spec: {memory: 64Mi, bandwidth: {outputBytesPerSecond: 200k}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: head}
  edges: [{name: edge-0, profile: edge}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec:
  head: {profile: head}
  neighbors: [{name: east}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: edge-1}
spec: {clusterRef: {name: east}, profile: edge, cordoned: true}
---
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: far}
spec: {clusterRef: {name: west}, profile: edge, cordoned: true}
"""
TOPICS = ("buoys", "gauges", "winds")
PER_SECOND = 60
SIZE = 2_000
"""Two topics of 120 kB a second are more than one edge sends, and one is less."""


@pytest.fixture
def tides(home: Path) -> Iterator[FleetFolder]:
    assert os.environ["PLIMSOLL_HOME"] == str(home)
    file = home / "fleet.yaml"
    file.write_text(FLEET)
    runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
    folder = FleetFolder.of("tides")
    yield folder
    runtime.down(folder)


def topics(folder: FleetFolder) -> dict[str, dict[str, Any]]:
    """The topics that some edge serves, by the status of its cluster."""
    with ObjectStore(folder.store) as store:
        clusters = list(store.objects("BrokerCluster")[1])
    rows = [row for cluster in clusters for row in cluster.get("status", {}).get("topics", ())]
    return {row["name"]: row for row in rows if "edge" in row}


def places(folder: FleetFolder) -> set[str]:
    """The edges of all topics."""
    return {row["edge"] for row in topics(folder).values()}


def plans(folder: FleetFolder) -> list[dict[str, Any]]:
    """Plans of the policy that have ended and moved some, without the sessions of their pairs of edges."""
    with ObjectStore(folder.store) as store:
        every = store.objects("LoadBalancingSession")[1]
    found = [one for one in every if one["spec"].get("trigger") and "ownerReferences" not in one["metadata"]]
    return [one for one in found if "endedAt" in one.get("status", {}) and one["status"]["progress"]["moved"]]


class Tides:
    """A publisher of all topics, and a subscriber of each."""

    def __init__(self, folder: FleetFolder) -> None:
        way = head_access(folder, "east")
        security: Any = client.Curve(secret=way.secret_key_file, server=way.server) if way.secret_key_file else "plain"
        self.got: dict[str, list[int]] = {topic: [] for topic in TOPICS}
        self.sent = self.gaps = 0
        self.connections = [client.Connection(way.endpoint, security=security) for _ in range(1 + len(TOPICS))]
        self.subscribers = []
        for connection, topic in zip(self.connections[1:], TOPICS, strict=True):
            one = client.Subscriber(connection, name=f"s-{topic}", on_batch=self._take)
            one.subscribe(f"[topic,=,'{topic}']", latency_seconds=3.0 if topic == "gauges" else None)
            self.subscribers.append(one)
        self._publisher = client.Publisher(self.connections[0], name="sea")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def _take(self, items: list[Any]) -> None:
        for item in items:
            if isinstance(item, client.GapNotice):
                self.gaps += 1
            else:
                self.got[str(item.attributes["topic"])].append(int(item.attributes["n"]))

    def _publish(self) -> None:
        began = time.monotonic()
        while not self._stopped.wait(0.005):
            while self.sent < (time.monotonic() - began) * PER_SECOND:
                self.sent += 1
                for topic in TOPICS:
                    self._publisher.publish({"topic": topic, "n": self.sent}, bytes(SIZE))

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(300)
        self._publisher.flush()

    def close(self) -> None:
        self.stop()
        for connection in self.connections:
            connection.close()


@pytest.mark.sweep
def test_a_deadline_in_danger_is_seen_and_defended(tides: FleetFolder, capsys: pytest.CaptureFixture[str]):
    traffic = Tides(tides)
    try:
        seen = wait_for(
            lambda: (rows := topics(tides)).keys() >= set(TOPICS) and rows["buoys"]["depth"] > 20 and rows,
            60.0, "a queue at edge-0",
        )  # fmt: skip
        assert {row["edge"] for row in seen.values()} == {"edge-0"}
        assert (seen["buoys"]["requiredMilliseconds"], seen["gauges"]["requiredMilliseconds"]) == (2000, 3000)
        assert "requiredMilliseconds" not in seen["winds"]
        assert seen["buoys"]["latencyMilliseconds"] > 0
        assert "depthThreshold" in seen["buoys"]
        # One after the other: while neither is known to be loaded, both topics could go to the same edge.
        store_edits.set_cordoned(tides, "edge-1", cordoned=False)
        wait_for(lambda: places(tides) == {"edge-0", "edge-1"}, 300.0, "a move within the cluster")
        store_edits.set_cordoned(tides, "far", cordoned=False)
        wait_for(lambda: places(tides) == {"edge-0", "edge-1", "far"}, 300.0, "a move to the other cluster")
        wait_for(
            lambda: all(row["depth"] < 20 and not row["late"] for row in topics(tides).values()), 60.0, "short queues"
        )
        capsys.readouterr()
        assert main(["get", "topics", "--fleet", "tides"]) == 0
        shown = capsys.readouterr().out
        assert all(word in shown for word in (*TOPICS, "2000 ms", "3000 ms", "edge-0", "edge-1", "far"))
        made = wait_for(
            lambda: (some := plans(tides)) and sum(one["status"]["progress"]["moved"] for one in some) == 2 and some,
            60.0, "the ends of plans that moved two",
        )  # fmt: skip
        [wide] = [one for one in made if one["spec"]["scope"] == "Global"]
        assert (wide["spec"]["source"]["name"], wide["spec"]["target"]["name"]) == ("east", "west")
        [measured] = [one for one in wide["status"]["measured"]["edges"] if one["name"] == "far"]
        assert measured["subscribers"] == 1
        assert measured["utilizationPercent"] > 30, (
            "a topic takes three fifths of it; a busy machine measures otherwise"
        )
        assert "errorPercent" in measured
        assert main(["explain", f"lbs/{wide['metadata']['name']}", "--fleet", "tides"]) == 0
        assert capsys.readouterr().out.count("no edge of its cluster takes it") == 1
        traffic.stop()
        wait_for(lambda: all(len(some) >= traffic.sent for some in traffic.got.values()), 300.0, "all deliveries")
        assert all(some == list(range(1, traffic.sent + 1)) for some in traffic.got.values()), "in order, and each once"
        assert traffic.gaps == 0
        counts = traffic.subscribers[1].statistics()
        assert counts["timed_deliveries"] == traffic.sent
        assert counts["delay_max_seconds"] > 0.0
    finally:
        traffic.close()
