"""Spark over a fleet's telemetry: its objects, the health of its live job, and when that is restarted.

A job is judged by the age of its snapshot, never by the state of its pod: a driver may run and write nothing. If Spark
is requested but cannot run, a condition says why, and the fleet goes on with the collectors' fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from plimsoll.core.spec import Resources
from plimsoll.core.spec.status.conditions import Condition, ConditionState
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import is_leaving, tolerations, with_desired_hash
from plimsoll.operator.reconcile.observed import ObservedObjects, condition, label, unix_seconds
from plimsoll.operator.reconcile.steps import Delete
from plimsoll.operator.settings import OperatorSettings
from plimsoll.sparkjobs.launch import executors, manifests
from plimsoll.sparkjobs.launch.live_job_health import STATE_MESSAGES, LiveJobHealth, assess_live_job, next_restart
from plimsoll.sparkjobs.launch.operator_manifests import (
    DRIVER_CONTAINER,
    Submission,
    apache_application,
    kubeflow_application,
    live_submission,
)
from plimsoll.sparkjobs.launch.spec import DRIVER_PART, PART_LABEL, SparkLaunch
from plimsoll.telemetry.client.snapshot_poller import PollResult
from plimsoll.telemetry.snapshot import SnapshotSummary

SPARK_CONDITION: Final = "SparkReady"
RECENT_SECONDS: Final = 30.0
"""A snapshot that is older than this is no reason to restart a driver."""
APPLICATION_KIND: Final = "SparkApplication"
JOB_CONTAINERS: Final = ("driver", DRIVER_CONTAINER, manifests.SIDECAR)
"""The live job's container, by who has made its pod."""


@dataclass(frozen=True)
class SparkObstacle:
    """Why no job is started: a word and a sentence with the remedy."""

    reason: str
    message: str


NOT_ALLOWED: Final = SparkObstacle(
    "NotAllowed", "the operator has no rights to run Spark: install the chart with rbac.spark=true"
)
APPLICATIONS: Final[Mapping[str, Callable[[Submission], Object]]] = {
    "SparkOperator": kubeflow_application,
    "SparkApplication": apache_application,
}
"""By launcher: what renders the object for its operator."""


def launch_obstacle(resources: Resources, settings: OperatorSettings) -> SparkObstacle | None:
    """Why a fleet's jobs cannot be started, as far as its own objects and settings show."""
    telemetry = resources.fleet.spec.telemetry
    collectors = telemetry.collectors
    if not collectors.replicas:
        return SparkObstacle("NoCollectors", "no collector stores load reports: set telemetry.collectors.replicas")
    if telemetry.launcher == "Process":
        if collectors.replicas > 1:
            text = "a process beside one of several collectors reads only its share: one collector, or another launcher"
            return SparkObstacle("ManyCollectors", text)
        return None
    if not settings.spark:
        return NOT_ALLOWED
    if not collectors.volume_claim:
        text = "drivers read what collectors write: name a claim in telemetry.collectors.volumeClaim, or use Process"
        return SparkObstacle("NoVolume", text)
    return None


def launch_request(resources: Resources, settings: OperatorSettings, metadata: Object) -> SparkLaunch:
    """The parameters of a fleet's jobs. `metadata`: namespace and owner of their objects."""
    telemetry = resources.fleet.spec.telemetry
    spec = telemetry.spark
    if spec is None:
        raise ValueError(f"fleet {resources.fleet.name} asks for no Spark")
    return SparkLaunch(
        fleet=resources.fleet.name,
        namespace=metadata["namespace"],
        image=spec.image or settings.spark_image,
        claim=telemetry.collectors.volume_claim,
        access=telemetry.collectors.volume_access,
        executors=spec.executors,
        trigger_seconds=max(1, round(spec.trigger.seconds)),
        lag_seconds=max(1, round(telemetry.collectors.interval.seconds)),
        owner=next(iter(metadata["ownerReferences"]), None),
        pull_secrets=settings.pull_secrets,
        tolerations=tolerations(resources.fleet.spec.pods.lost_node_after.seconds),
    )


def spark_objects(resources: Resources, settings: OperatorSettings, metadata: Object) -> Iterator[Object]:
    """The objects of a fleet's jobs, except the SparkApplication and the collector's own pod."""
    launcher = resources.fleet.spec.telemetry.launcher
    if launcher in ("None", "Process") or launch_obstacle(resources, settings) is not None:
        return
    wanted = launch_request(resources, settings, metadata)
    if launcher == "Kubernetes":
        yield from manifests.all_objects(wanted)
    else:
        yield from executors.service_account_objects(wanted)
        yield from manifests.cron_jobs(wanted)


def spark_application(resources: Resources, settings: OperatorSettings, metadata: Object) -> Object | None:
    """The object for a Spark operator; None if it is not wanted."""
    launcher = resources.fleet.spec.telemetry.launcher
    render = APPLICATIONS.get(launcher)
    if render is None or launch_obstacle(resources, settings) is not None:
        return None
    return with_desired_hash(render(live_submission(launch_request(resources, settings, metadata))))


