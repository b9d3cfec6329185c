"""Spark over a fleet's telemetry: what is made for it, whether its live job works, and when that is started anew.

A job is judged by the age of its snapshot, never by the state of its pod: a driver may run and say nothing. Who asks
for Spark and cannot have it is told why, and the fleet goes on with the collectors' fold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from plimsoll.core.spec import Resources
from plimsoll.core.spec.conditions import Condition, Status
from plimsoll.operator import names
from plimsoll.operator.change import Delete
from plimsoll.operator.names import Object
from plimsoll.operator.objects import asked_for, is_leaving, tolerations
from plimsoll.operator.observed import Observed, condition, label, seconds
from plimsoll.operator.settings import Settings
from plimsoll.sparkjobs.launching import kubernetes, operators
from plimsoll.sparkjobs.launching.health import SAID, Health, health, restart_at
from plimsoll.sparkjobs.launching.values import DRIVER, PART, Launch
from plimsoll.telemetry.asking import Known
from plimsoll.telemetry.snapshot import Last

CONDITION: Final = "SparkReady"
RECENT_SECONDS: Final = 30.0
"""What collectors have said so long ago is no ground to start a driver anew."""
CONTAINERS: Final = ("driver", "spark-kubernetes-driver", kubernetes.SIDECAR)
"""The live job's container, by who has made its pod."""


@dataclass(frozen=True)
class Lack:
    """Why nothing is started: a word and a sentence with the remedy."""

    reason: str
    message: str


def lack(resources: Resources, settings: Settings) -> Lack | None:
    """Why the jobs that a fleet asks for cannot be started, as far as its own objects and settings tell."""
    telemetry = resources.fleet.spec.telemetry
    collectors = telemetry.collectors
    if not collectors.replicas:
        return Lack("NoCollectors", "nobody stores load reports: set telemetry.collectors.replicas")
    if telemetry.launcher == "Process":
        if collectors.replicas > 1:
            text = "a process beside one collector knows its share alone: one collector, or another launcher"
            return Lack("ManyCollectors", text)
        return None
    if not settings.spark:
        return Lack("NotAllowed", "the operator has no rights to run Spark: install the chart with rbac.spark=true")
    if not collectors.volume_claim:
        text = "drivers read what collectors write: name a claim in telemetry.collectors.volumeClaim, or use Process"
        return Lack("NoVolume", text)
    return None


