"""The status of feeds and channels on Kubernetes: from their pods, and from what these say of themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from plimsoll.channels.config import DriverFigures
from plimsoll.channels.status import RUNNING, running_condition
from plimsoll.channels.status import figures_status as channel_fields
from plimsoll.core.spec import Resources
from plimsoll.core.spec.status.conditions import Condition
from plimsoll.feeds.config import RecorderFigures
from plimsoll.feeds.status import RECORDING, ProgramState, recording_condition
from plimsoll.feeds.status import figures_status as feed_fields
from plimsoll.mediator.resource_status import merged_conditions
from plimsoll.operator.names import Object
from plimsoll.operator.objects.channel_launch import driver_name
from plimsoll.operator.objects.dataset_pods import DRIVER_COMPONENT, RECORDER_COMPONENT, is_recorded, runs_channels
from plimsoll.operator.objects.recorders import recorder_name
from plimsoll.operator.objects.spark_jobs import SparkObstacle
from plimsoll.operator.reconcile.observed import ObservedObjects, container_of, last_termination, pod_trouble
from plimsoll.sparkjobs.launch.operator_manifests import DRIVER_CONTAINER

NO_VOLUME = (
    "the fleet names no volume: make a PersistentVolumeClaim, and name it in datasets.volumeClaim; or keep all of it in"
    " an object store, with `path` of the Feed and datasets.ledgers"
)
CONDITIONS: Mapping[str, str] = {"Feed": RECORDING, "Channel": RUNNING}
"""The condition of each of these kinds."""
PROCESS_FIELDS = frozenset({"pod", "restarts", "lastEnd"})


class ReadsFigures(Protocol):
    """What is asked for the figures of pods, by the name of their StatefulSet."""

    def recorder(self, name: str) -> RecorderFigures | None: ...
    def driver(self, name: str) -> DriverFigures | None: ...


class NoFigures:
    """Without pods there are no figures."""

    def recorder(self, name: str) -> RecorderFigures | None:
        return None

    def driver(self, name: str) -> DriverFigures | None:
        return None


def feed_status(
    resources: Resources, observed: ObservedObjects, read: ReadsFigures, item: Object, time: str
) -> dict[str, Any]:
    """The status of a Feed."""
    name = recorder_name(resources.fleet.name, item["metadata"]["name"])
    if not is_recorded(resources, resources.feeds[item["metadata"]["name"]]):
        return _status(item, {}, {}, Condition(RECORDING, "False", "NoDatasetVolume", NO_VOLUME), time)
    state, told = _program(observed.dataset_pod(name), RECORDER_COMPONENT)
    figures = read.recorder(name)
    fields = feed_fields(figures) if figures is not None else {}
    return _status(item, fields, told, recording_condition(figures, state), time)


def channel_status(
    resources: Resources,
    observed: ObservedObjects,
    read: ReadsFigures,
    item: Object,
    time: str,
    obstacle: SparkObstacle | None = None,
) -> dict[str, Any]:
    """The status of a Channel. `obstacle`: what keeps the driver of all of them from being launched."""
    name, channel = driver_name(resources.fleet.name), item["metadata"]["name"]
    if not runs_channels(resources):
        return _status(item, {}, {}, Condition(RUNNING, "False", "NoDatasetVolume", NO_VOLUME), time)
    if obstacle is not None:
        return _status(item, {}, {}, Condition(RUNNING, "False", obstacle.reason, obstacle.message), time)
    pod = observed.dataset_pod(name)
    submitted = pod is not None and container_of(pod, DRIVER_CONTAINER)
    state, told = _program(pod, DRIVER_CONTAINER if submitted else DRIVER_COMPONENT)
    figures = read.driver(name)
    own = figures.channels.get(channel) if figures is not None else None
    fields = channel_fields(own) if own is not None else {}
    return _status(item, fields, told, running_condition(channel, figures, state), time)


def dataset_statuses(
    resources: Resources,
    observed: ObservedObjects,
    read: ReadsFigures,
    served: Iterator[Object],
    time: str,
    obstacle: SparkObstacle | None = None,
) -> Iterator[tuple[Object, dict[str, Any]]]:
    """The status of each of these feeds and channels. `obstacle`: that of `channel_status`."""
    for item in served:
        if item["kind"] == "Feed":
            yield item, feed_status(resources, observed, read, item, time)
        else:
            yield item, channel_status(resources, observed, read, item, time, obstacle)


def _status(
    item: Object, fields: Mapping[str, Any], told: Mapping[str, Any], condition: Condition, time: str
) -> dict[str, Any]:
    """While a pod says nothing, the fields are what one has said last."""
    old = {name: value for name, value in item.get("status", {}).items() if name not in PROCESS_FIELDS}
    generation = int(item["metadata"].get("generation", 1))
    return {
        **old, **fields, **told, "observedGeneration": generation, **merged_conditions(item, [condition], time),
    }  # fmt: skip


def _program(pod: Object | None, container: str) -> tuple[ProgramState, dict[str, Any]]:
    """What is known of a pod from outside, and the fields of a status that say so."""
    if pod is None:
        return ProgramState(is_running=False), {}
    state, (reason, message) = container_of(pod, container), pod_trouble(pod, container)
    running, end = "running" in state.get("state", {}), last_termination(pod, container)
    trouble = f"{reason}: {message}" if reason else ""
    told: dict[str, Any] = {"restarts": int(state.get("restartCount", 0)), **({"lastEnd": end} if end else {})}
    return ProgramState(running, end, trouble), {**({"pod": pod["metadata"]["name"]} if running else {}), **told}


def decided(status: Mapping[str, Any]) -> object:
    """The part of such a status whose change is written at once; counts change all the time."""
    conditions = [(each["type"], each["status"], each["reason"]) for each in status.get("conditions", [])]
    kept = {name: status.get(name) for name in (*PROCESS_FIELDS, "observedGeneration")}
    return conditions, kept
