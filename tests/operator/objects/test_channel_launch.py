"""The driver of channels with executors: who makes which pods, with which rights, and what keeps it from running."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.operator.dataset_world import dataset_world, pod_spec, settled
from tests.operator.world import World
from tests.sparkjobs.launch.operator_fields import object_faults

from plimsoll.core.spec import SourceDocument, parse
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.channel_launch import driver_memory_mb, launch_obstacle
from plimsoll.operator.objects.dataset_pods import TMP_FOLDER
from plimsoll.operator.reconcile.fleet import _further_problems
from plimsoll.operator.settings import OperatorSettings
from plimsoll.sparkjobs.launch.executors import TEMPLATE_HASH
from plimsoll.sparkjobs.launch.spec import SUBMIT_VARIABLE

NAME = "stocks-channels"
SETTINGS = OperatorSettings(spark=True, spark_image="plimsoll/spark:1", pull_secrets=("here",))
OPERATORS = ("SparkOperator", "SparkApplication")


def world(launcher: str, settings: OperatorSettings = SETTINGS, **datasets: Any) -> World:
    spark = {"launcher": launcher, "executors": 3}
    return dataset_world(settings, datasets={"volumeClaim": "records", "spark": spark, **datasets})


def test_a_standby_of_the_driver_is_a_fault_of_the_fleet():
    def found(*, is_wanted: bool) -> list[tuple[str, tuple[str | int, ...]]]:
        spec = {"datasets": {"spark": {"standbyDriver": is_wanted}}}
        content = {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "BrokerFleet",
            "metadata": {"name": "s"},
            "spec": spec,
        }
        return [(each.subject, each.path) for each in _further_problems(parse([SourceDocument(content)]))]

    assert found(is_wanted=True) == [("BrokerFleet/s", ("spec", "datasets", "spark", "standbyDriver"))]
    assert found(is_wanted=False) == []


def kinds(of: World) -> set[str]:
    """The kinds of objects that begin with the driver's name."""
    return {kind for kind, name in of.objects if name.startswith(NAME) and kind != "Pod"}


def executor(of: World) -> Object:
    found: Object = json.loads(of.objects["ConfigMap", f"{NAME}-executor"]["data"]["executor.yaml"])
    return found


def templates(item: Object) -> tuple[Object, Object]:
    """The pod templates of driver and executors of a SparkApplication."""
    spec = item["spec"]
    if "driver" in spec:
        return spec["driver"]["template"], spec["executor"]["template"]
    return spec["driverSpec"]["podTemplateSpec"], spec["executorSpec"]["podTemplateSpec"]


def probes(container: Object) -> Object:
    return {name: value for name, value in container.items() if name.endswith("Probe")}


def plain(container: Object) -> Object:
    """A container without its probes."""
    return {name: value for name, value in container.items() if not name.endswith("Probe")}


def test_by_itself_it_asks_for_no_rights():
    found = world("Process")
    assert kinds(found) == {"StatefulSet", "ConfigMap"}
    assert not pod_spec(found, NAME)["automountServiceAccountToken"]
    assert {names.CHANNEL_POLICY, names.EXECUTOR_POLICY}.isdisjoint(found.of("NetworkPolicy"))


def test_with_executors_it_is_the_same_pod_with_rights_to_theirs():
    found, alone = world("Kubernetes"), pod_spec(world("Process"), NAME)
    assert kinds(found) == {"StatefulSet", "ConfigMap", "ServiceAccount", "Role", "RoleBinding"}
    spec = pod_spec(found, NAME)
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == (NAME, True)
    (rule,) = found.objects["Role", NAME]["rules"]
    assert rule["resources"] == ["pods"]
    (container,), (before,) = spec["containers"], alone["containers"]
    environment = {each["name"]: each for each in container.pop("env")}
    mounts = {each["name"]: each for each in container.pop("volumeMounts")}
    assert "spark.executor.instances=3" in environment[SUBMIT_VARIABLE]["value"]
    assert mounts.pop("template")["readOnly"]
    assert mounts == {each["name"]: each for each in before.pop("volumeMounts")}
    assert probes(container) == {"livenessProbe": {**probes(before)["livenessProbe"], "initialDelaySeconds": 300}}, (
        "Spark starts executors once the driver's pod is ready, and so that must not wait for Spark"
    )
    assert plain(container) == plain(before), "command, ports and size stay"
    assert {"name": "template", "configMap": {"name": f"{NAME}-executor"}} in spec["volumes"]