def launch(resources: Resources, settings: Settings, metadata: Object) -> Launch:
    """What is to be launched for a fleet that asks for it. `metadata`: namespace and owner of what is made."""
    telemetry = resources.fleet.spec.telemetry
    spec = telemetry.spark
    if spec is None:
        raise ValueError(f"fleet {resources.fleet.name} asks for no Spark")
    return Launch(
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


def objects(resources: Resources, settings: Settings, metadata: Object) -> Iterator[Object]:
    """What the jobs of a fleet consist of, but for the object of an operator for Spark and the collector's own pod."""
    launcher = resources.fleet.spec.telemetry.launcher
    if launcher in ("None", "Process") or lack(resources, settings) is not None:
        return
    wanted = launch(resources, settings, metadata)
    if launcher == "Kubernetes":
        yield from kubernetes.objects(wanted)
    else:
        yield from kubernetes.account(wanted)
        yield from kubernetes.cron_jobs(wanted)


def application(resources: Resources, settings: Settings, metadata: Object) -> Object | None:
    """The object that an operator for Spark is asked with; None where none is wanted."""
    launcher = resources.fleet.spec.telemetry.launcher
    render = {"SparkOperator": operators.spark_operator, "SparkApplication": operators.spark_application}.get(launcher)
    if render is None or lack(resources, settings) is not None:
        return None
    return asked_for(render(launch(resources, settings, metadata)))


def sidecar(resources: Resources, settings: Settings, metadata: Object) -> Object | None:
    """The live job as a container of the collector's pod; None where it is not wanted there."""
    if resources.fleet.spec.telemetry.launcher != "Process" or lack(resources, settings) is not None:
        return None
    return kubernetes.sidecar(launch(resources, settings, metadata), "data")


# -- how it does


@dataclass(frozen=True)
class Judged:
    """What is said of the live job: its status, and the condition of the fleet."""

    status: Mapping[str, Any]
    condition: Condition


@dataclass
class Judge:
    """What one operator remembers of a fleet's live job. `now` is in seconds since 1970.

    `elsewhere`: why the object of an operator for Spark could not be written.
    """

    restarts: list[float] = field(default_factory=list)
    elsewhere: Lack | None = None
    _last: Last | None = None

    def judged(
        self, resources: Resources, settings: Settings, observed: Observed, known: Known | None, now: float
    ) -> Judged | None:
        """How the live job is; None where none is asked for."""
        launcher = resources.fleet.spec.telemetry.launcher
        if launcher == "None":
            self._last, self.elsewhere = None, None
            return None
        told: dict[str, Any] = {"launcher": launcher, "restarts": len(self.restarts)}
        if (why := lack(resources, settings) or self.elsewhere) is not None:
            status = {**told, "state": "Missing", "message": why.message}
            return Judged(status, Condition(CONDITION, "False", why.reason, why.message))
        driver = driver_of(observed, resources.fleet.name)
        if driver is not None:
            told["driver"] = driver["metadata"]["name"]
            told["restarts"] += int(_container(driver).get("restartCount", 0))
        found = self._health(driver, known, now)
        status = {**told, "state": found.state, "message": found.message}
        fresh: Status = "True" if found.state == "Fresh" else "False"
        return Judged(status, Condition(CONDITION, fresh, found.state, SAID[found.state]))

    def due(self, resources: Resources, observed: Observed, known: Known | None, now: float) -> Delete | None:
        """The deletion of a driver that runs and does not work, when that is due."""
        if resources.fleet.spec.telemetry.launcher in ("None", "Process") or known is None or known.chosen is None:
            return None
        driver = driver_of(observed, resources.fleet.name)
        if driver is None or _started(driver) is None or now - known.at_us / 1e6 > RECENT_SECONDS:
            return None
        found = self._health(driver, known, now)
        if not found.wants_restart or now < restart_at(self.restarts, now):
            return None
        self.restarts = [*self.restarts[-9:], now]
        return Delete(driver, f"the live job is started anew: {found.message}")

    def _health(self, driver: Object | None, known: Known | None, now: float) -> Health:
        if known is not None and known.last is not None:
            self._last = known.last
        started = _started(driver) if driver is not None else None
        if started is None:
            age = self._last.age_seconds(round(now * 1e6)) if self._last is not None else None
            return Health("Starting", age, 0.0, _waiting(driver))
        return health(round(now * 1e6), self._last, round(started * 1e6))


def driver_of(observed: Observed, fleet: str) -> Object | None:
    """The pod of the live job: the newest that nobody has asked to end."""
    pods = [
        pod
        for pod in observed.kind("Pod")
        if label(pod, names.FLEET) == fleet and not is_leaving(pod) and (label(pod, PART) == DRIVER or _container(pod))
    ]
    return max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), default=None)


def _container(pod: Object) -> Object:
    states = pod.get("status", {}).get("containerStatuses") or []
    return dict(next((each for each in states if each.get("name") in CONTAINERS), {}))


def _started(pod: Object) -> float | None:
    """Since when the job's container runs; None while it does not."""
    running = _container(pod).get("state", {}).get("running")
    return None if not running else seconds(running["startedAt"])


def _waiting(pod: Object | None) -> str:
    if pod is None:
        return "there is no pod of a driver yet"
    if condition(pod, "PodScheduled").get("status") == "False":
        return f"no node takes its driver: {condition(pod, 'PodScheduled').get('message', '')}"
    state = _container(pod).get("state", {})
    for word in ("waiting", "terminated"):
        if found := state.get(word):
            return f"its driver does not run: {found.get('reason', word)} {found.get('message', '')}".strip()
    return "its driver is about to start"
