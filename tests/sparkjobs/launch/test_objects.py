"""Commands and objects that start jobs: restricted, with few rights, one driver, and only fields of the operators."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.sparkjobs.launch.operator_fields import object_faults

from plimsoll.sparkjobs.__main__ import JOBS
from plimsoll.sparkjobs.launch import executors, local_process, manifests
from plimsoll.sparkjobs.launch.operator_manifests import apache_application, kubeflow_application, live_submission
from plimsoll.sparkjobs.launch.spec import DATA_PATH, SparkLaunch, live_arguments

LAUNCH = SparkLaunch(fleet="tide", namespace="prod", image="plimsoll/spark:1", claim="telemetry", executors=3)


def pods() -> list[dict[str, Any]]:
    """The specs of all rendered pods."""
    found = [executors.executor_pod(LAUNCH)["spec"]]
    for item in manifests.all_objects(LAUNCH):
        if item["kind"] == "Deployment":
            found.append(item["spec"]["template"]["spec"])
        if item["kind"] == "CronJob":
            found.append(item["spec"]["jobTemplate"]["spec"]["template"]["spec"])
    for item in (kubeflow_application(live_submission(LAUNCH)), apache_application(live_submission(LAUNCH))):
        spec = item["spec"]
        found += [spec[name]["template"]["spec"] for name in ("driver", "executor") if name in spec]
        found += [spec[name]["podTemplateSpec"]["spec"] for name in ("driverSpec", "executorSpec") if name in spec]
    return found


@pytest.mark.parametrize("pod", pods())
def test_every_pod_passes_the_restricted_level(pod: dict[str, Any]):
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 185
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["readOnlyRootFilesystem"] is True
        assert "tmp" in {mount["name"] for mount in container["volumeMounts"]}
    assert not any("hostPath" in volume for volume in pod["volumes"])


def test_only_drivers_have_a_token_and_it_has_rights_to_pods_only():
    tokens = [pod["automountServiceAccountToken"] for pod in pods()]
    assert tokens.count(True) == 3  # the Deployment, and the drivers of the two operators
    role = next(item for item in manifests.all_objects(LAUNCH) if item["kind"] == "Role")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": executors.POD_VERBS}]
    settings = executors.driver_settings(LAUNCH)
    assert settings["spark.kubernetes.executor.disableConfigMap"] == "true"
    assert settings["spark.kubernetes.driver.ownPersistentVolumeClaim"] == "false"
    assert settings["spark.kubernetes.driver.service.deleteOnTermination"] == "false"


def test_there_is_one_driver_and_runs_of_a_job_do_not_overlap():
    everything = manifests.all_objects(LAUNCH)
    (live,) = [item for item in everything if item["kind"] == "Deployment"]
    assert (live["spec"]["replicas"], live["spec"]["strategy"]) == (1, {"type": "Recreate"})
    crons = [item for item in everything if item["kind"] == "CronJob"]
    assert {item["spec"]["concurrencyPolicy"] for item in crons} == {"Forbid"}
    assert {item["metadata"]["name"] for item in crons} == {
        "tide-spark-oracle", "tide-spark-compact", "tide-spark-history", "tide-spark-accuracy"
    }  # fmt: skip


def test_names_of_cron_jobs_leave_room_for_the_time_of_a_run():
    long = SparkLaunch(fleet="f" * 63, namespace="prod", image="i", claim="c")
    names = [item["metadata"]["name"] for item in manifests.cron_jobs(long)]
    assert max(map(len, names)) <= 52
    assert len(set(names)) == len(manifests.SCHEDULES)


def test_a_deployment_selects_its_driver_and_not_executors():
    (live,) = [item for item in manifests.all_objects(LAUNCH) if item["kind"] == "Deployment"]
    selected = live["spec"]["selector"]["matchLabels"].items()
    assert selected <= live["spec"]["template"]["metadata"]["labels"].items()
    assert not selected <= executors.executor_pod(LAUNCH)["metadata"]["labels"].items()


def test_the_driver_gets_its_address_and_runs_the_live_job():
    (live,) = [item for item in manifests.all_objects(LAUNCH) if item["kind"] == "Deployment"]
    (container,) = live["spec"]["template"]["spec"]["containers"]
    assert container["args"][0] == "driver"
    assert container["args"][-11:] == ["/opt/plimsoll/job.py", *live_arguments(LAUNCH), "--wait", "60"]
    assert {one["name"] for one in container["env"]} == {"POD_NAME", "SPARK_DRIVER_BIND_ADDRESS"}
    conf = dict(part.split("=", 1) for flag, part in zip(container["args"], container["args"][1:], strict=False)
                if flag == "--conf")  # fmt: skip
    assert conf == executors.driver_settings(LAUNCH)
    assert conf["spark.executor.instances"] == "3"
    # With it, Spark would mount its local folders over /tmp of the executors, where there is a volume already.
    assert "spark.local.dir" not in conf
    (template,) = [item for item in manifests.all_objects(LAUNCH) if item["kind"] == "ConfigMap"]
    assert msgspec.json.decode(template["data"]["executor.yaml"]) == executors.executor_pod(LAUNCH)


def test_a_read_write_once_volume_keeps_pods_on_the_collectors_node():
    shared = SparkLaunch(fleet="tide", namespace="prod", image="i", claim="telemetry", access="ReadWriteMany")
    (live,) = [item for item in manifests.all_objects(shared) if item["kind"] == "Deployment"]
    assert "affinity" not in live["spec"]["template"]["spec"]
    for pod in pods():
        (rule,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert rule["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == "collector"


def test_without_a_shared_volume_live_is_a_container_of_the_collectors_pod():
    alone = SparkLaunch(fleet="tide", namespace="prod", image="plimsoll/spark:1")
    with pytest.raises(ValueError, match="name the claim"):
        manifests.all_objects(alone)
    container = manifests.live_sidecar(alone, "spool")
    assert container["args"][:-2] == ["python3", "-m", "plimsoll.sparkjobs", *live_arguments(alone)]
    assert container["livenessProbe"]["exec"]["command"][-2:] == ["plimsoll.sparkjobs.launch.liveness_probe", DATA_PATH]
    assert {"name": "spool", "mountPath": DATA_PATH} in container["volumeMounts"]


def test_objects_have_the_owner_reference():
    owner = {"apiVersion": "plimsoll.dev/v1", "kind": "BrokerFleet", "name": "tide", "uid": "u", "controller": True}
    owned = SparkLaunch(fleet="tide", namespace="prod", image="i", claim="c", owner=owner)
    everything = [
        *manifests.all_objects(owned),
        kubeflow_application(live_submission(owned)),
        apache_application(live_submission(owned)),
    ]
    assert all(item["metadata"]["ownerReferences"] == [owner] for item in everything)
    assert all("ownerReferences" not in item["metadata"] for item in manifests.all_objects(LAUNCH))


def test_cron_jobs_run_existing_jobs():
    for item in manifests.all_objects(LAUNCH):
        if item["kind"] == "CronJob":
            (container,) = item["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
            assert container["args"][:3] == ["python3", "-m", "plimsoll.sparkjobs"]
            assert container["args"][3] in JOBS


@pytest.mark.parametrize("render", [kubeflow_application, apache_application])
def test_rendered_objects_have_only_fields_that_the_operator_knows(render: Any):
    item = render(live_submission(LAUNCH))
    assert object_faults(item) == []
    spoiled = copy.deepcopy(item)
    spoiled["spec"]["sparkconf"] = {}
    assert object_faults(spoiled) == ["spec.sparkconf: is not a field"]
    assert object_faults({**item, "kind": "SparkJob"}) != []


@pytest.mark.parametrize(
    ("place", "value", "fault"),
    [
        (("driver", "cores"), "1", "spec.driver.cores: must be number, found '1'"),
        (("type",), "Ruby", "spec.type: 'Ruby' is not one of Java, Python, R, Scala"),
        (("arguments",), [1], "spec.arguments: must be list of text, found [1]"),
        (("sparkConf", "spark.ui.enabled"), True, "must be map of text"),
        (("driver",), [], "spec.driver: must be an object"),
        (("mainApplicationFile",), None, "spec.mainApplicationFile: is required"),
        (("executor", "instances"), True, "spec.executor.instances: must be number, found True"),
    ],
)
def test_a_fault_has_its_path(place: tuple[str, ...], value: Any, fault: str):
    item = kubeflow_application(live_submission(LAUNCH))
    inner = item["spec"]
    for name in place[:-1]:
        inner = inner[name]
    if value is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    assert any(fault in found for found in object_faults(item))


def test_a_local_process_has_its_command_and_a_clean_environment(tmp_path: Path):
    command = local_process.live_command(LAUNCH, tmp_path, "python")
    assert command == ["python", "-m", "plimsoll.sparkjobs", *live_arguments(LAUNCH, str(tmp_path))]
    outer = {"PATH": os.environ["PATH"], "SPARK_HOME": "elsewhere", "PYSPARK_SUBMIT_ARGS": "--jars x", "AWS": "secret"}
    assert local_process.job_environment(outer, "python") == {
        "PATH": os.environ["PATH"], "TZ": "UTC", "PYSPARK_PYTHON": "python", "PYSPARK_DRIVER_PYTHON": "python",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
