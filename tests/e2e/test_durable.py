"""A head with its log on a volume, in pods: it is deleted under load, and its subscribers notice nothing but a pause.

Nor do they when the volume is detached, and attached again. Then the head gets a standby whose volume is too small.
Volumes are folders of a node, for clusters without a provisioner.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from tests.e2e.cluster import ROOT, Cluster, Crowd, Object, run
from tests.e2e.node_access import (
    attach_disk,
    detach_disk,
    disk_folder,
    has_disk_folders,
    resize_folder,
    small_folder,
)
from tests.e2e.volumes import node_name, node_volume, volume

pytestmark = [pytest.mark.cluster, pytest.mark.e2e, pytest.mark.timeout(1800)]

SUBSCRIBERS = 50
PER_SECOND = 40.0
HEAD = "east-head"
DELETIONS = 3
SCRAPE = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:7402/metrics').read().decode())"
LARGE_BYTES = 20_000
DISK_EXIT = 4


@pytest.fixture(scope="module")
def disk(installed: Cluster) -> Iterator[str]:
    """Where the node has the file system that can be detached; empty if it cannot make one."""
    node, path = node_name(), f"/var/lib/{installed.namespace}-disk"
    if not has_disk_folders(node):
        yield ""
        return
    with disk_folder(node, path, "256m"):
        yield path


@pytest.fixture(scope="module")
def storage_class(installed: Cluster, disk: str) -> Iterator[str]:
    """A class with one volume."""
    name = f"{installed.namespace}-log"
    if not disk:
        with node_volume(name):
            yield name
        return
    run("kubectl", "apply", "-f", "-", text=yaml.safe_dump(volume(name, node_name(), f"{disk}/log")))
    try:
        yield name
    finally:
        run("kubectl", "delete", "persistentvolume", name, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="module")
def fleet(installed: Cluster, storage_class: str) -> Cluster:
    """The quick start's fleet, with the log of its head on the volume."""
    objects = list(yaml.safe_load_all((ROOT / "examples" / "kubernetes" / "quickstart.yaml").read_text()))
    cluster = next(item for item in objects if item["kind"] == "BrokerCluster")
    cluster["spec"]["head"]["log"] = {
        "sync": "Always",
        "disk": {"size": "64Mi", "storageClass": storage_class, "retain": False},
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
    """The last time together with the operator."""
    crowd = Crowd(fleet, "traders", "east", SUBSCRIBERS, PER_SECOND)
    (operator,) = fleet.get("pod", selector="app.kubernetes.io/name=plimsoll-operator")
    for number in range(DELETIONS):
        before = epoch(fleet)
        with_it = [operator["metadata"]["name"]] if number == DELETIONS - 1 else []
        fleet.kubectl("delete", "pod", f"{HEAD}-0", *with_it, "--grace-period=0", "--force")
        fleet.wait(lambda before=before: epoch(fleet) > before, 120, "the head to come back")
        fleet.wait(lambda: fleet.is_true("brokercluster", "east", "Ready"), 120, "the cluster to be ready")
        fleet.wait(lambda: sum(crowd.at().values()) == SUBSCRIBERS, 60, "all to be served")
    found = crowd.verdict()
    assert_nothing_is_missing(found)


def assert_nothing_is_missing(found: Object) -> None:
    faults = {name: found[name] for name in ("lost", "duplicated", "reordered", "gaps", "unknown")}
    assert set(faults.values()) == {0}, faults
    assert found["ok"], found


def test_a_head_whose_volume_is_detached_goes_on_once_it_is_attached_again(fleet: Cluster, disk: str):
    if not disk:
        pytest.skip("needs mkfs.ext4, losetup and loop devices on the node, for a volume that can be detached")
    fleet.kubectl("delete", "pod", "traders", "--grace-period=0", "--force", "--ignore-not-found")
    crowd = Crowd(fleet, "traders", "east", SUBSCRIBERS, PER_SECOND)
    before = epoch(fleet)
    detach_disk(node_name(), disk)
    fleet.wait(lambda: DISK_EXIT in exit_codes(fleet, f"{HEAD}-0"), 120, "the head to end")
    fleet.wait(lambda: not fleet.is_true("brokercluster", "east", "Ready"), 120, "the cluster to say so")
    attach_disk(node_name(), disk)
    fleet.wait(lambda: epoch(fleet) > before, 360, "the head to come back")  # the kubelet waits longer each time
    fleet.wait(lambda: sum(crowd.at().values()) == SUBSCRIBERS, 60, "all to be served")
    print(f"pauses in seconds: {crowd.progress()['pauses']}")  # what was measured
    assert_nothing_is_missing(crowd.verdict())


@pytest.fixture
def small_volume(fleet: Cluster, storage_class: str) -> Iterator[str]:
    """A volume for the log of the second pod, with room for two segments of eight; yields its folder."""
    name, node = f"{fleet.namespace}-small", node_name()
    path = f"/var/lib/{name}"
    claim = {"namespace": fleet.namespace, "name": f"log-{HEAD}-1"}
    with small_folder(node, path, "24m"):
        run("kubectl", "apply", "-f", "-", text=yaml.safe_dump(volume(name, node, path, storage_class, claim)))
        try:
            yield path
        finally:
            run("kubectl", "delete", "persistentvolume", name, "--ignore-not-found", "--wait=false")


def in_sync(fleet: Cluster) -> bool:
    return bool(fleet.get("brokercluster", "east")["status"].get("leadership", {}).get("standby"))


def standby_metric(fleet: Cluster) -> float:
    """`plimsoll_broker_standby_in_sync` of the first pod."""
    text = fleet.kubectl("exec", f"{HEAD}-0", "--", "python", "-c", SCRAPE)
    (line,) = [line for line in text.splitlines() if line.startswith("plimsoll_broker_standby_in_sync")]
    return float(line.split()[-1])


def exit_codes(fleet: Cluster, pod: str) -> set[int]:
    """How the container of a pod has ended, as far as its status says."""
    states = [state for one in fleet.get("pod", pod)["status"].get("containerStatuses", []) for state in (
        one["state"], one["lastState"],
    )]  # fmt: skip
    return {state["terminated"]["exitCode"] for state in states if "terminated" in state}


def test_a_standby_whose_volume_is_full_is_left_behind_and_comes_back_when_there_is_room(
    fleet: Cluster, small_volume: str
):
    patch = '{"spec": {"head": {"standby": 1}}}'
    fleet.kubectl("patch", "brokercluster", "east", "--type=merge", "-p", patch)
    fleet.wait(lambda: in_sync(fleet), 240, "the standby to follow")
    assert fleet.get("brokercluster", "east")["status"]["leadership"]["leader"] == 0
    fleet.kubectl("delete", "pod", "traders", "--grace-period=0", "--force", "--ignore-not-found")
    crowd = Crowd(fleet, "traders", "east", 5, PER_SECOND, size=LARGE_BYTES)
    try:
        fleet.wait(lambda: DISK_EXIT in exit_codes(fleet, f"{HEAD}-1"), 180, "the standby to end")
        fleet.wait(lambda: standby_metric(fleet) == 0, 60, "the metric")
        found = fleet.wait(
            lambda: (now := fleet.condition("brokercluster", "east", "StandbyFollows"))["status"] == "False" and now,
            60, "the condition",
        )  # fmt: skip
        assert found["reason"] == "LeadsAlone"
        sent = crowd.progress()["sent"]
        fleet.wait(lambda: crowd.progress()["sent"] > sent + 2 * PER_SECOND, 60, "the head to go on alone")
        resize_folder(node_name(), small_volume, "200m")
        fleet.wait(lambda: in_sync(fleet) and standby_metric(fleet) == 1, 360, "the standby to follow again")
        fleet.wait(lambda: fleet.is_true("brokercluster", "east", "StandbyFollows"), 60, "the condition")
        print(f"pauses in seconds: {crowd.progress()['pauses']}")  # what was measured
        assert_nothing_is_missing(crowd.verdict())
    finally:
        fleet.kubectl("delete", "pod", "traders", "--grace-period=0", "--force", "--ignore-not-found")
