"""The status of a fleet's objects, as a pure function of observations.

A change of a condition, a state or a count is due at once. Load figures, which change all the time, are written along
with it, or else only at the interval of the settings.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from plimsoll.core.config import Role
from plimsoll.core.printable import printable
from plimsoll.core.spec import Resources, head_name
from plimsoll.core.spec.brokers import GROUP_LABEL, scaled_group
from plimsoll.core.spec.status.conditions import Condition
from plimsoll.mediator import balance, resource_status
from plimsoll.mediator.away_status import away_status
from plimsoll.mediator.bundle_status import bundle_status
from plimsoll.mediator.calibration import profile_status
from plimsoll.mediator.group_status import group_status
from plimsoll.mediator.head_pair import whole
from plimsoll.mediator.limit_condition import limit_conditions
from plimsoll.mediator.log_condition import log_conditions
from plimsoll.mediator.resource_status import ObservedBroker
from plimsoll.mediator.standby_condition import CONDITION as STANDBY_CONDITION
from plimsoll.mediator.standby_condition import standby_conditions, standby_summary
from plimsoll.mediator.topic_status import topic_status
from plimsoll.operator import dataset_status, names, spec_faults
from plimsoll.operator.mediator.broker_poller import BrokerReading
from plimsoll.operator.names import Object
from plimsoll.operator.objects import spark_jobs
from plimsoll.operator.objects.manifest import Ref, annotation, is_leaving, ref
from plimsoll.operator.pairs.requests import has_earlier_settings
from plimsoll.operator.reconcile.desired import DesiredFleet
from plimsoll.operator.reconcile.observed import (
    ObservedObjects,
    broker_container,
    condition,
    is_ready,
    label,
    last_termination,
    pod_trouble,
    unix_seconds,
)
from plimsoll.operator.reconcile.retries import Fault
from plimsoll.operator.security import keys
from plimsoll.operator.security.key_manager import replaced_message
from plimsoll.operator.spec_faults import SpecFaults

log = logging.getLogger(__name__)

KEYS_CONDITION, UNCOMPUTED = "KeysReplaced", "StatusUncomputed"
TEXT_AT_MOST = 500
MOST_RESTARTS = 2**31 - 1
"""As many as a field of an object can hold; a broker says what it likes."""
Statuses = Iterator[tuple[Object, dict[str, Any]]]

LOAD_FIELDS = frozenset({
    "load", "subscribers", "imbalancePercent", "bundles", "topics", "consumerGroups", "calibrated", "telemetry",
    "behindBytes", "logEpoch", "logPosition",
})  # fmt: skip
"""Parts of a status that may be old; of `telemetry` all but its source and the state of the live job."""


@dataclass(frozen=True, kw_only=True)
class StatusInputs:
    """The inputs of a status.

    `faults`: by object, what could not be done; `blocked`: what it waits for; `specs`: what its specification has;
    `refusals`: by broker, why its pod is not created; `container_seconds`: how long its container has been seen, if
    another one ran before.
    """

    desired: DesiredFleet
    observed: ObservedObjects
    readings: Mapping[str, BrokerReading] = field(default_factory=dict)
    faults: Mapping[Ref, Fault] = field(default_factory=dict)
    blocked: Mapping[Ref, str] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)
    container_seconds: Mapping[str, float] = field(default_factory=dict)
    specs: SpecFaults = field(default_factory=SpecFaults)
    mediator: Mapping[str, Any] = field(default_factory=dict)
    telemetry: Mapping[str, Any] = field(default_factory=dict)
    spark: spark_jobs.LiveJobStatus | None = None
    figures: dataset_status.ReadsFigures = field(default_factory=dataset_status.NoFigures)
    channel_obstacle: spark_jobs.SparkObstacle | None = None
    time: str = ""
    leaders: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """By head with a standby, what the process that leads says of it."""

    @property
    def with_standby(self) -> frozenset[str]:
        """The clusters whose head has a standby."""
        brokers = self.desired.brokers.values()
        return frozenset(broker.cluster for broker in brokers if broker.config.standby is not None)

    @cached_property
    def sessions(self) -> list[balance.SessionOutline]:
        """All sessions of the fleet in outline."""
        return [balance.session_outline(item) for item in self.observed.kind("LoadBalancingSession")]

    def of(self, kind: str) -> Iterator[Object]:
        """The objects of a kind that are served, each with the generation that is."""
        return (found for item in self.observed.kind(kind) if (found := self.specs.served(item)) is not None)

    @property
    def interval_seconds(self) -> float:
        fleet = self.desired.resources.fleet.spec
        return fleet.telemetry.report_interval.seconds * fleet.time_scale_percent / 100


def fleet_statuses(facts: StatusInputs) -> Iterator[tuple[Object, dict[str, Any]]]:
    """The status of each object of the fleet that has been looked at."""
    yield from spec_faults.dropped_statuses(facts.observed, facts.specs, facts.time)
    for served, told in _served_statuses(facts):
        item = facts.observed.objects[ref(served)]
        yield item, spec_faults.with_accepted(item, told, facts.specs, facts.time)


def reported_clusters(
    facts: StatusInputs, statuses: Iterable[tuple[Object, Mapping[str, Any]]]
) -> list[tuple[Object, Mapping[str, Any]]]:
    """The clusters whose heads have reported, each with its status; the bundles of others are not known."""
    return [
        (item, told) for item, told in statuses
        if item["kind"] == "BrokerCluster" and _reading(facts, head_name(item["metadata"]["name"])).report
    ]  # fmt: skip


def fault_statuses(facts: StatusInputs) -> Iterator[tuple[Object, dict[str, Any]]]:
    """The status of objects with a fault, while too little is known of brokers to write any other."""
    yield from spec_faults.dropped_statuses(facts.observed, facts.specs, facts.time)
    for key in facts.specs.found.faults.keys() & facts.specs.found.used.keys() & facts.observed.objects.keys():
        item = facts.observed.objects[key]
        yield item, spec_faults.with_accepted(item, dict(item.get("status", {})), facts.specs, facts.time)
    for fleet in facts.of("BrokerFleet"):
        told = _operator_conditions(facts, fleet, None)
        if ref(fleet) in facts.faults and ref(fleet) not in facts.specs.found.faults:
            yield fleet, {**fleet.get("status", {}), **resource_status.merged_conditions(fleet, told, facts.time)}


def _served_statuses(facts: StatusInputs) -> Iterator[tuple[Object, dict[str, Any]]]:
    """The status of each object that is served, for the generation that is served."""
    seen = observed_brokers(facts)
    for edge in facts.of("EdgeBroker"):
        if edge["metadata"]["name"] in seen:
            yield from _computed(facts, edge, partial(_edge_status, facts, seen))
    for cluster in facts.of("BrokerCluster"):
        yield from _computed(facts, cluster, partial(_cluster_status, facts, seen))
    for item in (each for kind in dataset_status.CONDITIONS for each in facts.of(kind)):
        yield from _computed(facts, item, partial(_dataset_status, facts))
    for profile in facts.of("HardwareProfile"):
        yield from _computed(facts, profile, partial(_profile_status, facts, seen))
    for fleet in facts.of("BrokerFleet"):
        if fleet["metadata"]["name"] == facts.desired.fleet:
            yield from _computed(facts, fleet, partial(_fleet_status, facts, seen))


def _computed(facts: StatusInputs, item: Object, compute: Callable[[Object], Statuses]) -> Statuses:
    """The status of an object; one that cannot be computed says so, and hinders no other."""
    try:
        found = list(compute(resource_status.without_condition(item, UNCOMPUTED)))
        json.dumps([told for _, told in found], allow_nan=False)  # an API server refuses what JSON does not have
        yield from found
    except Exception as error:
        why = f"it is as of before: {type(error).__name__}: {error}"[:TEXT_AT_MOST]
        if condition(item, UNCOMPUTED).get("message") != why:  # said once, not every second
            log.exception("the status of %s cannot be computed", "/".join(ref(item)))
        uncomputed = Condition(UNCOMPUTED, "True", "PartFailed", why)
        yield item, {**item.get("status", {}), **resource_status.merged_conditions(item, [uncomputed], facts.time)}


def _edge_status(facts: StatusInputs, seen: Mapping[str, ObservedBroker], edge: Object) -> Statuses:
    name = edge["metadata"]["name"]
    others = _operator_conditions(facts, edge, [name])
    yield edge, resource_status.edge_status(edge, seen[name], facts.interval_seconds, facts.time, others)


def _dataset_status(facts: StatusInputs, item: Object) -> Statuses:
    return dataset_status.dataset_statuses(
        facts.desired.resources, facts.observed, facts.figures, iter([item]), facts.time, facts.channel_obstacle
    )


def _profile_status(facts: StatusInputs, seen: Mapping[str, ObservedBroker], profile: Object) -> Statuses:
    yield profile, profile_status(profile, list(seen.values()), facts.interval_seconds, facts.time)


def has_silent_broker(facts: StatusInputs) -> bool:
    """Whether the pod of a broker is ready and the mediator, which may have just started, has no answer from it."""
    return any(
        is_ready(facts.observed.pod(name)) and (name not in facts.readings or facts.readings[name].answer_age is None)
        for name in _broker_roles(facts)
    )


def is_due(live: Object, status: Mapping[str, Any], loads_age: float, loads_seconds: float) -> bool:
    """Whether a status is to be written: it has changed, or its load figures are old enough."""
    old = live.get("status", {})
    decides = dataset_status.decided if live.get("kind") in dataset_status.CONDITIONS else _without_load
    if decides(old) != decides(status):
        return True
    return loads_age >= loads_seconds and dict(old) != dict(status)


def _without_load(status: Any) -> Any:
    """A status without its load figures."""
    if isinstance(status, Mapping):
        telemetry = status.get("telemetry", {})
        decided = {"source": telemetry.get("source"), "spark": telemetry.get("spark", {}).get("state")}
        found = {key: _without_load(value) for key, value in status.items() if key not in LOAD_FIELDS}
        return {**found, **({"telemetry": decided} if telemetry else {})}
    return status


# -- brokers


def _broker_roles(facts: StatusInputs) -> dict[str, Role]:
    """The brokers that run, and those that are desired, even if they cannot be created yet."""
    wanted: dict[str, Role] = {name: place.role for name, place in facts.desired.places.items()}
    return {**facts.observed.brokers(), **wanted}


def observed_brokers(facts: StatusInputs) -> dict[str, ObservedBroker]:
    """The observed state of all brokers that run or are desired; one that cannot be read is not ready and says why."""
    return {name: _observed_or_why(facts, name, role) for name, role in _broker_roles(facts).items()}


def _observed_or_why(facts: StatusInputs, name: str, role: Role) -> ObservedBroker:
    try:
        return observed_broker(facts, name, role)
    except Exception as error:
        why = f"what is known of it cannot be read: {type(error).__name__}: {error}"[:TEXT_AT_MOST]
        place, host = facts.desired.places.get(name), names.host_of(name, facts.desired.namespace)
        cluster = place.cluster if place is not None else ""
        told = facts.observed.get(
            "BrokerCluster" if role == "head" else "EdgeBroker", cluster if role == "head" else name
        )
        if why not in str((told or {}).get("status", {})):  # said once, not every second
            log.exception("the state of %s cannot be read", name)
        return ObservedBroker(
            name=name, role=role, cluster=cluster, profile="" if place is None else place.profile,
            data=f"tcp://{host}:{names.DATA_PORT}", control=f"tcp://{host}:{names.CONTROL_PORT}", public_key="",
            pod=names.pod_of(name), trouble=("PartFailed", why),
        )  # fmt: skip


def observed_broker(facts: StatusInputs, name: str, role: Role) -> ObservedBroker:
    """The observed state of one broker."""
    pod, reading = facts.observed.pod(name), _reading(facts, name)
    stored, wanted = facts.observed.get("StatefulSet", name), facts.desired.brokers.get(name)
    place = facts.desired.places.get(name)
    waiting = reading.answer.get("waiting_for")
    running = pod is not None and "running" in broker_container(pod).get("state", {})
    host = names.host_of(name, facts.desired.namespace)
    data = wanted.config.advertised if wanted is not None else f"tcp://{host}:{names.DATA_PORT}"
    return ObservedBroker(
        name=name,
        role=role,
        cluster=place.cluster if place is not None else label(stored or pod or {}, names.CLUSTER),
        profile=place.profile if place is not None else "",
        data=data,
        control=f"tcp://{host}:{names.CONTROL_PORT}",
        public_key=annotation(pod, names.KEY) if pod is not None else "",
        pod=str(pod["metadata"]["name"]) if pod is not None and running else "",
        node=str(pod.get("spec", {}).get("nodeName", "")) if pod is not None else "",
        trouble=pod_trouble(pod) if pod is not None else _refusal(facts, name),
        restarts=_restarts(facts, name, pod) if pod is not None else 0,
        last_end=_last_end(reading, pod) if pod is not None else "",
        answer_age=reading.answer_age,
        serving=bool(reading.answer.get("ready", True)),
        waiting_for=", ".join(str(each) for each in waiting) if isinstance(waiting, list) else "",
        report_age=reading.report_age,
        report=reading.report,
        stopping=pod is not None and is_leaving(pod),
        waiting_seconds=None if running else 0.0,
        pod_ready=pod is not None and is_ready(pod),
        outdated=pod is not None
        and wanted is not None
        and has_earlier_settings(pod, wanted.config, wanted.restart_hash),
        cordoned=_is_cordoned(facts, name),
    )


def _is_cordoned(facts: StatusInputs, name: str) -> bool:
    """Whether it is an edge whose object says so; what is in a specification with a fault counts as well."""
    edge = facts.observed.get("EdgeBroker", name)
    return edge is not None and bool(edge["spec"].get("cordoned", False))


def _reading(facts: StatusInputs, name: str) -> BrokerReading:
    """What a broker has said since its container runs: what an earlier one said is not about this one."""
    pod, found = facts.observed.pod(name), facts.readings.get(name)
    if found is None or pod is None or "running" not in broker_container(pod).get("state", {}):
        return BrokerReading()
    seconds = facts.container_seconds.get(name, float("inf"))
    has_answered = found.answer_age is not None and found.answer_age <= seconds
    has_reported = found.report_age is not None and found.report_age <= seconds
    return BrokerReading(
        found.answer if has_answered else {}, found.answer_age if has_answered else None,
        found.report if has_reported else {}, found.report_age if has_reported else None,
    )  # fmt: skip


def _restarts(facts: StatusInputs, name: str, pod: Object) -> int:
    """How often a broker has been started again in its pod: by its kubelet, and within its container."""
    counted, found = int(broker_container(pod).get("restartCount", 0)), facts.readings.get(name)
    if found is None or found.answer_age is None:
        return counted
    pod_age = unix_seconds(facts.time) - unix_seconds(pod["metadata"].get("creationTimestamp", facts.time))
    if found.answer_age > pod_age:  # of the pod before
        return counted
    return max(counted, min(whole(_process(found), "restarts"), MOST_RESTARTS))


def _last_end(reading: BrokerReading, pod: Object) -> str:
    """How its process last ended: within the container that runs, or with the container before."""
    said = _process(reading).get("last_end", "")
    return printable(said)[:TEXT_AT_MOST] if isinstance(said, str) and said else last_termination(pod)


def _process(reading: BrokerReading) -> Mapping[str, Any]:
    found = reading.answer.get("process", {})
    return found if isinstance(found, Mapping) else {}


def _refusal(facts: StatusInputs, broker: str) -> tuple[str, str]:
    """Why a broker has no pod, as a reason and a message; both empty if none is known."""
    found = facts.refusals.get(broker, "")
    return ("PodRefused", found) if found else ("", "")


# -- objects


def _cluster_status(facts: StatusInputs, seen: Mapping[str, ObservedBroker], cluster: Object) -> Statuses:
    name = cluster["metadata"]["name"]
    head = seen.get(head_name(name))
    if head is None:
        return
    edges = [broker for broker in seen.values() if (broker.cluster, broker.role) == (name, "edge")]
    others = [*_operator_conditions(facts, cluster, [head.name, *(edge.name for edge in edges)])]
    known = (facts.desired.resources, name, edges, facts.sessions, unix_seconds(facts.time))
    has_standby = name in facts.with_standby
    others += [balance.balanced_condition(*known), *log_conditions(head, has_standby=has_standby)]
    others += limit_conditions(cluster.get("status", {}), [head, *edges])
    others += standby_conditions(cluster.get("status", {}), wants=has_standby)
    owner = cluster if has_standby else resource_status.without_condition(cluster, STANDBY_CONDITION)
    told = resource_status.cluster_status(owner, head, edges, facts.interval_seconds, facts.time, others)
    selector = _selector(facts.desired.resources, name)
    memory = told.get("policyMemory")
    units = {
        **bundle_status(head, edges, memory), **topic_status(facts.desired.resources, name, head, edges, memory)
    }  # fmt: skip
    summary = {**balance.cluster_summary(*known), **units, **group_status(head), **away_status(head)}
    pair = _standby(facts, cluster, head.name) if has_standby else {}
    yield cluster, {**told, **summary, **pair, "selector": selector}


def _standby(facts: StatusInputs, cluster: Object, head: str) -> dict[str, Any]:
    """What is known of the standby of a head, from its pod and from the head."""
    pod = facts.observed.standby_pod(head)
    running = pod is not None and "running" in broker_container(pod).get("state", {})
    return standby_summary(
        cluster.get("status", {}),
        facts.leaders.get(head, {}),
        pod=str(pod["metadata"]["name"]) if pod is not None and running else "",
        node=str(pod.get("spec", {}).get("nodeName", "")) if pod is not None else "",
    )


def _selector(resources: Resources, cluster: str) -> str:
    """The label selector of the group that is scaled, or of all edges if none is; autoscalers read it."""
    group = scaled_group(resources.clusters[cluster].spec) if cluster in resources.clusters else None
    which = "app.kubernetes.io/component=edge" if group is None else f"{GROUP_LABEL}={group.name}"
    return f"{names.CLUSTER}={cluster},{which}"


def _fleet_status(facts: StatusInputs, seen: Mapping[str, ObservedBroker], fleet: Object) -> Statuses:
    """The fleet's status; the fields that the mediator writes are kept."""
    brokers = list(seen.values())
    live, telemetry = facts.spark, dict(facts.telemetry)
    owner = fleet if live is not None else resource_status.without_condition(fleet, spark_jobs.SPARK_CONDITION)
    found = [
        *resource_status.with_load_source(resource_status.broker_conditions(brokers, facts.interval_seconds), telemetry)
    ]
    found += _operator_conditions(facts, fleet, None)
    if (replaced := _keys_condition(facts)) is not None:
        found.append(replaced)
    else:
        owner = resource_status.without_condition(owner, KEYS_CONDITION)
    if live is not None:
        telemetry["spark"] = dict(live.status)
        found.append(live.condition)
    yield (
        fleet,
        {
            **{name: value for name, value in fleet.get("status", {}).items() if name != "telemetry"},
            **({"telemetry": telemetry} if telemetry else {}),
            "observedGeneration": int(fleet["metadata"].get("generation", 1)),
            "clusters": len({broker.cluster for broker in brokers}),
            "brokers": {"desired": len(brokers), "ready": sum(broker.ready for broker in brokers)},
            "security": "Plain" if facts.desired.resources.fleet.spec.security.plain else "Curve",
            "mediator": dict(facts.mediator),
            **resource_status.merged_conditions(owner, found, facts.time),
        },
    )


