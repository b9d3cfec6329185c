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
from plimsoll.operator.objects.channel_driver import driver_name
from plimsoll.operator.objects.dataset_pods import DRIVER_COMPONENT, RECORDER_COMPONENT, is_recorded, runs_channels
from plimsoll.operator.objects.recorders import recorder_name
from plimsoll.operator.reconcile.observed import ObservedObjects, container_of, last_termination, pod_trouble

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
    state, told = _program(observed, name, RECORDER_COMPONENT)
    figures = read.recorder(name)
    fields = feed_fields(figures) if figures is not None else {}
    return _status(item, fields, told, recording_condition(figures, state), time)


def channel_status(
    resources: Resources, observed: ObservedObjects, read: ReadsFigures, item: Object, time: str
) -> dict[str, Any]:
    """The status of a Channel."""
    name, channel = driver_name(resources.fleet.name), item["metadata"]["name"]
    if not runs_channels(resources):
        return _status(item, {}, {}, Condition(RUNNING, "False", "NoDatasetVolume", NO_VOLUME), time)
    state, told = _program(observed, name, DRIVER_COMPONENT)
    figures = read.driver(name)
    own = figures.channels.get(channel) if figures is not None else None
    fields = channel_fields(own) if own is not None else {}
    return _status(item, fields, told, running_condition(channel, figures, state), time)


def dataset_statuses(
    resources: Resources, observed: ObservedObjects, read: ReadsFigures, served: Iterator[Object], time: str
) -> Iterator[tuple[Object, dict[str, Any]]]:
    """The status of each of these feeds and channels."""
    for item in served:
        made = feed_status if item["kind"] == "Feed" else channel_status
        yield item, made(resources, observed, read, item, time)


def _status(
    item: Object, fields: Mapping[str, Any], told: Mapping[str, Any], condition: Condition, time: str
) -> dict[str, Any]:
    """While a pod says nothing, the fields are what one has said last."""
    old = {name: value for name, value in item.get("status", {}).items() if name not in PROCESS_FIELDS}
    generation = int(item["metadata"].get("generation", 1))
    return {
        **old, **fields, **told, "observedGeneration": generation, **merged_conditions(item, [condition], time),
    }  # fmt: skip


def _program(observed: ObservedObjects, name: str, container: str) -> tuple[ProgramState, dict[str, Any]]:
    """What is known of a pod from outside, and the fields of a status that say so."""
    pod = observed.get("Pod", f"{name}-0")
    if pod is None:
        return ProgramState(is_running=False), {}
    state, (reason, message) = container_of(pod, container), pod_trouble(pod, container)
    running, end = "running" in state.get("state", {}), last_termination(pod, container)
    trouble = f"{reason}: {message}" if reason else ""
    told: dict[str, Any] = {"restarts": int(state.get("restartCount", 0)), **({"lastEnd": end} if end else {})}
    return ProgramState(running, end, trouble), {**({"pod": f"{name}-0"} if running else {}), **told}


def decided(status: Mapping[str, Any]) -> object:
    """The part of such a status whose change is written at once; counts change all the time."""
    conditions = [(each["type"], each["status"], each["reason"]) for each in status.get("conditions", [])]
    kept = {name: status.get(name) for name in (*PROCESS_FIELDS, "observedGeneration")}
    return conditions, kept
