"""The topics of a cluster for its status, where a policy defends deadlines: where each is, and how near its deadline.

Of a topic that several edges serve, the edge with the least time left stands for it; subscribers, deliveries and late
deliveries are of all edges. A deadline that no balancing can keep has a reason, and so has a topic of the policy that
nothing asks for, or that nothing publishes: its name may be misspelt. While all units of a topic are between two edges
no edge reports it, and the head alone knows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.delay_sensitive.prediction import depth_threshold, rates_of
from plimsoll.core.policies.model.topic_load import TOPIC_CHARACTERS, TOPICS_AT_MOST, TopicLoad, reported_topics
from plimsoll.core.policies.model.topic_requirements import topic_requirements
from plimsoll.core.policies.registry import deadlines_of_spec
from plimsoll.core.spec.broker_config import policy_of
from plimsoll.core.spec.resources import Resources
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.mediator.resource_status import ObservedBroker

Placed = tuple[str, TopicLoad]
"""A load, and the edge that reports it."""


def topic_status(
    resources: Resources, cluster: str, head: ObservedBroker, edges: Sequence[ObservedBroker], memory: object
) -> dict[str, Any]:
    """`topics`, those nearest to their deadline first; nothing where the policy defends none.

    `memory`: what the policy remembers of the cluster, as its status has it.
    """
    spec = policy_of(resources, cluster) if cluster in resources.clusters else None
    policy = None if spec is None else deadlines_of_spec(spec, resources.fleet.spec.time_scale_percent / 100)
    if policy is None:
        return {}
    known = memory if isinstance(memory, Mapping) else {}
    told = (head.report or {}).get("topic_owners")
    owners = told if isinstance(told, Mapping) else {}
    loads: dict[int, list[Placed]] = {}
    steps = {edge.name: policy.step_seconds(_interval(edge.report or {})) for edge in edges}
    for edge in edges:
        for load in reported_topics(edge.report or {}):
            loads.setdefault(load.topic, []).append((edge.name, load))
    some = sorted(loads.values(), key=_urgency)[:TOPICS_AT_MOST]
    rows = [_row(policy, known, found, owners, steps) for found in some]
    if len(edges) == 1 and not resources.fleet.spec.global_balancing.enabled:
        rows = [row | _alone(row) for row in rows]
    are_known = bool(edges) and all(edge.report for edge in edges)
    silent = [row for row in _unmeasured(spec, owners) if are_known and int(row["hash"], 16) not in loads]
    return {"topics": [*rows, *silent][:TOPICS_AT_MOST]}


def _unmeasured(spec: PolicySpec | None, owners: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows for the topics that the policy names, as they are where no edge reports them."""
    required = topic_requirements(spec)
    if required is None:
        return []
    return [
        {
            "hash": f"{topic:08x}", "name": name[:TOPIC_CHARACTERS], **_whereabouts(owners.get(f"{topic:08x}")),
            "requiredMilliseconds": _required(required.by_topic[topic]),
        }
        for topic, name in sorted(required.names.items())
    ]  # fmt: skip


def _whereabouts(owner: object) -> dict[str, Any]:
    """What is known of a topic that no edge reports: its edge, if the head has subscribers of it; and the reason."""
    if not isinstance(owner, str):
        return {"subscribers": 0, "reason": "NoSubscribers", "message": "no subscriber of this cluster asks for it"}
    text = f"its subscribers have just come, or are on their way to {owner}, which has not measured it yet"
    return {"edge": owner, "reason": "NotMeasured", "message": text}


def _reason(load: TopicLoad) -> dict[str, str]:
    """Why the deadline of a topic cannot be kept, or is not at stake; nothing if neither is so."""
    if load.required_seconds and load.allowed_seconds <= 0.0:
        way, brokers = _milliseconds(load.transmission_seconds), _milliseconds(load.broker_seconds)
        required = _required(load.required_seconds)
        text = f"links take {way} ms and brokers {brokers} ms without any queue; {required} ms are required"
        return {"reason": "PathTooLong", "message": text}
    if load.required_seconds and not load.input_rate and not load.depth:
        return {"reason": "NoPublications", "message": "nothing was published to it in the last report interval"}
    return {}


def _alone(row: Mapping[str, Any]) -> dict[str, str]:
    """Why a deadline in danger is not defended in a cluster with one edge; nothing if none is in danger there."""
    if "reason" in row or row["depth"] <= row.get("depthThreshold", math.inf):
        return {}
    return {"reason": "NoOtherEdge", "message": "the cluster has no other edge, and topics stay in it"}


def _left(placed: Placed) -> float:
    """What is left of the required latency; infinity without a deadline."""
    load = placed[1]
    return load.allowed_seconds - load.wait_seconds if load.required_seconds else math.inf


def _urgency(found: Sequence[Placed]) -> tuple[float, int]:
    return min(map(_left, found)), found[0][1].topic


def _interval(report: Mapping[str, Any]) -> float:
    """The seconds that a load report is about; 0 if it does not say."""
    seconds = report.get("interval_seconds")
    return float(seconds) if isinstance(seconds, int | float) and 0.0 <= seconds < math.inf else 0.0


def _row(
    policy: DelaySensitive,
    memory: Mapping[str, Any],
    found: Sequence[Placed],
    owners: Mapping[str, Any],
    steps: Mapping[str, float],
) -> dict[str, Any]:
    edge, first = min(found, key=lambda placed: (_left(placed), placed[0]))
    digits, owner = f"{first.topic:08x}", owners.get(f"{first.topic:08x}")
    loads = [load for _, load in found]
    row = {
        "hash": digits,
        "name": first.text or digits,
        "edge": owner if isinstance(owner, str) else edge,
        "subscribers": sum(load.subscribers for load in loads),
        "publicationsPerSecond": round(max(load.input_rate for load in loads)),
        "deliveriesPerSecond": round(sum(load.output_rate for load in loads)),
        "depth": first.depth,
        "latencyMilliseconds": _milliseconds(first.transmission_seconds + first.broker_seconds + first.wait_seconds),
        "late": sum(load.late for load in loads),
    }
    if not first.required_seconds:
        return row
    seconds = policy.balancing_seconds_of(first, memory)
    threshold = depth_threshold(first, rates_of(memory, edge, first.topic), seconds, steps[edge])
    required = {"requiredMilliseconds": _required(first.required_seconds), "depthThreshold": math.floor(threshold)}
    return row | required | _reason(first)


def _milliseconds(seconds: float) -> int:
    return round(1000 * seconds)


def _required(seconds: float) -> int:
    """A required latency; one below a millisecond is shown as one, since 0 would be none."""
    return max(1, _milliseconds(seconds))


def worst_first(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of several clusters, those with the least time left first, as a share of what is required."""
    return sorted(rows, key=lambda row: (_share(row), str(row.get("name", "")), str(row.get("hash", ""))))


def _share(row: Mapping[str, Any]) -> float:
    required, latency = row.get("requiredMilliseconds"), row.get("latencyMilliseconds", 0)
    return -latency / required if isinstance(required, int) and required and isinstance(latency, int) else 0.0
