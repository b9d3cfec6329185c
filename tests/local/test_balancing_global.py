"""Two real clusters: subscribers move live from the loaded one to the other without loss, then the session ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import wait_for
from tests.local.traffic import Traffic

from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: wide}
spec:
  timeScalePercent: 20
  globalBalancing: {enabled: true, interval: 10s}
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
spec: {memory: 64Mi, emulation: {perSubscription: 250us}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: quick}
  edges: [{name: east-edge, profile: slow}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec:
  head: {profile: quick}
  edges: [{name: west-edge, profile: slow}]
  neighbors: [{name: east}]
"""


@pytest.fixture
def folder(home: Path) -> Iterator[FleetFolder]:
    assert os.environ["PLIMSOLL_HOME"] == str(home)
    file = home / "fleet.yaml"
    file.write_text(FLEET)
    runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
    folder = FleetFolder.of("wide")
    yield folder
    runtime.down(folder)


def sessions(folder: FleetFolder, prefix: str) -> list[dict[str, Any]]:
    with ObjectStore(folder.store) as store:
        items = store.objects("LoadBalancingSession")[1]
    return [item for item in items if item["metadata"]["name"].startswith(prefix)]


@pytest.mark.sweep
def test_load_crosses_to_the_neighbour_and_nothing_is_lost(folder: FleetFolder):
    with Traffic(folder, 40, per_second=50.0) as traffic:
        assert len(traffic.at("east-edge")) == 40

        def ended() -> list[dict[str, Any]]:
            return [s for s in sessions(folder, "global-") if s.get("status", {}).get("phase") == "Succeeded"]

        def movers() -> list[dict[str, Any]]:
            """On a busy machine a session may find that all is balanced by then, and move none."""
            return [s for s in ended() if s["status"]["progress"]["moved"]]

        def gone_west() -> int:
            return sum(
                s["status"]["progress"]["moved"] * (1 if s["status"]["target"] == "west" else -1) for s in movers()
            )

        wait_for(movers, 300.0, "a session between clusters that moves subscribers to succeed")
        [first, *_] = movers()
        status = first["status"]
        assert (status["source"], status["target"]) == ("east", "west")
        assert status["reason"] in ("AllBalanced", "NothingMore"), status
        assert 0 < status["progress"]["moved"] < 40, status
        children = [s for s in sessions(folder, "balance-") if s["metadata"].get("ownerReferences")]
        parents = {owner["name"] for s in children for owner in s["metadata"]["ownerReferences"]}
        assert first["metadata"]["name"] in parents
        wait_for(lambda: len(traffic.at("west-edge")) == gone_west(), 300.0, "them to be where the sessions say")
        verdict = traffic.verdict()
    assert verdict.ok, verdict
    assert (verdict.lost, verdict.gaps) == (0, 0)
