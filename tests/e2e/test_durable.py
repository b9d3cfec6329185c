"""A head with its log on a volume, in pods: it is deleted under load, and its subscribers notice nothing but a pause.

The volume is a folder of a node, for clusters without a provisioner.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from tests.e2e.cluster import ROOT, Cluster, Crowd
from tests.e2e.volumes import node_volume

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(600)]

SUBSCRIBERS = 50
PER_SECOND = 40.0
HEAD = "east-head"
DELETIONS = 3


@pytest.fixture(scope="module")
def storage_class(installed: Cluster) -> Iterator[str]:
    """A class with one volume."""
    with node_volume(f"{installed.namespace}-log") as name:
        yield name


@pytest.fixture(scope="module")
def fleet(installed: Cluster, storage_class: str) -> Cluster:
    """The quick start's fleet, with the log of its head on the volume."""
    objects = list(yaml.safe_load_all((ROOT / "examples" / "kubernetes" / "quickstart.yaml").read_text()))
    cluster = next(item for item in objects if item["kind"] == "BrokerCluster")
    cluster["spec"]["head"]["log"] = {
        "sync": "Always",
        "disk": {"size": "256Mi", "storageClass": storage_class, "retain": False},
    }
    installed.apply(*objects)
    installed.wait(lambda: installed.is_true("brokercluster", "east", "Ready"), 180, "the cluster to be ready")
    return installed


def epoch(fleet: Cluster) -> int:
    return int(fleet.get("brokercluster", "east")["status"]["head"]["epoch"])


def test_the_log_of_the_head_is_on_its_volume(fleet: Cluster, storage_class: str):
    claim = fleet.get("persistentvolumeclaim", f"log-{HEAD}-0")
    assert claim["status"]["phase"] == "Bound"
    assert claim["spec"]["volumeName"] == storage_class
    fleet.wait(lambda: fleet.is_true("brokercluster", "east", "LogSafe"), 60, "the condition of the log")


def test_a_head_that_is_deleted_loses_nothing_and_leaves_no_gap(fleet: Cluster):
    crowd = Crowd(fleet, "traders", "east", SUBSCRIBERS, PER_SECOND)
    for _ in range(DELETIONS):
        before = epoch(fleet)
        fleet.kubectl("delete", "pod", f"{HEAD}-0", "--grace-period=0", "--force")
        fleet.wait(lambda before=before: epoch(fleet) > before, 120, "the head to come back")
        fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Ready"), 120, "the cluster to be ready")
        fleet.wait(lambda: sum(crowd.at().values()) == SUBSCRIBERS, 60, "all to be served")
    found = crowd.verdict()
    assert (found["lost"], found["duplicated"], found["reordered"], found["gaps"]) == (0, 0, 0, 0), found
    assert found["ok"], found
