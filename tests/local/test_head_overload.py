"""A real head that sends more than its load line: a publisher goes to the other head by itself, and nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import wait_for
from tests.local.test_publisher_moves import connection

from plimsoll import client
from plimsoll.cli.main import main
from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime
from plimsoll.local.head_access import HeadAccess, head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: harbour}
spec:
  telemetry: {reportInterval: 1s}
  defaults:
    timing: {heartbeat: 1s, deadAfter: 20s}
    policy:
      type: DelaySensitive
      detection: {stabilizeFor: 4s}
      delaySensitive:
        topicAttribute: topic
        topics: [{name: buoys, latency: 2s}]
        thresholds:
          headUplink: {lower: 150m, higher: 200m}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: narrow}
spec: {memory: 64Mi, bandwidth: {outputBytesPerSecond: 200k}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: wide}
spec: {memory: 64Mi, bandwidth: {outputBytesPerSecond: 10M}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: narrow}
  edges: [{name: east-edge, profile: wide}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec:
  head: {profile: wide}
  edges: [{name: west-edge, profile: wide}]
  neighbors: [{name: east}]
"""
TOPICS = ("buoys", "gauges")
SIZE = 500
"""Each topic takes some 28 kB of the 200 kB that the head may send in a second; 40 kB are its load line."""


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    file = home / "fleet.yaml"
    file.write_text(FLEET)
    runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
    folder = FleetFolder.of("harbour")
    yield folder
    runtime.down(folder)


def sessions(folder: FleetFolder) -> list[dict[str, Any]]:
    """Sessions that have ended, with their status."""
    with ObjectStore(folder.store) as store:
        found = list(store.objects("LoadBalancingSession")[1])
    return [one for one in found if "endedAt" in one.get("status", {})]


class Sea:
    """A publisher of each topic at one head, and a subscriber of both at the other."""

    def __init__(self, east: HeadAccess, west: HeadAccess) -> None:
        self.connections = [connection(east), connection(west)]
        self.got: dict[str, list[int]] = {topic: [] for topic in TOPICS}
        self.gaps = 0
        self._subscriber = client.Subscriber(self.connections[1], name="s", prefer="west-edge", on_batch=self._take)
        self._subscriber.subscribe("[n,>,0]")
        self.publishers = {topic: client.Publisher(self.connections[0], name=topic) for topic in TOPICS}
        self.receipts: list[client.Receipt] = []
        self.sent = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _take(self, items: Any) -> None:
        for item in items:
            if isinstance(item, client.Delivery):
                self.got[str(item.attributes["topic"])].append(int(item.attributes["n"]))
            else:
                self.gaps += 1

    def _run(self) -> None:
        while not self._stopped.wait(0.02):
            self.sent += 1
            for topic, publisher in self.publishers.items():
                self.receipts.append(publisher.publish({"topic": topic, "n": self.sent}, bytes(SIZE)))

    def heads(self) -> list[str]:
        return sorted(publisher.statistics()["head"] for publisher in self.publishers.values())

    def stop(self) -> set[str]:
        """The answers to all publications."""
        self._stopped.set()
        self._thread.join(300)
        for publisher in self.publishers.values():
            publisher.flush(300)
        return {receipt.answer.answer for receipt in self.receipts if receipt.answer is not None}

    def close(self) -> None:
        self._stopped.set()
        for each in self.connections:
            each.close()


@pytest.mark.sweep
def test_publishers_leave_an_overloaded_head(folder: FleetFolder, capsys: pytest.CaptureFixture[str]):
    sea = Sea(head_access(folder, "east"), head_access(folder, "west"))
    try:
        wait_for(lambda: "west-head" in sea.heads(), 300.0, "a publisher at the other head")
        [session] = wait_for(lambda: sessions(folder), 300.0, "the end of the session")
        assert sea.heads() == ["east-head", "west-head"], "as many as it takes"
        assert sea.publishers["gauges"].statistics()["head"] == "west-head", "without a deadline it may wait longer"
        status = session["status"]
        assert (status["phase"], status["reason"], status["progress"]["moved"]) == ("Succeeded", "Moved", 1)
        assert session["spec"]["trigger"]["broker"] == "east-head"
        [measured] = [one for one in status["measured"]["edges"] if one["name"] == "east-head"]
        assert measured["errorPercent"] <= 4, status
        assert measured["subscribers"] == 1, "publishers, of a head"
        capsys.readouterr()
        assert main(["explain", f"lbs/{session['metadata']['name']}", "--fleet", "harbour"]) == 0
        shown = capsys.readouterr().out
        assert "relieves east-head: uplink at" in shown
        assert "buoys" in shown
        assert sea.stop() == {"accepted"}
        wait_for(lambda: all(len(some) == sea.sent for some in sea.got.values()), 300.0, "all deliveries")
        assert all(some == list(range(1, sea.sent + 1)) for some in sea.got.values()), "in order, and each once"
        assert sea.gaps == 0
    finally:
        sea.close()