def spark_sidecar(resources: Resources, settings: OperatorSettings, metadata: Object) -> Object | None:
    """The live job as a container of the collector's pod; None if it is not wanted there."""
    if resources.fleet.spec.telemetry.launcher != "Process" or launch_obstacle(resources, settings) is not None:
        return None
    return manifests.live_sidecar(launch_request(resources, settings, metadata), "data")


# -- health


@dataclass(frozen=True)
class LiveJobStatus:
    """The live job's status, and its condition on the fleet."""

    status: Mapping[str, Any]
    condition: Condition


@dataclass
class LiveJobMonitor:
    """Watches over a fleet's live job. `now` is in seconds since 1970.

    `application_obstacle`: why the object for the Spark operator could not be written.
    """

    restarts: list[float] = field(default_factory=list)
    application_obstacle: SparkObstacle | None = None
    _last: SnapshotSummary | None = None

    def status(
        self,
        resources: Resources,
        settings: OperatorSettings,
        observed: ObservedObjects,
        known: PollResult | None,
        now: float,
    ) -> LiveJobStatus | None:
        """Status and condition of the live job; None if the fleet has none."""
        launcher = resources.fleet.spec.telemetry.launcher
        if launcher == "None":
            self._last, self.application_obstacle = None, None
            return None
        told: dict[str, Any] = {"launcher": launcher, "restarts": len(self.restarts)}
        if (why := launch_obstacle(resources, settings) or self.application_obstacle) is not None:
            status = {**told, "state": "Missing", "message": why.message}
            return LiveJobStatus(status, Condition(SPARK_CONDITION, "False", why.reason, why.message))
        driver = driver_of(observed, resources.fleet.name)
        if driver is not None:
            told["driver"] = driver["metadata"]["name"]
            told["restarts"] += int(_container(driver).get("restartCount", 0))
        found = self._health(driver, known, now)
        status = {**told, "state": found.state, "message": found.message}
        fresh: ConditionState = "True" if found.state == "Fresh" else "False"
        return LiveJobStatus(status, Condition(SPARK_CONDITION, fresh, found.state, STATE_MESSAGES[found.state]))

    def restart_step(
        self, resources: Resources, observed: ObservedObjects, known: PollResult | None, now: float
    ) -> Delete | None:
        """The deletion of a driver that runs and writes no snapshots, when that is due."""
        if resources.fleet.spec.telemetry.launcher in ("None", "Process") or known is None or known.chosen is None:
            return None
        driver = driver_of(observed, resources.fleet.name)
        if driver is None or _started(driver) is None or now - known.at_us / 1e6 > RECENT_SECONDS:
            return None
        found = self._health(driver, known, now)
        if not found.wants_restart or now < next_restart(self.restarts, now):
            return None
        self.restarts = [*self.restarts[-9:], now]
        return Delete(driver, f"the live job is restarted: {found.message}")

    def _health(self, driver: Object | None, known: PollResult | None, now: float) -> LiveJobHealth:
        if known is not None and known.last is not None:
            self._last = known.last
        started = _started(driver) if driver is not None else None
        if started is None:
            age = self._last.age_seconds(round(now * 1e6)) if self._last is not None else None
            return LiveJobHealth("Starting", age, 0.0, _waiting(driver))
        return assess_live_job(round(now * 1e6), self._last, round(started * 1e6))


def driver_of(observed: ObservedObjects, fleet: str) -> Object | None:
    """The pod of the live job: the newest that is not being deleted."""
    pods = [
        pod
        for pod in observed.kind("Pod")
        if label(pod, names.FLEET) == fleet
        and not label(pod, names.DATASET_POD)  # the driver of channels is another one
        and not is_leaving(pod)
        and (label(pod, PART_LABEL) == DRIVER_PART or _container(pod))
    ]
    return max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), default=None)


def _container(pod: Object) -> Object:
    states = pod.get("status", {}).get("containerStatuses") or []
    return dict(next((each for each in states if each.get("name") in JOB_CONTAINERS), {}))


def _started(pod: Object) -> float | None:
    """When the job's container started, in seconds since 1970; None while it does not run."""
    running = _container(pod).get("state", {}).get("running")
    return None if not running else unix_seconds(running["startedAt"])


def _waiting(pod: Object | None) -> str:
    if pod is None:
        return "the driver has no pod yet"
    if condition(pod, "PodScheduled").get("status") == "False":
        return f"no node fits the driver: {condition(pod, 'PodScheduled').get('message', '')}"
    state = _container(pod).get("state", {})
    for word in ("waiting", "terminated"):
        if found := state.get(word):
            return f"the driver does not run: {found.get('reason', word)} {found.get('message', '')}".strip()
    return "the driver is about to start"
