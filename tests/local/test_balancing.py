"""A real fleet that its policy balances: unequal load becomes a session, and live subscribers move unharmed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import wait_for
from tests.local.traffic import Traffic

from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime, store_edits
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: uneven}
spec:
  timeScalePercent: 25
  defaults:
    policy: {type: Padres, detection: {stabilizeFor: 8s}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: quick}
spec: {memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: slow}
spec: {memory: 64Mi, emulation: {perSubscription: 200us}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: quick}
  edges:
  - {name: edge-0, profile: slow}
---
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: edge-1}
spec: {clusterRef: {name: east}, profile: slow, cordoned: true}
"""


class Uneven:
    """A fleet of real brokers, and its store."""

    def __init__(self, folder: FleetFolder) -> None:
        self.folder = folder

    def objects(self, kind: str) -> list[dict[str, Any]]:
        with ObjectStore(self.folder.store) as store:
            return store.objects(kind)[1]

    def sessions(self) -> list[dict[str, Any]]:
        return self.objects("LoadBalancingSession")

    def succeeded(self) -> list[dict[str, Any]]:
        """Sessions that have; others may have asked while the target was cordoned."""
        return [item for item in self.sessions() if item.get("status", {}).get("phase") == "Succeeded"]


@pytest.fixture
def uneven(home: Path) -> Iterator[Uneven]:
    assert os.environ["PLIMSOLL_HOME"] == str(home)
    file = home / "fleet.yaml"
    file.write_text(FLEET)
    runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
    folder = FleetFolder.of("uneven")
    yield Uneven(folder)
    runtime.down(folder)


def test_unequal_load_becomes_a_session_that_succeeds(uneven: Uneven):
    with Traffic(uneven.folder, 24, per_second=60.0) as traffic:
        assert len(traffic.at("edge-0")) == 24
        store_edits.set_cordoned(uneven.folder, "edge-1", cordoned=False)
        wait_for(uneven.succeeded, 300.0, "a session to succeed")
        [first, *_] = uneven.succeeded()
        status = first["status"]
        assert first["metadata"]["name"].startswith("balance-edge-0-")
        assert first["spec"]["trigger"]["broker"] == "edge-0"
        assert status["reason"] == "Moved", status
        moved = status["progress"]["moved"]
        assert 0 < moved < 24
        assert len(traffic.at("edge-1")) == moved
        assert (status["asked"][0]["name"], status["asked"][0]["answer"]) == ("edge-1", "OK")
        assert status["plan"]["policy"] == "Padres"
        assert sum(each["subscribers"] for each in status["plan"]["moves"]) == moved
        assert [edge["name"] for edge in status["measured"]["edges"]] == ["edge-0", "edge-1"]
        assert all({"after", "error"} <= edge.keys() for edge in status["measured"]["edges"]), "each load is measured"
        verdict = traffic.verdict()
    assert verdict.ok, verdict
    assert (verdict.lost, verdict.gaps) == (0, 0)
