"""The live job in a cluster: driver and executors as restricted pods, with files on a volume, and a killed driver.

The test writes into the volume's folder itself, so the node must be this machine.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.images import image
from tests.sparkjobs.traces import FLEET, disturbed, expect, now_us, read_latest, trace, write_files

from plimsoll.sparkjobs.launch.manifests import all_objects
from plimsoll.sparkjobs.launch.spec import SparkLaunch
from plimsoll.telemetry.snapshot import TelemetrySnapshot

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.images("spark"),
]


@pytest.fixture
def api() -> Any:
    import kubernetes

    return kubernetes.config.new_client_from_config()


@pytest.fixture
def volume() -> Iterator[Path]:
    """A folder of the node to which pods of the jobs' group may write."""
    path = Path(tempfile.mkdtemp(prefix="plimsoll-spark-", dir="/var/tmp"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def launch(api: Any, volume: Path) -> Iterator[SparkLaunch]:
    """A namespace of the pod security level `restricted`, with a claim on the folder."""
    from kubernetes import client
    from kubernetes.utils import create_from_dict

    name = f"plimsoll-test-{volume.name.rsplit('-', 1)[1].lower().replace('_', 'x')}"
    nodes: Any = client.CoreV1Api(api).list_node()
    node = nodes.items[0].metadata.labels["kubernetes.io/hostname"]
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    for item in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": enforced}},
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": name,
                "persistentVolumeReclaimPolicy": "Retain", "local": {"path": str(volume)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
                ]}},
            },
        },
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": name,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ):  # fmt: skip
        create_from_dict(api, item)
    try:
        # ReadWriteMany: there are no collectors, so pods must not require a node with a collector.
        yield SparkLaunch(
            fleet=FLEET, namespace=name, image=image("spark"), claim="data", access="ReadWriteMany", trigger_seconds=2,
            lag_seconds=2,
        )  # fmt: skip
    finally:
        client.CoreV1Api(api).delete_namespace(name)
        client.CoreV1Api(api).delete_persistent_volume(name)


def wait_for(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.25)
    raise AssertionError(f"waited {seconds} s for {what}")


def test_driver_and_executors_as_restricted_pods_count_every_row_once(api: Any, volume: Path, launch: SparkLaunch):
    from kubernetes import client
    from kubernetes.utils import create_from_dict

    core = client.CoreV1Api(api)

    def pods(what: str) -> list[Any]:
        return core.list_namespaced_pod(launch.namespace, label_selector=what).items

    def diagnosis() -> str:
        """States, logs and events of the pods, for the message of a failed test."""
        lines = []
        for pod in pods(""):
            lines.append(f"{pod.metadata.name}: {pod.status.phase} {pod.status.container_statuses}")
            try:
                lines.append(core.read_namespaced_pod_log(pod.metadata.name, launch.namespace, tail_lines=30))
            except client.ApiException as error:
                lines.append(f"no log: {error.reason}")
        lines += [f"{e.reason}: {e.message}" for e in core.list_namespaced_event(launch.namespace).items]
        return "\n".join(lines)

    def counted(rows: int, after: int = -1) -> TelemetrySnapshot | None:
        latest = read_latest(volume)
        return latest if latest and latest.counts.rows_in >= rows and latest.batch > after else None

    rows = disturbed(1, trace(1, now_us(), seconds=60))
    write_files(volume, rows, 2)
    expect(volume, {"c0": ["c0-e0"]})
    for path in volume.rglob("*"):  # files of collectors belong to the group of the pods; these belong to the test
        path.chmod(0o777 if path.is_dir() else 0o666)
    began = time.monotonic()
    for item in all_objects(launch):
        create_from_dict(api, item)
    try:
        first = wait_for(lambda: counted(len(rows)), 400, "the first snapshot")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{diagnosis()}") from error
    print(f"first snapshot after {time.monotonic() - began:.1f} s")
    executors = [pod for pod in pods("spark-role=executor") if pod.status.phase == "Running"]
    assert len(executors) == launch.executors
    (driver,) = pods("plimsoll.dev/part=driver")
    assert {owner.uid for pod in executors for owner in pod.metadata.owner_references} == {driver.metadata.uid}

    # The driver is deleted; its successor counts the rows that arrive in between, once.
    core.delete_namespaced_pod(driver.metadata.name, launch.namespace, grace_period_seconds=0)
    deleted = time.monotonic()
    more = disturbed(2, trace(2, now_us(), seconds=30))
    for path in write_files(volume, more, 1, "meanwhile"):
        path.chmod(0o666)
    try:
        last = wait_for(lambda: counted(len(rows) + len(more), first.batch), 400, "a snapshot of the next driver")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{diagnosis()}") from error
    print(f"next snapshot {time.monotonic() - deleted:.1f} s after the driver was deleted")
    assert last.counts.rows_in == len(rows) + len(more)
    assert last.counts.unaccounted == 0
    assert last.run_us == first.run_us