def test_executors_mount_the_volume_to_read_and_nothing_else():
    for claim in ("ReadWriteOnce", "ReadWriteMany"):
        found = executor(world("Kubernetes", volumeAccess=claim, storeSecret="store"))
        (container,) = found["spec"]["containers"]
        assert {each["name"]: each.get("readOnly", False) for each in container["volumeMounts"]} == {
            "tmp": False, "data": True
        }  # fmt: skip
        assert {"name": "data", "persistentVolumeClaim": {"claimName": "records"}} in found["spec"]["volumes"]
        assert "secret" not in json.dumps(found).lower()
        assert not found["spec"]["automountServiceAccountToken"]
        assert names.DATASET_POD not in found["metadata"]["labels"], "it has no figures, and no way to brokers"
        assert ("affinity" in found["spec"]) is (claim == "ReadWriteOnce")
        if claim == "ReadWriteOnce":
            (term,) = found["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            assert term["labelSelector"]["matchExpressions"] == [{"key": names.DATASET_POD, "operator": "Exists"}]


def test_copies_from_stores_are_where_executors_read_them():
    def scratch(of: World) -> str:
        config = json.loads(of.objects["ConfigMap", f"{NAME}-config"]["data"]["config.json"])
        return str(config["scratch"])

    assert scratch(world("Process")) == f"{TMP_FOLDER}/_copies"
    for launcher in ("Kubernetes", *OPERATORS):
        assert scratch(world(launcher, ledgers="s3a://bucket/channels")) == "/data/channels/_copies"


def test_driver_and_executors_reach_each_other_and_executors_no_one_else():
    found = world("Kubernetes")
    driver = {"podSelector": {"matchLabels": {names.FLEET: "stocks", "app.kubernetes.io/name": "plimsoll-channels"}}}
    labels = executor(found)["metadata"]["labels"].items()
    policy = found.objects["NetworkPolicy", names.EXECUTOR_POLICY]["spec"]
    executors = {"podSelector": policy["podSelector"]}
    assert policy["podSelector"]["matchLabels"].items() <= labels
    assert policy["ingress"] == [{"from": [driver, executors]}]
    assert policy["egress"][0] == {"to": [driver, executors]}
    assert all({port["port"] for port in rule["ports"]} == {53, 5353} for rule in policy["egress"][1:])
    assert found.objects["NetworkPolicy", names.CHANNEL_POLICY]["spec"] == {
        **driver, "ingress": [{"from": [executors]}], "egress": [{}], "policyTypes": ["Ingress", "Egress"]
    }  # fmt: skip


@pytest.mark.parametrize("launcher", OPERATORS)
def test_an_operator_for_spark_is_given_the_same_driver(launcher: str):
    found = world(launcher)
    assert kinds(found) == {"ConfigMap", "ServiceAccount", "Role", "RoleBinding"}
    (item,) = found.desired().applications
    assert object_faults(item) == []
    assert (item["metadata"]["name"], item["metadata"]["ownerReferences"][0]["kind"]) == (NAME, "BrokerFleet")
    driver, executor_template = templates(item)
    alone = world("Process").objects["StatefulSet", NAME]["spec"]["template"]
    assert driver["metadata"]["labels"] == alone["metadata"]["labels"], "status, metrics and policies find it by these"
    assert driver["metadata"]["annotations"].keys() == alone["metadata"]["annotations"].keys() == {names.KEY}
    (container,), (before,) = driver["spec"]["containers"], alone["spec"]["containers"]
    for field in ("volumeMounts", "ports", "securityContext"):
        assert container[field] == before[field]
    assert probes(container).keys() == {"livenessProbe"}
    assert container["name"] == "spark-kubernetes-driver"
    assert {"image", "command", "resources"}.isdisjoint(container)
    assert driver["spec"]["volumes"] == alone["spec"]["volumes"]
    assert driver["spec"]["terminationGracePeriodSeconds"] == 30
    told = json.dumps(item["spec"])
    assert "local:///opt/plimsoll/channels.py" in told
    assert "/etc/plimsoll/config/config.json" in told
    assert "plimsoll-channel-keys" not in json.dumps(executor_template)
    assert item["spec"]["sparkConf"]["spark.kubernetes.container.image.pullSecrets"] == "here"


def test_an_operator_for_spark_passes_the_store_on_to_the_driver_alone():
    (item,) = world("SparkOperator", storeSecret="store").desired().applications
    driver, executor_template = templates(item)
    assert driver["spec"]["containers"][0]["envFrom"] == [{"secretRef": {"name": "store"}}]
    assert "envFrom" not in executor_template["spec"]["containers"][0]


def test_a_driver_whose_pod_others_have_made_is_told_of_changes():
    found = world("SparkOperator")
    labels = found.desired().applications[0]["spec"]["driver"]["labels"]
    metadata = {"name": f"{NAME}-driver", "labels": labels}
    found.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": "Running"}})
    settled(found)
    before = found.objects["Pod", f"{NAME}-driver"]["metadata"]["annotations"][names.CONFIG_HASH]
    found.delete(("Channel", "floods"))
    settled(found)
    after = found.objects["Pod", f"{NAME}-driver"]["metadata"]["annotations"][names.CONFIG_HASH]
    assert before != after, "the kubelet updates the mounted file at once"


def test_another_launcher_takes_the_place_of_the_one_before():
    found = world("Kubernetes")
    for launcher, there in (("SparkOperator", False), ("Process", True)):
        found.spec("BrokerFleet", "stocks", datasets={"volumeClaim": "records", "spark": {"launcher": launcher}})
        settled(found)
        assert (("StatefulSet", NAME) in found.objects) is there
        assert bool(found.desired().applications) is not there
    assert kinds(found) == {"StatefulSet", "ConfigMap"}
    assert ("ConfigMap", f"{NAME}-executor") not in found.objects


def test_a_changed_template_replaces_the_driver():
    found = world("Kubernetes")
    before = found.objects["StatefulSet", NAME]["spec"]["template"]["metadata"]["annotations"]
    found.spec("BrokerFleet", "stocks", datasets={"volumeClaim": "other", "spark": {"launcher": "Kubernetes"}})
    settled(found)
    after = found.objects["StatefulSet", NAME]["spec"]["template"]["metadata"]["annotations"]
    assert before[TEMPLATE_HASH] != after[TEMPLATE_HASH]


@pytest.mark.parametrize("launcher", ["Kubernetes", *OPERATORS])
@pytest.mark.parametrize(
    ("settings", "datasets", "reason", "remedy"),
    [
        (replace(SETTINGS, spark=False), {}, "NotAllowed", "rbac.spark=true"),
        (SETTINGS, {"volumeClaim": "", "ledgers": "s3a://b/c"}, "NoDatasetVolume", "datasets.volumeClaim"),
    ],
)
def test_what_keeps_it_from_running_is_said(
    launcher: str, settings: OperatorSettings, datasets: Object, reason: str, remedy: str
):
    found = world(launcher, settings, **datasets)
    assert kinds(found) == set()
    assert found.desired().applications == ()
    told = launch_obstacle(found.desired().resources, settings)
    assert told is not None
    assert (told.reason, remedy in told.message) == (reason, True)
    assert launch_obstacle(world("Process", settings, **datasets).desired().resources, settings) is None


def test_its_memory_grows_by_four_channels_at_once():
    assert [driver_memory_mb(count) for count in (0, 1, 4, 5, 8, 9)] == [2300, 2300, 2300, 2780, 2780, 3260]
    found = world("Process")
    (container,) = pod_spec(found, NAME)["containers"]
    assert container["resources"]["limits"]["memory"] == "2300Mi"
    more = found.objects["Channel", "fires"]
    for number in range(3):
        found.put({**more, "metadata": {"name": f"fires-{number}"}})
    settled(found)
    (container,) = pod_spec(found, NAME)["containers"]
    assert container["resources"] == {"requests": {"cpu": "250m", "memory": "2280Mi"}, "limits": {"memory": "2780Mi"}}
    (item,) = world("SparkOperator").desired().applications
    driver = item["spec"]["driver"]
    assert (driver["memory"], driver["memoryOverhead"]) == ("900m", "1400m"), "heap and the rest are the pod's memory"


def test_its_image_is_that_of_the_channels_or_else_of_the_jobs():
    def image(**fleet: Any) -> str:
        found = dataset_world(SETTINGS, **fleet)
        return str(pod_spec(found, NAME)["containers"][0]["image"])

    jobs = {"spark": {"launcher": "None", "image": "jobs:1"}}
    own = {"volumeClaim": "records", "spark": {"image": "own:1"}}
    assert image() == "plimsoll/spark:1"
    assert image(telemetry=jobs) == "jobs:1"
    assert image(telemetry=jobs, datasets=own) == "own:1"
