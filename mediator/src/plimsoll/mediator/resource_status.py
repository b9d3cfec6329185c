"""Status and conditions of brokers, clusters and fleets: pure functions of observations.

Amounts are whole numbers with their unit in the name, as the custom resources have no floating-point numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from plimsoll.core.config import Role
from plimsoll.core.spec.status.conditions import Condition, merge_conditions
from plimsoll.mediator import head_cordons
from plimsoll.mediator.known_log import log_status

UNANSWERED_SECONDS = 5.0
"""A ready broker that has not answered for this long is no longer ready."""

FRESH_INTERVALS = 3
"""A load report is recent for this many intervals of reports."""
PROGRESSING_REASONS = frozenset({"Starting", "WaitingForPeers", "PodNotReady", "Stopping", "BackOff", "Rolling"})
"""Reasons of a broker that is not ready and is on its way."""


@dataclass(frozen=True)
class ObservedBroker:
    """The observed state of one broker. Ages are in seconds, None without a message."""

    name: str
    role: Role
    cluster: str
    profile: str
    data: str
    control: str
    public_key: str
    pid: int | None = None
    restarts: int = 0
    last_end: str = ""
    answer_age: float | None = None
    serving: bool = False
    waiting_for: str = ""
    report_age: float | None = None
    report: Mapping[str, Any] = field(default_factory=dict)
    stopping: bool = False
    waiting_seconds: float | None = None
    pod: str = ""
    node: str = ""
    trouble: tuple[str, str] = ("", "")
    """Why its pod does not run, as a reason and a message; empty if it runs or is about to."""
    pod_ready: bool = True
    """Whether Kubernetes counts its pod as ready; True without pods."""
    answered_epoch: int = 0
    """The epoch by its last answer, which comes before its first load report; 0 if that is not known."""
    outdated: bool = False
    """Whether it was started with earlier settings, and is to be replaced."""
    cordoned: bool = False
    """Whether it is an edge that is to take no new subscribers."""

    @property
    def epoch(self) -> int:
        """The epoch of its present start, 0 before it has said so."""
        return max(self.answered_epoch, int(self.report.get("epoch", 0)))

    @property
    def runs_as(self) -> str:
        """Its process or pod as text; empty if it has none."""
        if self.pod:
            return f"pod {self.pod}"
        return "" if self.pid is None else f"process {self.pid}"

    @property
    def failing(self) -> bool:
        """Whether it is down and waiting alone will not help."""
        return bool(self.trouble[0]) or self.readiness().reason in ("BackOff", "NotAnswering")

    @property
    def ready(self) -> bool:
        """Whether it serves, with whatever settings it was started."""
        return self._readiness()[0]

    def _readiness(self) -> tuple[bool, str, str]:
        if self.stopping:
            return False, "Stopping", "it lets its subscribers go elsewhere"
        if self.trouble[0]:
            return False, *self.trouble
        if not self.runs_as:
            return self._waiting()
        if self.answer_age is None:
            return False, "Starting", f"{self.runs_as} does not answer yet"
        if self.answer_age > UNANSWERED_SECONDS:
            return False, "NotAnswering", f"{self.runs_as} no longer answers on {self.control}"
        if not self.serving:
            return (
                False,
                "WaitingForPeers",
                f"waiting for {self.waiting_for or ('its head' if self.role == 'edge' else 'its neighbours')}",
            )
        if not self.pod_ready:
            return False, "PodNotReady", f"{self.runs_as} answers, but its readiness probe does not succeed"
        return True, "Answering", f"{self.runs_as} answers on {self.control}"

    def _waiting(self) -> tuple[bool, str, str]:
        """Why nothing runs."""
        if self.waiting_seconds is None:
            return False, "Stopped", "nothing runs"
        if not self.last_end:
            return False, "Starting", "it starts as soon as the others have read its key"
        return False, "BackOff", f"it {self.last_end}; starts again after {self.waiting_seconds:.0f} s"

    def readiness(self) -> Condition:
        """Whether it serves as specified."""
        ready, reason, message = self._readiness()
        if ready and self.outdated:
            return Condition("Ready", "False", "Rolling", f"{message}, with earlier settings until it is replaced")
        return Condition("Ready", "True" if ready else "False", reason, message)


def freshness_condition(brokers: Sequence[ObservedBroker], interval_seconds: float) -> Condition:
    """Whether load reports of all brokers are recent."""
    limit = FRESH_INTERVALS * interval_seconds
    missing = [b.name for b in brokers if b.report_age is None]
    stale = [b.name for b in brokers if is_stale(b, interval_seconds)]
    if missing:
        return Condition("LoadDataFresh", "False", "NoReports", f"no load report yet from {_name_list(missing)}")
    if stale:
        return Condition("LoadDataFresh", "False", "Stale", f"no load report for {limit:g} s from {_name_list(stale)}")
    return Condition(
        "LoadDataFresh", "True", "Reporting", f"{len(brokers)} brokers report every {interval_seconds:g} s"
    )


def is_stale(broker: ObservedBroker, interval_seconds: float) -> bool:
    """Whether the last load report of a broker is too old to speak for it, or there is none."""
    return broker.report_age is None or broker.report_age > FRESH_INTERVALS * interval_seconds


def edge_status(
    edge: Mapping[str, Any], seen: ObservedBroker, interval_seconds: float, time: str, others: Sequence[Condition] = ()
) -> dict[str, Any]:
    """The status of an EdgeBroker; `others` take precedence."""
    generation = int(edge["metadata"].get("generation", 1))
    readiness = seen.readiness()
    progressing = readiness.reason in PROGRESSING_REASONS
    found = [
        readiness,
        _progressing_condition(progressing, readiness.reason if progressing else "Settled"),
        freshness_condition([seen], interval_seconds),
        *others,
    ]
    return {"observedGeneration": generation, **broker_status(seen), **merged_conditions(edge, found, time)}


KEPT_FIELDS = ("policyMemory", "leadership")
"""Of a cluster's status: others write them."""


