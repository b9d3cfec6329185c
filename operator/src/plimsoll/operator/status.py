"""What the status of a fleet's objects says: pure functions from observations, written at a bounded rate.

A change of a condition, a state or a count is written at once. Load figures, which change all the time, are written
with it, or else as seldom as the settings say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from plimsoll.core.config import Role
from plimsoll.core.spec import Resources, head_name
from plimsoll.core.spec.brokers import GROUP_LABEL, scaled
from plimsoll.core.spec.conditions import Condition
from plimsoll.mediator import balance, reports
from plimsoll.mediator.profiles import profile_status
from plimsoll.mediator.reports import Seen
from plimsoll.operator import names, spark
from plimsoll.operator.desired import Desired
from plimsoll.operator.mediating import Heard
from plimsoll.operator.names import Object
from plimsoll.operator.objects import Ref, annotation, is_leaving
from plimsoll.operator.observed import Observed, container, is_ready, label, last_end, seconds, trouble

LOADS = frozenset({"load", "subscribers", "imbalancePercent", "calibrated", "telemetry"})
"""Parts of a status that may be old; of telemetry all but who is decided by, and how the live job is."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What status is made from. `faults`: what could not be done, by object; `waits`: what has to wait for what."""

    desired: Desired
    observed: Observed
    heard: Mapping[str, Heard] = field(default_factory=dict)
    faults: Mapping[Ref, tuple[str, str]] = field(default_factory=dict)
    waits: Mapping[Ref, str] = field(default_factory=dict)
    invalid: str = ""
    mediator: Mapping[str, Any] = field(default_factory=dict)
    telemetry: Mapping[str, Any] = field(default_factory=dict)
    spark: spark.Judged | None = None
    time: str = ""

    @property
    def interval_seconds(self) -> float:
        fleet = self.desired.resources.fleet.spec
        return fleet.telemetry.report_interval.seconds * fleet.time_scale_percent / 100


def statuses(facts: Facts) -> Iterator[tuple[Object, dict[str, Any]]]:
    """The status of each object of the fleet."""
    seen = {name: broker_seen(facts, name, role) for name, role in _brokers(facts).items()}
    for edge in facts.observed.kind("EdgeBroker"):
        name = edge["metadata"]["name"]
        if name in seen:
            others = _others(facts, edge, [name])
            yield edge, reports.edge_status(edge, seen[name], facts.interval_seconds, facts.time, others)
    sessions = [balance.brief(item) for item in facts.observed.kind("LoadBalancingSession")]
    for cluster in facts.observed.kind("BrokerCluster"):
        yield from _cluster(facts, cluster, seen, sessions)
    for profile in facts.observed.kind("HardwareProfile"):
        yield profile, profile_status(profile, list(seen.values()), facts.time)
    for fleet in facts.observed.kind("BrokerFleet"):
        if fleet["metadata"]["name"] == facts.desired.fleet:
            yield fleet, _fleet(facts, fleet, list(seen.values()))


def is_unheard(facts: Facts) -> bool:
    """Whether a broker serves by its own account, and the mediator has not heard it yet, as after its own start."""
    return any(
        is_ready(facts.observed.pod(name)) and (name not in facts.heard or facts.heard[name].answer_age is None)
        for name in _brokers(facts)
    )


def unserved(observed: Observed, reason: str, message: str, time: str) -> Iterator[tuple[Object, dict[str, Any]]]:
    """The status of a fleet that cannot be served as it is asked for, and has not been before."""
    found = [Condition(type_, status, reason, message) for type_, status in _UNSERVED]
    for kind in ("BrokerFleet", "BrokerCluster"):
        for item in observed.kind(kind):
            generation = int(item["metadata"].get("generation", 1))
            told = {"observedGeneration": generation, **reports.conditions(item, found, time)}
            yield item, {**item.get("status", {}), **told}


def is_due(live: Object, status: Mapping[str, Any], loads_age: float, loads_seconds: float) -> bool:
    """Whether a status is to be written: at once, or when its load figures are old enough."""
    old = live.get("status", {})
    if _lasting(old) != _lasting(status):
        return True
    return loads_age >= loads_seconds and dict(old) != dict(status)


def _lasting(status: Any) -> Any:
    """A status without what changes all the time."""
    if isinstance(status, Mapping):
        telemetry = status.get("telemetry", {})
        decided = {"source": telemetry.get("source"), "spark": telemetry.get("spark", {}).get("state")}
        found = {key: _lasting(value) for key, value in status.items() if key not in LOADS}
        return {**found, **({"telemetry": decided} if telemetry else {})}
    return status


_UNSERVED: tuple[tuple[str, Literal["True", "False"]], ...] = (("Ready", "False"), ("Degraded", "True"))

# -- brokers


def _brokers(facts: Facts) -> dict[str, Role]:
    """Who runs, and who is asked for, also where it cannot be made yet."""
    wanted: dict[str, Role] = {name: place.role for name, place in facts.desired.places.items()}
    return {**facts.observed.brokers(), **wanted}