def _operator_conditions(facts: StatusInputs, item: Object, brokers: Sequence[str] | None) -> list[Condition]:
    """Conditions that only the operator knows: what it waits for, and what it could not do."""
    found: list[Condition] = []
    mine = None if brokers is None else {*brokers, item["metadata"]["name"]}
    waits = [f"{key[1]}: {why}" for key, why in facts.blocked.items() if mine is None or key[1] in mine]
    if waits:
        found.append(Condition("Progressing", "True", "Rolling", "; ".join(waits[:3])))
    faults = [fault for key, fault in facts.faults.items() if mine is None or broker_of(key) in mine]
    faults[:0] = [Fault(*each) for each in facts.specs.told_of(ref(item), all_objects=brokers is None)]
    if faults:
        messages = "; ".join(fault.message for fault in faults[:3])
        found.append(Condition("Degraded", "True", faults[0].reason, messages))
    elif item["kind"] == "EdgeBroker" and any(each["type"] == "Degraded" for each in _conditions(item)):
        found.append(Condition("Degraded", "False", "AsExpected"))  # clear an earlier fault
    return found


def _keys_condition(facts: StatusInputs) -> Condition | None:
    """Which Secrets were made in place of deleted ones, while the old keys are still accepted."""
    lost = sorted(
        item["metadata"]["name"]
        for item in facts.observed.kind("Secret")
        if annotation(item, names.DELETED_AT) and keys.OLD_PUBLIC in (item.get("data") or {})
    )
    if not lost:
        return None
    return Condition(KEYS_CONDITION, "True", "SecretDeleted", "; ".join(replaced_message(name) for name in lost[:3]))


def _conditions(item: Object) -> Sequence[Mapping[str, Any]]:
    return item.get("status", {}).get("conditions") or ()


_NAME_SUFFIXES = {
    "Pod": "-0", "ConfigMap": "-config", "Secret": "-keys", "Service": "-external", "PodDisruptionBudget": "-edges",
}  # fmt: skip


def broker_of(ref: Ref) -> str:
    """The broker, or the cluster, that an object belongs to, by its name: edge-0 has a StatefulSet edge-0."""
    return ref[1].removesuffix(_NAME_SUFFIXES.get(ref[0], ""))
