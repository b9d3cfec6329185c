"""Bundles of topics in pods: looked up, moved live, released and looked up again, under applications that are judged.

All subscribers ask for one topic, so that one bundle has all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.cluster import ROOT, Cluster, Crowd, run

from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.protocol.topic_units import topic_hash

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(1800)]

SUBSCRIBERS = 200
PER_SECOND = 50.0
BUNDLE = Partition.of_count(4).range_of(topic_hash("STOCK"))


@pytest.fixture(scope="module")
def fleet(installed: Cluster) -> Cluster:
    """The fleet of the example, with the topics of the crowd."""
    objects = list(yaml.safe_load_all((ROOT / "examples" / "kubernetes" / "bundles.yaml").read_text()))
    for item in objects:
        if item["kind"] == "BrokerCluster":
            item["spec"]["policy"]["pulsar"] |= {"topicAttribute": "class", "shedding": {"strategy": "None"}}
    installed.apply(*objects)
    installed.wait(lambda: installed.is_true("brokercluster", "topics", "Ready"), 120, "the cluster to be ready")
    return installed


@pytest.fixture(scope="module")
def crowd(fleet: Cluster) -> Iterator[Crowd]:
    """Publishes all the time; in all tests nothing may be lost, repeated or reordered."""
    crowd = Crowd(fleet, "traders", "topics", SUBSCRIBERS, PER_SECOND)
    yield crowd
    found = crowd.verdict()
    assert (found["lost"], found["duplicated"], found["reordered"], found["gaps"]) == (0, 0, 0, 0), found
    assert found["ok"], found


def row(fleet: Cluster, name: str) -> dict[str, Any]:
    """A bundle as the status of the cluster has it; empty if it is not there."""
    found = fleet.get("brokercluster", "topics").get("status", {}).get("bundles", [])
    return next((dict(each) for each in found if each["name"] == name), {})


def served_at(fleet: Cluster, crowd: Crowd, edge: str, name: str = BUNDLE.name) -> bool:
    return crowd.at() == {edge: SUBSCRIBERS} and row(fleet, name).get("edge") == edge


def other(fleet: Cluster, edge: str) -> str:
    return next(str(each["metadata"]["name"]) for each in fleet.get("edgebrokers") if each["metadata"]["name"] != edge)


def test_one_edge_serves_all_of_a_topic(fleet: Cluster, crowd: Crowd):
    fleet.wait(lambda: len(crowd.at()) == 1 and sum(crowd.at().values()) == SUBSCRIBERS, 60, "all at one edge")
    [edge] = crowd.at()
    fleet.wait(lambda: row(fleet, BUNDLE.name).get("sessions") == SUBSCRIBERS, 60, "the status to say so")
    fleet.wait(lambda: row(fleet, BUNDLE.name).get("publicationsPerSecond", 0) > 0, 60, "its rate to be measured")
    assert (row(fleet, BUNDLE.name)["edge"], row(fleet, BUNDLE.name)["topics"]) == (edge, 1)
    assert BUNDLE.name in fleet.plimsoll("get", "bundles")


def bundle_object(fleet: Cluster, name: str) -> dict[str, Any]:
    """The object of a bundle; empty if there is none."""
    return next((dict(each) for each in fleet.get("bundles") if each["spec"]["range"] == name), {})


def test_a_bundle_is_an_object_that_its_cluster_owns(fleet: Cluster, crowd: Crowd):
    [edge] = crowd.at()
    fleet.wait(lambda: bundle_object(fleet, BUNDLE.name).get("status", {}).get("edge") == edge, 60, "the object")
    found = bundle_object(fleet, BUNDLE.name)
    assert [(each["kind"], each["name"]) for each in found["metadata"]["ownerReferences"]] == [
        ("BrokerCluster", "topics")
    ]
    assert found["status"]["sessions"] == SUBSCRIBERS


def test_a_world_of_the_fleet_can_be_simulated(fleet: Cluster, crowd: Crowd, tmp_path: Path):
    """The operator's pod asks the brokers; the copy has the units where they are, and runs."""
    [edge] = crowd.at()
    file = tmp_path / "world.yaml"
    fleet.plimsoll("world", "--over", "10", "--duration", "30s", "--write", str(file))
    spec = next(yaml.safe_load_all(file.read_text()))["spec"]
    assert spec["topicAttribute"] == "class"
    assert {each["edge"]: each.get("count", 1) for each in spec["subscribers"]} == {edge: SUBSCRIBERS}
    rate = sum(float(each["rates"][0]["perSecond"]) for each in spec["publishers"])
    assert 0.7 * PER_SECOND < rate < 1.3 * PER_SECOND, spec["publishers"]
    program = str(ROOT / ".venv" / "bin" / "plimsoll")
    told = run(program, "simulate", "-f", str(file), "--policy", "own", "--policy", "none")
    assert {"own", "none"} <= {line.split()[0] for line in told.splitlines() if line}
    assert "measured at" in told


def test_a_bundle_is_handed_over_live(fleet: Cluster, crowd: Crowd):
    target = other(fleet, row(fleet, BUNDLE.name)["edge"])
    fleet.plimsoll("unload", "topics", BUNDLE.name, "--to", target)
    fleet.wait(lambda: served_at(fleet, crowd, target), 60, "all at the edge that was named")


def test_a_bundle_is_looked_up_again(fleet: Cluster, crowd: Crowd):
    patch = json.dumps({"spec": {"policy": {"pulsar": {"unload": "Lookup"}}}})
    fleet.kubectl("patch", "brokercluster", "topics", "--type=merge", "-p", patch)
    before = row(fleet, BUNDLE.name)["edge"]
    fleet.wait(
        lambda: _unloaded(fleet) and row(fleet, BUNDLE.name).get("edge") not in ("", before), 120, "another edge"
    )
    edge = row(fleet, BUNDLE.name)["edge"]
    fleet.wait(lambda: served_at(fleet, crowd, edge), 60, "all at the edge that the lookup has drawn")


def _unloaded(fleet: Cluster) -> bool:
    """Unload the bundle; not at once after a move, since subscribers rest for `moveInterval`."""
    fleet.plimsoll("unload", "topics", BUNDLE.name)
    return True


def test_an_edge_that_is_deleted_gives_its_bundle_up(fleet: Cluster, crowd: Crowd):
    edge = row(fleet, BUNDLE.name)["edge"]
    fleet.kubectl("delete", "pod", f"{edge}-0", "--wait=false")
    fleet.wait(lambda: sum(crowd.at().values()) == SUBSCRIBERS and len(crowd.at()) == 1, 180, "all at one edge again")
    fleet.wait(lambda: row(fleet, BUNDLE.name).get("edge") in crowd.at(), 120, "the status to say where")