def broker_seen(facts: Facts, name: str, role: Role) -> Seen:
    """What is known of one broker."""
    pod, heard = facts.observed.pod(name), facts.heard.get(name)
    stored, wanted = facts.observed.get("StatefulSet", name), facts.desired.brokers.get(name)
    place = facts.desired.places.get(name)
    answer = heard.answer if heard is not None and pod is not None else {}
    waiting = answer.get("waiting_for")
    running = pod is not None and "running" in container(pod).get("state", {})
    host = names.host_of(name, facts.desired.namespace)
    data = wanted.config.advertised if wanted is not None else f"tcp://{host}:{names.DATA_PORT}"
    return Seen(
        name=name,
        role=role,
        cluster=place.cluster if place is not None else label(stored or pod or {}, names.CLUSTER),
        profile=place.profile if place is not None else "",
        data=data,
        control=f"tcp://{host}:{names.CONTROL_PORT}",
        public_key=annotation(pod, names.KEY) if pod is not None else "",
        pod=names.pod_of(name) if running else "",
        node=str(pod.get("spec", {}).get("nodeName", "")) if pod is not None else "",
        trouble=trouble(pod) if pod is not None else ("", ""),
        restarts=int(container(pod).get("restartCount", 0)) if pod is not None else 0,
        last_end=last_end(pod) if pod is not None else "",
        answer_age=heard.answer_age if heard is not None and running else None,
        serving=bool(answer.get("ready", True)),
        waiting_for=", ".join(str(each) for each in waiting) if isinstance(waiting, list) else "",
        report_age=heard.report_age if heard is not None and running else None,
        report=heard.report if heard is not None and running else {},
        stopping=pod is not None and is_leaving(pod),
        waiting_seconds=None if running else 0.0,
    )


# -- objects


def _cluster(
    facts: Facts, cluster: Object, seen: Mapping[str, Seen], sessions: Sequence[balance.Brief]
) -> Iterator[tuple[Object, dict[str, Any]]]:
    name = cluster["metadata"]["name"]
    head = seen.get(head_name(name))
    if head is None:
        return
    edges = [broker for broker in seen.values() if (broker.cluster, broker.role) == (name, "edge")]
    others = [*_others(facts, cluster, [head.name, *(edge.name for edge in edges)])]
    known = (facts.desired.resources, name, edges, sessions, seconds(facts.time))
    others.append(balance.balanced(*known))
    told = reports.cluster_status(cluster, head, edges, facts.interval_seconds, facts.time, others)
    selector = _selector(facts.desired.resources, name)
    yield cluster, {**told, **balance.summary(*known), "selector": selector}


def _selector(resources: Resources, cluster: str) -> str:
    """The pods of the group that scaling means; of all edges where it means none."""
    group = scaled(resources.clusters[cluster].spec) if cluster in resources.clusters else None
    which = "app.kubernetes.io/component=edge" if group is None else f"{GROUP_LABEL}={group.name}"
    return f"{names.CLUSTER}={cluster},{which}"


def _fleet(facts: Facts, fleet: Object, brokers: Sequence[Seen]) -> dict[str, Any]:
    """What the mediator has written there stays."""
    live, telemetry = facts.spark, dict(facts.telemetry)
    owner = fleet if live is not None else reports.without(fleet, spark.CONDITION)
    found = [*reports.compared(reports.summary(brokers, facts.interval_seconds), telemetry)]
    found += _others(facts, fleet, None)
    if live is not None:
        telemetry["spark"] = dict(live.status)
        found.append(live.condition)
    return {
        **{name: value for name, value in fleet.get("status", {}).items() if name != "telemetry"},
        **({"telemetry": telemetry} if telemetry else {}),
        "observedGeneration": int(fleet["metadata"].get("generation", 1)),
        "clusters": len({broker.cluster for broker in brokers}),
        "brokers": {"desired": len(brokers), "ready": sum(broker.ready for broker in brokers)},
        "security": "Plain" if facts.desired.resources.fleet.spec.security.plain else "Curve",
        "mediator": dict(facts.mediator),
        **reports.conditions(owner, found, facts.time),
    }


def _others(facts: Facts, item: Object, brokers: Sequence[str] | None) -> list[Condition]:
    """What brokers do not know of themselves: what the operator waits for, and what it could not do."""
    found: list[Condition] = []
    mine = None if brokers is None else {*brokers, item["metadata"]["name"]}
    waits = [f"{ref[1]}: {why}" for ref, why in facts.waits.items() if mine is None or ref[1] in mine]
    if waits:
        found.append(Condition("Progressing", "True", "Rolling", "; ".join(waits[:3])))
    faults = [fault for ref, fault in facts.faults.items() if mine is None or broker_of(ref) in mine]
    if facts.invalid:
        faults.insert(0, ("InvalidSpec", facts.invalid))
    if faults:
        found.append(Condition("Degraded", "True", faults[0][0], "; ".join(message for _, message in faults[:3])))
    elif item["kind"] == "EdgeBroker" and any(each["type"] == "Degraded" for each in _conditions(item)):
        found.append(Condition("Degraded", "False", "AsExpected"))  # what stood there before is over
    return found


def _conditions(item: Object) -> Sequence[Mapping[str, Any]]:
    return item.get("status", {}).get("conditions") or ()


_SUFFIXES = {
    "Pod": "-0", "ConfigMap": "-config", "Secret": "-keys", "Service": "-external", "PodDisruptionBudget": "-edges",
}  # fmt: skip


def broker_of(ref: Ref) -> str:
    """The broker, or the cluster, that an object belongs to, by its name: edge-0 has a StatefulSet edge-0."""
    return ref[1].removesuffix(_SUFFIXES.get(ref[0], ""))
