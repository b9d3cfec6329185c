"""The topics of a cluster for its status, where a policy defends deadlines: where each is, and how near its deadline.

Of a topic that several edges serve, the edge with the least time left stands for it; subscribers, deliveries and late
deliveries are of all edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.delay_sensitive.prediction import depth_threshold, rates_of
from plimsoll.core.policies.model.topic_load import TOPICS_AT_MOST, TopicLoad, reported_topics
from plimsoll.core.policies.registry import deadlines_of_spec
from plimsoll.core.spec.broker_config import policy_of
from plimsoll.core.spec.resources import Resources
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
    owners = (head.report or {}).get("topic_owners")
    loads: dict[int, list[Placed]] = {}
    for edge in edges:
        for load in reported_topics(edge.report or {}):
            loads.setdefault(load.topic, []).append((edge.name, load))
    some = sorted(loads.values(), key=_urgency)[:TOPICS_AT_MOST]
    return {"topics": [_row(policy, known, found, owners if isinstance(owners, Mapping) else {}) for found in some]}


def _left(placed: Placed) -> float:
    """What is left of the required latency; infinity without a deadline."""
    load = placed[1]
    return load.allowed_seconds - load.wait_seconds if load.required_seconds else math.inf


def _urgency(found: Sequence[Placed]) -> tuple[float, int]:
    return min(map(_left, found)), found[0][1].topic


def _row(
    policy: DelaySensitive, memory: Mapping[str, Any], found: Sequence[Placed], owners: Mapping[str, Any]
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
    threshold = depth_threshold(first, rates_of(memory, edge, first.topic), seconds)
    required = {"requiredMilliseconds": _milliseconds(first.required_seconds), "depthThreshold": math.floor(threshold)}
    return row | required


def _milliseconds(seconds: float) -> int:
    return round(1000 * seconds)


def worst_first(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of several clusters, those with the least time left first, as a share of what is required."""
    return sorted(rows, key=lambda row: (_share(row), str(row.get("name", "")), str(row.get("hash", ""))))


def _share(row: Mapping[str, Any]) -> float:
    required, latency = row.get("requiredMilliseconds"), row.get("latencyMilliseconds", 0)
    return -latency / required if isinstance(required, int) and required and isinstance(latency, int) else 0.0
