"""Names of subscribers in a fleet of processes: another identity gets none in another cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.local.conftest import wait_for
from tests.local.test_publisher_moves import head_pid

from plimsoll.client import Connection, Curve, Delivery, Publisher, Subscriber
from plimsoll.client.errors import FailedError
from plimsoll.core.spec import parse
from plimsoll.local import keys, manifests, runtime
from plimsoll.local.head_access import head_access
from plimsoll.local.storage.fleet_folder import FleetFolder

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: named}
spec: {timeScalePercent: 20, security: {clients: [{name: ann}, {name: eve}]}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small}
  edges: [{name: east-edge, profile: small}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec:
  head: {profile: small}
  edges: [{name: west-edge, profile: small}]
  neighbors: [{name: east}]
"""
LEASE = timedelta(hours=2)
SECONDS = 300.0


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    runtime.up_detached(parse(manifests.parse_text(FLEET, "fleet.yaml")), lambda line: None)
    found = FleetFolder.of("named")
    yield found
    runtime.down(found)


def connection(folder: FleetFolder, cluster: str, identity: str) -> Connection:
    way = head_access(folder, cluster)
    secret = keys.client_key_pair(folder, identity).secret_file
    return Connection(way.endpoint, security=Curve(secret=secret, server=way.server))


def refusal(connection: Connection) -> str:
    """What ends a subscriber with the name of the other identity."""
    with pytest.raises(FailedError) as refused:
        Subscriber(connection, name="audit").receive(SECONDS)
    return str(refused.value)


@pytest.mark.slow
def test_another_identity_gets_no_name_in_another_cluster_and_its_owner_goes_there(folder: FleetFolder):
    with (
        connection(folder, "east", "ann") as at_east,
        connection(folder, "west", "ann") as at_west,
        connection(folder, "west", "eve") as eve,
    ):
        subscriber = Subscriber(at_east, name="audit", lease=LEASE)
        subscriber.subscribe("[class,=,'STOCK']")
        subscriber.wait_acknowledged()
        assert "'audit' belongs to another identity" in refusal(eve), "it is served"

        token, marks = subscriber.token, subscriber.watermarks
        subscriber.close(withdraw=False)
        assert "'audit' belongs to another identity" in refusal(eve), "it is away"

        for cluster in ("east", "west"):
            before = head_pid(folder, cluster)
            os.kill(before, signal.SIGKILL)
            wait_for(lambda cluster=cluster, before=before: head_pid(folder, cluster) not in (0, before))
        assert "'audit' belongs to another identity" in refusal(eve), "both heads have died, one after the other"

        back = Subscriber(at_west, name="audit", token=token, watermarks=marks)
        back.subscribe("[class,=,'STOCK']")
        back.wait_acknowledged()
        with Publisher(at_west, name="quotes") as publisher:
            publisher.publish({"class": "STOCK", "n": 1})
            publisher.flush(SECONDS)
        items = [back.receive(SECONDS)]
        while not isinstance(items[-1], Delivery):
            items.append(back.receive(SECONDS))
        assert items[-1].attributes["n"] == 1
