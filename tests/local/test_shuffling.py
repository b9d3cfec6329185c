"""A real cluster of unequal edges is shuffled: one plan for all of them, and live subscribers move unharmed."""

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
    policy: {type: Padres, detection: {interval: 10m, reportsValidFor: 20m, stabilizeFor: 8s}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: quick}
spec: {memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: slow}
spec: {memory: 64Mi, emulation: {perSubscription: 400us}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: fast}
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
---
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: edge-2}
spec: {clusterRef: {name: east}, profile: fast, cordoned: true}
"""
EDGES = ("edge-0", "edge-1", "edge-2")


@pytest.fixture
def uneven(home: Path) -> Iterator[FleetFolder]:
    assert os.environ["PLIMSOLL_HOME"] == str(home)
    file = home / "fleet.yaml"
    file.write_text(FLEET)
    runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
    folder = FleetFolder.of("uneven")
    yield folder
    runtime.down(folder)


def session(folder: FleetFolder, name: str) -> dict[str, Any]:
    with ObjectStore(folder.store) as store:
        return next(each for each in store.objects("LoadBalancingSession")[1] if each["metadata"]["name"] == name)


def ended(folder: FleetFolder, name: str) -> dict[str, Any]:
    """Its status, once it is over."""
    status: dict[str, Any] = session(folder, name).get("status", {})
    return status if "endedAt" in status else {}


@pytest.mark.sweep
def test_a_cluster_is_shuffled_and_nothing_is_lost(uneven: FleetFolder):
    """All begin at the slow edge-0; the plan is shown first, and then carried out exactly."""
    with Traffic(uneven, 24, per_second=60.0) as traffic:
        assert len(traffic.at("edge-0")) == 24
        for edge in EDGES[1:]:
            store_edits.set_cordoned(uneven, edge, cordoned=False)
        wait_for(lambda: traffic.sent > 200, what="some traffic to tell loads from")
        store_edits.create_session(
            uneven, "all", {"scope": "Local", "source": {"name": "east"}, "action": "Shuffle", "mode": "DryRun"}
        )
        dry = wait_for(lambda: ended(uneven, "all"), what="the plan")
        assert (dry["phase"], dry["reason"]) == ("Planned", "DryRun"), dry
        predicted = {each["name"]: each for each in dry["predicted"]["edges"]}
        assert set(predicted) == set(EDGES)
        assert len(traffic.at("edge-0")) == 24
        store_edits.approve_session(uneven, "all", dry["planHash"])
        status = wait_for(lambda: (now := ended(uneven, "all")).get("phase") != "Planned" and now, what="its end")
        assert (status["phase"], status["reason"]) == ("Succeeded", "Moved"), status
        counts = {edge: predicted[edge]["subscribersAfter"] for edge in EDGES}
        assert sum(counts.values()) == 24
        assert all(counts.values())
        wait_for(lambda: {edge: len(traffic.at(edge)) for edge in EDGES} == counts, what="clients know where they are")
        measured = {each["name"]: each["utilizationPercent"] for each in status["measured"]["edges"]}
        assert max(measured.values()) < predicted["edge-0"]["utilizationBeforePercent"]
        assert {child["phase"] for child in status["children"]} == {"Succeeded"}
        verdict = traffic.verdict()
    assert verdict.ok, verdict
    assert (verdict.lost, verdict.gaps) == (0, 0)
