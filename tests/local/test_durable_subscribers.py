"""A subscriber with a lease on a fleet of processes: it is moved, goes away, and has everything when it is back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import wait_for
from tests.local.test_publisher_moves import connection

from plimsoll.client import Delivery, Publisher, Subscriber
from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime, store_edits
from plimsoll.local.head_access import head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: kept}
spec: {telemetry: {reportInterval: 1s}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 128Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small, log: {disk: {size: 64Mi}}}
  edges: [{name: edge, profile: small, replicas: 2}]
"""
MOVE = {
    "scope": "Local", "source": {"name": "edge-0"}, "target": {"name": "edge-1"}, "mode": "Execute",
    "select": {"sharePercent": 100}, "limits": {"moveInterval": "0s"}, "deadline": "2m",
}  # fmt: skip
LEASE = timedelta(hours=2)
SECONDS = 300.0


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    runtime.up_detached(parse(manifests.parse_text(FLEET, "fleet.yaml")), lambda line: None)
    found = FleetFolder.of("kept")
    yield found
    runtime.down(found)


def status(folder: FleetFolder, kind: str, name: str) -> dict[str, Any]:
    with ObjectStore(folder.store) as store:
        found: dict[str, Any] = store.get(kind, name).get("status", {})
    return found


def names_away(folder: FleetFolder) -> list[str]:
    return [each["name"] for each in status(folder, "BrokerCluster", "east").get("awaySubscribers", [])]


def kill(pid: object) -> None:
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)


def taken(subscriber: Subscriber, count: int) -> list[Any]:
    """What a subscriber is given next: numbers, or the reason of a gap."""
    items = [subscriber.receive(SECONDS) for _ in range(count)]
    return [item.attributes["n"] if isinstance(item, Delivery) else item.reason for item in items]


def publish(publisher: Publisher, *numbers: int) -> None:
    receipts = [publisher.publish({"class": "STOCK", "n": number}) for number in numbers]
    publisher.flush(SECONDS)
    assert {receipt.answer.answer for receipt in receipts if receipt.answer is not None} == {"accepted"}


@pytest.mark.slow
def test_a_subscriber_that_is_moved_and_then_away_has_everything_when_it_is_back(folder: FleetFolder):
    way = head_access(folder)
    with connection(way) as writing, connection(way) as reading:
        publisher = Publisher(writing, name="quotes")
        subscriber = Subscriber(reading, name="audit", prefer="edge-0", lease=LEASE)
        subscriber.subscribe("[class,=,'STOCK']")
        subscriber.wait_acknowledged()
        publish(publisher, *range(10))
        assert taken(subscriber, 10) == list(range(10))

        store_edits.create_session(folder, "move", MOVE)
        wait_for(lambda: "endedAt" in status(folder, "LoadBalancingSession", "move"))
        ended = status(folder, "LoadBalancingSession", "move")
        assert (ended["phase"], ended["progress"]["moved"]) == ("Succeeded", 1)
        publish(publisher, *range(10, 20))
        assert taken(subscriber, 10) == list(range(10, 20))

        token, marks = subscriber.token, subscriber.watermarks
        subscriber.close(withdraw=False)
        wait_for(lambda: names_away(folder) == ["audit"])
        kill(status(folder, "EdgeBroker", "edge-1")["pid"])  # its place there is gone
        kill(status(folder, "BrokerCluster", "east")["head"]["pid"])
        publish(publisher, *range(20, 40))

        back = Subscriber(reading, name="audit", token=token, watermarks=marks, lease=LEASE)
        back.subscribe("[class,=,'STOCK']")
        assert taken(back, 20) == list(range(20, 40))
        publish(publisher, 40)
        assert taken(back, 1) == [40]
