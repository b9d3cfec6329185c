"""A feed and channels in pods: recorder, driver and an edge are killed under load, and each result comes once.

The tests of this module continue one another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.e2e.cluster import FILES, ROOT, Cluster, Object, manifest, script, script_pod
from tests.e2e.volumes import node_volume

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.e2e,
    pytest.mark.images("broker", "operator", "collector", "spark"),
    pytest.mark.timeout(1800),
]

READER = Path(__file__).with_name("channel_reader.py")
RECORDER, DRIVER = "quotes-recorder-reports", "quotes-channels"
QUERY = "SELECT p.kind, r.number FROM parameters p JOIN r ON r.kind = p.kind"
START_SECONDS = 300.0
RESULTS_BETWEEN_KILLS = 60


def channel(name: str, query: str) -> Object:
    parameters, feeds = [{"name": "kind", "type": "String"}], [{"name": "r", "feed": "reports"}]
    return manifest("Channel", name, parameters=parameters, feeds=feeds, query=query)


def feed() -> Object:
    columns = [{"name": "kind", "type": "String"}, {"name": "number", "type": "Integer"}]
    schema = {"columns": columns, "unknownAttributes": "Drop"}
    return manifest("Feed", "reports", subscription="[class,=,'REPORT']", commitInterval="1s", schema=schema)


@pytest.fixture(scope="module")
def volume(installed: Cluster) -> Iterator[str]:
    with node_volume(f"{installed.namespace}-data") as name:
        spec = {
            "accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": {"storage": "1Gi"}},
        }  # fmt: skip
        installed.apply(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "records"}, "spec": spec}
        )
        yield name


@pytest.fixture(scope="module")
def fleet(installed: Cluster, volume: str) -> Cluster:
    """The quick start's fleet, first without the volume that feeds and channels need."""
    objects = list(yaml.safe_load_all((ROOT / "examples" / "kubernetes" / "quickstart.yaml").read_text()))
    installed.apply(*objects, feed(), channel("kinds", QUERY), channel("wrong", QUERY.replace("r.number", "r.nubmer")))
    installed.wait(lambda: installed.is_true("brokercluster", "east", "Ready"), 180, "the cluster to be ready")
    return installed


def reason(fleet: Cluster, kind: str, name: str, type_: str) -> str:
    return str(fleet.condition(kind, name, type_).get("reason", ""))


def patch_datasets(fleet: Cluster, **datasets: object) -> None:
    fleet.kubectl("patch", "brokerfleet", "quotes", "--type=merge", "-p", json.dumps({"spec": {"datasets": datasets}}))


