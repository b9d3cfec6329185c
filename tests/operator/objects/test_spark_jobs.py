"""Spark for a fleet on Kubernetes: its objects, the conditions for missing parts, and when a driver is restarted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.operator.objects.test_collectors import settled
from tests.operator.world import World
from tests.sparkjobs.launch.operator_fields import object_faults

from plimsoll.operator import names, status
from plimsoll.operator.names import Object
from plimsoll.operator.objects import spark_jobs
from plimsoll.operator.objects.manifest import owner
from plimsoll.operator.objects.spark_jobs import LiveJobMonitor
from plimsoll.operator.settings import OperatorSettings
from plimsoll.sparkjobs.launch.live_job_health import DEAD_SECONDS, START_SECONDS
from plimsoll.telemetry.client.snapshot_choice import ChosenSnapshot
from plimsoll.telemetry.client.snapshot_poller import PollResult
from plimsoll.telemetry.snapshot import ReportCounts, SnapshotSummary, TelemetrySnapshot

SETTINGS = OperatorSettings(spark=True, spark_image="plimsoll/spark:1")
COLLECTORS = {"replicas": 1, "interval": "5s", "volumeClaim": "data"}
S = 1_000_000
FOLD = TelemetrySnapshot(
    source="fold", fleet="stocks", run_us=1, batch=1, window_end_us=1, written_us=1, windows_seconds=[5],
    seen_seconds=5, seen=4, expected=4, counts=ReportCounts(), clusters={},
)  # fmt: skip


def world(collectors: Object | None = None, **asked: Any) -> World:
    found = World(settings=SETTINGS)
    found.spec("BrokerFleet", "stocks", telemetry={"collectors": collectors or COLLECTORS, "spark": asked})
    settled(found)
    return found


def metadata(of: World) -> Object:
    return {"namespace": "ns", "ownerReferences": [owner(of.objects["BrokerFleet", "stocks"])]}


def made(of: World) -> set[tuple[str, str]]:
    return {key for key in of.objects if key[1].startswith("stocks-spark")}


CRONS = {("CronJob", f"stocks-spark-{job}") for job in ("oracle", "compact", "history", "accuracy")}
ACCOUNT = {(kind, "stocks-spark") for kind in ("ServiceAccount", "Role", "RoleBinding")}
DRIVER = {("Deployment", "stocks-spark-live"), ("ConfigMap", "stocks-spark-executor")}


def test_naming_spark_is_enough():
    found = world()
    assert made(found) == CRONS | ACCOUNT | DRIVER
    pod = found.objects["Deployment", "stocks-spark-live"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == "plimsoll/spark:1"
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "data"}} in pod["volumes"]
    assert container["args"][container["args"].index("--lag") + 1] == "5"
    assert all(item["metadata"]["ownerReferences"] for key, item in found.objects.items() if key in made(found))


def test_all_pods_of_a_fleet_pull_with_the_operators_secrets():
    found = world()
    found.settings = replace(found.settings, pull_secrets=("here", "there"))
    found.settle()
    kinds = {"StatefulSet", "Deployment", "CronJob"}
    pods = [str(item["spec"]) for (kind, _), item in found.objects.items() if kind in kinds]
    assert len(pods) > 5
    assert all("'imagePullSecrets': [{'name': 'here'}, {'name': 'there'}]" in pod for pod in pods)
    driver = found.objects["Deployment", "stocks-spark-live"]["spec"]["template"]["spec"]["containers"][0]
    assert "spark.kubernetes.container.image.pullSecrets=here,there" in driver["args"]


def test_all_its_pods_leave_a_lost_node_as_soon_as_brokers_do():
    found = world({**COLLECTORS, "volumeAccess": "ReadWriteMany"})
    executor = json.loads(found.objects["ConfigMap", "stocks-spark-executor"]["data"]["executor.yaml"])
    jobs = [found.objects[key]["spec"]["jobTemplate"]["spec"]["template"] for key in sorted(CRONS)]
    driver = found.objects["Deployment", "stocks-spark-live"]["spec"]["template"]
    for pod in (driver, executor, *jobs):
        assert {each["tolerationSeconds"] for each in pod["spec"]["tolerations"]} == {10}


def test_what_is_said_of_it_reaches_its_pods():
    found = world({**COLLECTORS, "volumeAccess": "ReadWriteMany"}, image="own:2", executors=5, trigger="3s")
    pod = found.objects["Deployment", "stocks-spark-live"]["spec"]["template"]["spec"]
    assert "affinity" not in pod
    arguments = pod["containers"][0]["args"]
    assert pod["containers"][0]["image"] == "own:2"
    assert "spark.executor.instances=5" in arguments
    assert arguments[arguments.index("--trigger") + 1] == "3"


def test_a_fleet_that_does_not_ask_has_none_and_one_that_asks_no_more_keeps_none():
    found = world()
    found.spec("BrokerFleet", "stocks", telemetry={"collectors": COLLECTORS})
    settled(found)
    assert made(found) == set()
    assert judged(found, None) is None


def test_beside_the_collector_it_is_a_container_of_the_same_pod():
    found = world({"replicas": 1}, launcher="Process")
    assert made(found) == set()
    pod = found.objects["StatefulSet", "stocks-telemetry"]["spec"]["template"]["spec"]
    found_names = [each["name"] for each in pod["containers"]]
    assert found_names == ["collector", "spark-live"]
    assert {"name": "spark-live", "emptyDir": {}} in pod["volumes"]
    assert {"name": "data", "emptyDir": {}} in pod["volumes"]


@pytest.mark.parametrize("launcher", ["SparkOperator", "SparkApplication"])
def test_another_operator_is_asked_with_an_object_that_it_knows(launcher: str):
    found = world(launcher=launcher)
    assert made(found) == CRONS | ACCOUNT
    application = spark_jobs.spark_application(found.desired().resources, SETTINGS, metadata(found))
    assert application is not None
    assert object_faults(application) == []
    assert application["metadata"]["annotations"]["plimsoll.dev/desired-hash"]
    assert spark_jobs.spark_application(world().desired().resources, SETTINGS, metadata(found)) is None


@pytest.mark.parametrize(
    ("collectors", "asked", "settings", "reason"),
    [
        ({"replicas": 0}, {}, SETTINGS, "NoCollectors"),
        ({"replicas": 2}, {"launcher": "Process"}, SETTINGS, "ManyCollectors"),
        ({"replicas": 1}, {}, SETTINGS, "NoVolume"),
        (COLLECTORS, {}, replace(SETTINGS, spark=False), "NotAllowed"),
    ],
)
def test_what_keeps_it_from_starting_is_said(
    collectors: Object, asked: Object, settings: OperatorSettings, reason: str
):
    found = World(settings=settings)
    found.spec("BrokerFleet", "stocks", telemetry={"collectors": collectors, "spark": asked})
    settled(found)
    assert made(found) == set()
    said = LiveJobMonitor().status(found.desired().resources, settings, found.observed(), None, found.now)
    assert said is not None
    assert (said.condition.status, said.condition.reason) == ("False", reason)
    assert said.status["state"] == "Missing"


# -- its health


def driver(of: World, up: float = 1000.0, *, running: bool = True) -> None:
    """A pod of the driver, whose container has run for this long."""
    began = World()
    began.now = of.now - up
    state: Object = {"running": {"startedAt": began.time}} if running else {"waiting": {"reason": "ImagePullBackOff"}}
    labels = {"plimsoll.dev/fleet": "stocks", "plimsoll.dev/part": "driver"}
    of.put({
        "apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {"name": "stocks-spark-live-1", "labels": labels},
        "status": {"containerStatuses": [{"name": "driver", "restartCount": 1, "state": state}]},
    })  # fmt: skip


def known(of: World, age: float | None, seen: int = 4) -> PollResult:
    now = round(of.now * S)
    last = None if age is None else SnapshotSummary(now - round(age * S), seen, 4)
    return PollResult(now, ChosenSnapshot(FOLD, "Stale: as said"), 0, last)


def judged(of: World, found: PollResult | None, judge: LiveJobMonitor | None = None) -> spark_jobs.LiveJobStatus | None:
    return (judge or LiveJobMonitor()).status(of.desired().resources, SETTINGS, of.observed(), found, of.now)


@pytest.mark.parametrize(
    ("age", "seen", "state"),
    [(5.0, 4, "Fresh"), (5.0, 2, "Incomplete"), (60.0, 4, "Late"), (DEAD_SECONDS + 1, 4, "Dead"), (None, 0, "Dead")],
)
def test_it_is_judged_by_its_snapshot(age: float | None, seen: int, state: str):
    found = world()
    driver(found)
    said = judged(found, known(found, age, seen))
    assert said is not None
    assert (said.status["state"], said.status["driver"], said.status["restarts"]) == (state, "stocks-spark-live-1", 1)
    assert said.condition.status == ("True" if state == "Fresh" else "False")
    assert said.condition.reason == state


def test_the_driver_of_channels_is_not_taken_for_the_live_job():
    found = world()
    driver(found)
    labels = {"plimsoll.dev/fleet": "stocks", names.DATASET_POD: "stocks-channels"}
    found.now += 5
    found.put({
        "apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {"name": "stocks-channels-driver", "labels": labels},
        "status": {"containerStatuses": [{"name": "spark-kubernetes-driver", "state": {"running": {}}}]},
    })  # fmt: skip
    pod = spark_jobs.driver_of(found.observed(), "stocks")
    assert pod is not None
    assert pod["metadata"]["name"] == "stocks-spark-live-1"


def test_a_driver_that_does_not_run_says_why_and_is_left_to_its_kubelet():
    found, judge = world(), LiveJobMonitor()
    said = judged(found, None, judge)
    assert said is not None
    assert "no pod" in said.status["message"]
    driver(found, running=False)
    said = judged(found, known(found, 500.0), judge)
    assert said is not None
    assert (said.status["state"], said.condition.reason) == ("Starting", "Starting")
    assert "ImagePullBackOff" in said.status["message"]
    assert judge.restart_step(found.desired().resources, found.observed(), known(found, 500.0), found.now) is None


@pytest.mark.sweep
def test_a_driver_that_writes_nothing_is_restarted_ever_more_rarely():
    found, judge = world(), LiveJobMonitor()
    driver(found)
    waits: list[float] = []
    last = found.now
    while len(waits) < 4:
        step = judge.restart_step(found.desired().resources, found.observed(), known(found, 500.0), found.now)
        if step is not None:
            assert step.item["metadata"]["name"] == "stocks-spark-live-1"
            assert "500 s ago" in step.reason
            waits.append(found.now - last)
            last = found.now
        found.now += 10
    assert waits == [0, 30, 60, 3600 - 90]


def test_an_old_snapshot_restarts_no_driver():
    found = world()
    driver(found)
    resources, observed = found.desired().resources, found.observed()
    silent = PollResult(round(found.now * S), None, 1)
    old = replace(known(found, 500.0), at_us=round((found.now - 60) * S))
    for each in (None, silent, old, known(found, 5.0)):
        assert LiveJobMonitor().restart_step(resources, observed, each, found.now) is None
    driver(found, up=START_SECONDS - 1)
    assert LiveJobMonitor().restart_step(resources, found.observed(), known(found, 500.0), found.now) is None


def test_what_was_known_last_is_judged_while_collectors_are_silent():
    found, judge = world(), LiveJobMonitor()
    driver(found)
    judged(found, known(found, 5.0), judge)
    found.now += 60
    said = judged(found, PollResult(round(found.now * S), None, 1), judge)
    assert said is not None
    assert said.status["state"] == "Late"


def test_the_status_of_the_fleet_has_it_and_loses_it():
    found = world()
    driver(found)
    fleet = found.objects["BrokerFleet", "stocks"]

    def written(said: spark_jobs.LiveJobStatus | None, source: str = "Spark") -> Object:
        facts = status.StatusInputs(
            desired=found.desired(), observed=found.observed(), telemetry={"source": source}, spark=said,
            time=found.time,
        )  # fmt: skip
        (now,) = [each for item, each in status.fleet_statuses(facts) if item["kind"] == "BrokerFleet"]
        return now

    fleet["status"] = fresh = written(judged(found, known(found, 5.0)))
    assert fresh["telemetry"]["spark"]["state"] == "Fresh"
    conditions = {each["type"]: each for each in fresh["conditions"]}
    assert conditions["SparkReady"]["status"] == "True"
    assert conditions["LoadDataFresh"]["message"].endswith("clusters are compared by Spark's snapshot")
    found.now += 1
    older = written(judged(found, known(found, 6.0)))
    assert not status.is_due(fleet, older, 1.0, 10.0), "an age alone is written seldom"
    assert status.is_due(fleet, written(judged(found, known(found, 60.0))), 1.0, 10.0), "a state at once"
    assert status.is_due(fleet, written(judged(found, known(found, 6.0)), "Fold"), 1.0, 10.0), "a source at once"
    assert older["conditions"] == fresh["conditions"], "a condition keeps the time of its last change"
    assert "SparkReady" not in {each["type"] for each in written(None)["conditions"]}
