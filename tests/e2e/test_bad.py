"""The BAD policy in pods: it migrates live, explains its moves, and every delivery is judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.e2e.cluster import ROOT, Cluster, Crowd

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(1800)]

SUBSCRIBERS = 200
PER_SECOND = 50.0
POLICY = {
    "type": "Bad",
    "detection": {"interval": "2s", "reportsValidFor": "10s", "stabilizeFor": "4s"},
    "bad": {"interval": "3s", "shuffle": "None"},
}
Object = dict[str, Any]


@pytest.fixture(scope="module")
def fleet(installed: Cluster) -> Cluster:
    """Three equal edges under BAD, only one of which takes newcomers."""
    objects = list(yaml.safe_load_all((ROOT / "examples" / "kubernetes" / "bundles.yaml").read_text()))
    for item in objects:
        if item["kind"] == "BrokerCluster":
            item["spec"]["policy"] = POLICY
    installed.apply(*objects)
    installed.wait(lambda: installed.is_true("brokercluster", "topics", "Ready"), 120, "the cluster to be ready")
    for edge in ("edge-1", "edge-2"):
        installed.plimsoll("cordon", edge)
    return installed


@pytest.fixture(scope="module")
def crowd(fleet: Cluster) -> Iterator[Crowd]:
    """Publishes all the time; in all tests nothing may be lost, repeated or reordered."""
    crowd = Crowd(fleet, "traders", "topics", SUBSCRIBERS, PER_SECOND)
    yield crowd
    found = crowd.verdict()
    assert (found["lost"], found["duplicated"], found["reordered"], found["gaps"]) == (0, 0, 0, 0), found
    assert found["ok"], found


def test_bad_evens_out_what_edges_take_in_and_send(fleet: Cluster, crowd: Crowd):
    assert crowd.at() == {"edge-0": SUBSCRIBERS}
    for edge in ("edge-1", "edge-2"):
        fleet.plimsoll("uncordon", edge)
    fleet.wait(lambda: len(crowd.at()) == 3 and max(crowd.at().values()) < SUBSCRIBERS / 2, 180, "three even edges")
    [done, *_] = fleet.wait(lambda: _moved(fleet), 60, "the plan to end")
    audit = done["status"]["audit"]
    assert (audit["lost"], audit["duplicated"], audit["reordered"]) == (0, 0, 0)
    told = fleet.plimsoll("explain", f"lbs/{done['metadata']['name']}")
    assert "Bad" in told
    assert "carries most, F = " in told


def _moved(fleet: Cluster) -> list[Object]:
    """The plans that have moved subscribers and ended; the sessions of their pairs are not among them."""
    return [
        each for each in fleet.get("loadbalancingsessions")
        if each["metadata"]["name"].startswith("plan-") and each.get("status", {}).get("phase") == "Succeeded"
        and each["status"].get("progress", {}).get("moved", 0) and not _is_child(each)
    ]  # fmt: skip


def _is_child(session: Object) -> bool:
    return any(owner["kind"] == "LoadBalancingSession" for owner in session["metadata"].get("ownerReferences", ()))