def cluster_status(
    cluster: Mapping[str, Any],
    head: ObservedBroker,
    edges: Sequence[ObservedBroker],
    interval_seconds: float,
    time: str,
    others: Sequence[Condition] = (),
) -> dict[str, Any]:
    """The status of a BrokerCluster; what its policy remembers and who leads is kept, and `others` take precedence."""
    kept = {name: value for name, value in cluster.get("status", {}).items() if name in KEPT_FIELDS}
    generation = int(cluster["metadata"].get("generation", 1))
    brokers = [head, *edges]
    return {
        "observedGeneration": generation,
        "head": {
            "name": head.name,
            "epoch": head.epoch,
            "ready": head.ready,
            **log_status(cluster, head.report),
            **broker_status(head),
        },
        "endpoint": head.data,
        "edges": {"desired": len(edges), "ready": sum(edge.ready for edge in edges)},
        "subscribers": sum(int(edge.report.get("subscribers", 0)) for edge in edges),
        **kept,
        **merged_conditions(
            cluster, [*broker_conditions(brokers, interval_seconds), _cordon_condition(cluster, head), *others], time
        ),
    }


def _cordon_condition(cluster: Mapping[str, Any], head: ObservedBroker) -> Condition:
    """Whether the head takes new publishers."""
    if not 0 < head.epoch <= head_cordons.cordoned_epoch(dict(cluster)):
        return Condition("TakesPublishers", "True", "HeadOpen")
    text = f"{head.name} takes no new publishers until it is replaced or uncordoned"
    return Condition("TakesPublishers", "False", "HeadCordoned", text)


def fleet_status(
    fleet: Mapping[str, Any],
    brokers: Sequence[ObservedBroker],
    *,
    plain: bool,
    pid: int,
    mediator: Mapping[str, Any],
    interval_seconds: float,
    time: str,
    telemetry: Mapping[str, Any] = MappingProxyType({}),
    others: Sequence[Condition] = (),
) -> dict[str, Any]:
    """The status of a BrokerFleet; fields of the mediator are kept, and `others` take precedence."""
    old = fleet.get("status", {})
    found = [*with_load_source(broker_conditions(brokers, interval_seconds), telemetry), *others]
    kept = fleet if any(each.type == "SparkReady" for each in others) else without_condition(fleet, "SparkReady")
    return {
        "observedGeneration": int(fleet["metadata"].get("generation", 1)),
        "clusters": len({broker.cluster for broker in brokers}),
        "brokers": {"desired": len(brokers), "ready": sum(broker.ready for broker in brokers)},
        "security": "Plain" if plain else "Curve",
        "supervisor": {"pid": pid},
        "mediator": dict(mediator),
        "mediatorEpoch": old.get("mediatorEpoch", 0),
        "draining": old.get("draining", []),
        **({"telemetry": dict(telemetry)} if telemetry else {}),
        **merged_conditions(kept, found, time),
    }


def broker_status(seen: ObservedBroker) -> dict[str, Any]:
    """The fields that the status of each broker has."""
    status: dict[str, Any] = {
        "state": seen.report.get("state", "N/A") if seen.ready else "N/A",
        "profile": seen.profile,
        "endpoints": {"data": seen.data, "control": seen.control, "publicKey": seen.public_key},
        "restarts": seen.restarts,
        "load": load_summary(seen.report),
    }
    for name, value in (("pid", seen.pid), ("pod", seen.pod), ("node", seen.node)):
        if value:
            status[name] = value
    if seen.last_end:
        status["lastEnd"] = seen.last_end
    if "subscribers" in seen.report:
        status["subscribers"] = int(seen.report["subscribers"])
    return status