class ChannelReaderPod:
    """A pod that subscribes to the channel, publishes reports, and judges the results.

    `between_kills`: how many results it waits for behind each kill.
    """

    def __init__(self, fleet: Cluster, name: str, between_kills: int = RESULTS_BETWEEN_KILLS) -> None:
        self._fleet, self._name, self._between_kills = fleet, name, between_kills
        fleet.apply(script(name, READER), script_pod(name, READER, {"CHANNEL": "kinds"}, client="traders"))
        fleet.kubectl("wait", f"pod/{name}", "--for=condition=Ready", "--timeout=120s", seconds=150)
        fleet.wait(lambda: fleet.get("channel", "kinds")["status"].get("subscriptions") == 1, 120, "the subscription")
        self._touch("go")
        self.wait_for_results(1)

    def _touch(self, file: str) -> None:
        self._fleet.kubectl("exec", self._name, "--", "touch", f"{FILES}/{file}")

    def _read(self, file: str) -> Object:
        found: Object = json.loads(self._fleet.kubectl("exec", self._name, "--", "cat", f"{FILES}/{file}"))
        return found

    def kill(self, victim: str) -> None:
        """Kill a pod, and wait for results of what is published behind that."""
        self._fleet.kubectl("delete", "pod", victim, "--grace-period=0", "--force")
        began = time.monotonic()
        self.wait_for_results(self._between_kills)
        print(f"{victim} was killed; {self._between_kills} results later: {time.monotonic() - began:.0f} s")

    def wait_for_results(self, more: int) -> None:
        """Wait for results of publications that are sent from now on."""
        now = self._read("progress.json")
        wanted = max(now["results"], now["sent"] // 2) + more
        self._fleet.wait(
            lambda: self._read("progress.json")["results"] >= wanted, START_SECONDS, f"{more} more results"
        )

    def judge(self, least: int) -> None:
        """End it: each result that was due has come once, and at least `least` were due."""
        self._touch("stop")
        found = self._fleet.wait(lambda: self._read("verdict.json"), 300, "the verdict")
        print(found)
        assert (found["missing"], found["wrong"], found["repeated"], found["gaps"]) == ([], [], 0, 0)
        assert found["due"] >= least
        self._fleet.kubectl("delete", "pod", self._name)


def test_without_a_volume_both_say_what_to_do(fleet: Cluster):
    fleet.wait(lambda: reason(fleet, "feed", "reports", "Recording") == "NoDatasetVolume", 60, "the feed's condition")
    fleet.wait(lambda: reason(fleet, "channel", "kinds", "Running") == "NoDatasetVolume", 60, "the channel's condition")


def test_with_one_the_feed_records_and_each_query_has_its_verdict(fleet: Cluster):
    patch_datasets(fleet, volumeClaim="records")
    fleet.wait(lambda: fleet.is_true("feed", "reports", "Recording"), START_SECONDS, "the recorder to be attached")
    fleet.wait(lambda: fleet.is_true("channel", "kinds", "Running"), START_SECONDS, "the driver to run the channel")
    fleet.wait(lambda: reason(fleet, "channel", "wrong", "Running") == "QueryInvalid", 60, "the wrong query")
    message = fleet.condition("channel", "wrong", "Running")["message"]
    assert message.startswith("line 1, column 16: [UNRESOLVED_COLUMN.WITH_SUGGESTION]"), message
    columns = fleet.kubectl("get", "fd,ch").splitlines()
    assert columns[0].split()[:4] == ["NAME", "RECORDING", "REASON", "ROWS"]


def test_each_result_comes_once_while_pods_are_killed(fleet: Cluster):
    reader, victims = ChannelReaderPod(fleet, "reader"), (f"{RECORDER}-0", f"{DRIVER}-0", "edge-1-0", f"{RECORDER}-0")
    for victim in victims:
        reader.kill(victim)
    reader.judge(len(victims) * RESULTS_BETWEEN_KILLS)


def test_all_that_came_in_is_accounted_for(fleet: Cluster):
    def settled() -> bool:
        rows = fleet.get("feed", "reports")["status"]["received"]
        status = fleet.get("channel", "kinds")["status"]
        sums = status["rowsUsed"] + status["lateRows"] + status["invalidRows"]
        return bool(status["rowsIn"] == sums == rows > 0)

    fleet.wait(settled, 90, "status to have all rows")
    status = fleet.get("channel", "kinds")["status"]
    assert status["results"] == status["acceptedResults"]
    assert status["pod"] == f"{DRIVER}-0"


def executors(fleet: Cluster) -> list[str]:
    """The pods of executors that run."""
    found: Object = json.loads(fleet.kubectl("get", "pods", "-l", "spark-role=executor", "-o", "json"))
    return [pod["metadata"]["name"] for pod in found["items"] if pod["status"]["phase"] == "Running"]


def test_executors_are_for_an_operator_with_rights_to_run_spark(fleet: Cluster):
    patch_datasets(fleet, spark={"launcher": "Kubernetes", "executors": 1})
    fleet.wait(lambda: reason(fleet, "channel", "kinds", "Running") == "NotAllowed", 60, "the condition to say so")
    chart = str(ROOT / "helm" / "plimsoll")
    fleet.helm("upgrade", "plimsoll", chart, "--reuse-values", "--set", "rbac.spark=true")
    fleet.wait(lambda: fleet.is_true("channel", "kinds", "Running"), START_SECONDS, "the driver to run the channel")
    fleet.wait(lambda: len(executors(fleet)) == 1, START_SECONDS, "its executor")


def test_on_executors_each_result_comes_once_as_well(fleet: Cluster):
    reader = ChannelReaderPod(fleet, "second-reader")
    (executor,) = executors(fleet)
    for victim in (executor, f"{DRIVER}-0"):
        reader.kill(victim)
    reader.judge(2 * RESULTS_BETWEEN_KILLS)


def test_a_channel_and_a_feed_that_are_deleted_take_their_pods_with_them(fleet: Cluster):
    fleet.kubectl("delete", "channel", "kinds", "wrong")
    fleet.kubectl("delete", "feed", "reports")
    fleet.wait(
        lambda: {RECORDER, DRIVER}.isdisjoint(each["metadata"]["name"] for each in fleet.get("statefulset")),
        60, "their StatefulSets to go",
    )  # fmt: skip
    fleet.wait(lambda: not executors(fleet), 90, "the executors to go with their driver")
    assert fleet.get("persistentvolumeclaim", "records")["status"]["phase"] == "Bound", "what they recorded stays"