def load_summary(report: Mapping[str, Any]) -> dict[str, int]:
    """A load report in whole numbers; missing fields are left out."""
    scales = {
        "input_utilization": ("inputUtilizationPercent", 100),
        "output_utilization": ("outputUtilizationPercent", 100),
        "downlink_utilization": ("downlinkUtilizationPercent", 100),
        "match_delay_seconds": ("matchDelayMicroseconds", 1_000_000),
        "input_rate": ("publicationsPerSecond", 1),
        "output_rate": ("deliveriesPerSecond", 1),
        "output_bytes_per_second": ("outputBytesPerSecond", 1),
        "input_queue_delay_seconds": ("inputQueueDelayMilliseconds", 1000),
        "output_queue_delay_seconds": ("outputQueueDelayMilliseconds", 1000),
        "input_queue_messages": ("inputQueueMessages", 1),
        "output_queue_messages": ("outputQueueMessages", 1),
        "output_queue_bytes": ("outputQueueBytes", 1),
        "cpu_ratio": ("cpuPercent", 100),
        "memory_ratio": ("memoryPercent", 100),
        "subscriptions": ("subscriptions", 1),
    }
    return {
        name: round(report[key] * scale)
        for key, (name, scale) in scales.items()
        if isinstance(report.get(key), int | float)
    }


def broker_conditions(brokers: Sequence[ObservedBroker], interval_seconds: float) -> list[Condition]:
    """Conditions of a group of brokers."""
    waiting = [broker for broker in brokers if not broker.ready]
    failing = [broker for broker in waiting if broker.failing]
    moving = [broker for broker in waiting if broker not in failing]
    moving += [broker for broker in brokers if broker.ready and broker.outdated]
    degraded = Condition("Degraded", "False", "AsExpected")
    words = [f"{broker.name}: {broker.readiness().message}" for broker in failing[:3]]
    if closed := _closed_clusters(brokers):
        words.append(f"no edge of {_name_list(closed)} takes new subscribers")
    if words:
        degraded = Condition(
            "Degraded", "True", failing[0].readiness().reason if failing else "NoTarget", "; ".join(words)
        )
    reason = moving[0].readiness().reason if moving else "Settled"
    return [
        _group_readiness(brokers, waiting, failing or moving),
        degraded,
        _progressing_condition(bool(moving), reason),
        freshness_condition(brokers, interval_seconds),
    ]


def _closed_clusters(brokers: Iterable[ObservedBroker]) -> list[str]:
    """Clusters none of whose edges takes new subscribers, nor will by itself: each is cordoned, failing or leaving."""
    edges = [broker for broker in brokers if broker.role == "edge"]
    shut = {broker.cluster for broker in edges if broker.cordoned or broker.failing}
    return sorted(shut - {each.cluster for each in edges if not (each.cordoned or each.failing or each.stopping)})


def _group_readiness(
    brokers: Sequence[ObservedBroker], waiting: Sequence[ObservedBroker], first: Sequence[ObservedBroker]
) -> Condition:
    """Whether all brokers serve as specified; `first`: those that give the reason if they do not."""
    if not brokers:
        return Condition("Ready", "False", "NoBrokers", "there is no broker yet: apply a BrokerCluster")
    message = f"{len(brokers) - len(waiting)} of {len(brokers)} brokers are ready"
    if waiting:
        message += f"; not ready: {_name_list(broker.name for broker in waiting)}"
    if outdated := [broker.name for broker in brokers if broker.ready and broker.outdated]:
        message += f"; with earlier settings until they are replaced: {_name_list(outdated)}"
    if first:
        return Condition("Ready", "False", first[0].readiness().reason, message)
    return Condition("Ready", "True", "AllReady", message)


def with_load_source(found: Iterable[Condition], telemetry: Mapping[str, Any]) -> Iterator[Condition]:
    """Conditions of a fleet; `LoadDataFresh` also names the source of the figures that compare clusters."""
    source = {"Spark": "Spark's snapshot", "Fold": "the collectors' fold"}.get(telemetry.get("source", ""))
    for each in found:
        said = each.type == "LoadDataFresh" and source is not None
        yield replace(each, message=f"{each.message}; clusters are compared by {source}") if said else each


def without_condition(owner: Mapping[str, Any], type_: str) -> dict[str, Any]:
    """An object without its condition of a type that no longer applies."""
    status = owner.get("status", {})
    kept = [each for each in status.get("conditions", []) if each["type"] != type_]
    return {**owner, "status": {**status, "conditions": kept}}


def _progressing_condition(moving: bool, reason: str) -> Condition:
    return Condition("Progressing", "True" if moving else "False", reason)


def merged_conditions(owner: Mapping[str, Any], found: Iterable[Condition], time: str) -> dict[str, Any]:
    """The conditions of an object, merged with its stored ones; of one type the last given counts."""
    old = owner.get("status", {}).get("conditions", [])
    last = {condition.type: condition for condition in found}
    return {"conditions": merge_conditions(old, last.values(), int(owner["metadata"].get("generation", 1)), time)}


def _name_list(names: Iterable[str]) -> str:
    known = list(names)
    return ", ".join(known[:3]) + (f" and {len(known) - 3} more" if len(known) > 3 else "")
