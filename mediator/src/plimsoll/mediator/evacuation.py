"""Evacuation: before an edge is removed, a session moves its subscribers elsewhere; before a head is replaced or
removed, one moves its publishers. Pure functions.

It is an ordinary session that the mediator runs; its owner is the EdgeBroker, or the BrokerCluster of the head.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.core.spec import API_VERSION, Resources, declared_brokers, head_name
from plimsoll.core.spec.head_tree import linked_clusters
from plimsoll.mediator.session_objects import EVACUATION_LABEL, SESSION_KIND, is_over

Object = dict[str, Any]
DEADLINE_SECONDS = 120
QUEUE_SECONDS = 60
MARGIN_SECONDS = 5.0
HEAD_DEADLINE_SECONDS = 60
HEAD_QUEUE_SECONDS = 30
LONGEST_HEAD_SECONDS = HEAD_DEADLINE_SECONDS + HEAD_QUEUE_SECONDS + MARGIN_SECONDS
"""How long a head waits for its session at most: its publishers go on afterwards, if it takes longer."""
LONGEST_SECONDS = DEADLINE_SECONDS + QUEUE_SECONDS + MARGIN_SECONDS
"""How long an edge waits for its session at most, even without a mediator."""


def has_drain_target(wanted: Resources, edge: str, cluster: str) -> bool:
    """Whether another edge could take the subscribers, over links; never if the whole cluster is deleted."""
    linked = linked_clusters(wanted.clusters, cluster)
    others = (place for place in declared_brokers(wanted) if place.role == "edge" and place.name != edge)
    return cluster in wanted.clusters and any(place.cluster in linked for place in others)


def evacuation_session(edge: Object) -> Object:
    """The session that empties an edge. Its name depends on the edge only, so it is created once."""
    name, uid = edge["metadata"]["name"], edge["metadata"]["uid"]
    owner = {"apiVersion": API_VERSION, "kind": "EdgeBroker", "name": name, "uid": uid, "controller": True}
    return {
        "apiVersion": API_VERSION,
        "kind": SESSION_KIND,
        "metadata": {
            "name": f"evacuate-{name[:40].rstrip('-')}-{uid[:8]}",
            "labels": {EVACUATION_LABEL: name},
            "ownerReferences": [owner],
        },
        "spec": {
            "scope": "Global",
            "source": {"name": name},
            "action": "Drain",
            "mode": "Execute",
            "limits": {"queueFor": f"{QUEUE_SECONDS}s"},
            "deadline": f"{DEADLINE_SECONDS}s",
        },
    }


def has_other_head(wanted: Resources, cluster: str) -> bool:
    """Whether another head could take the publishers of this cluster's head, over links."""
    return any(name != cluster for name in linked_clusters(wanted.clusters, cluster))


def head_evacuation_session(cluster: Object, name: str) -> Object:
    """The session of this name that moves all publishers of a cluster's head to other heads."""
    head, uid = cluster["metadata"]["name"], cluster["metadata"]["uid"]
    owner = {"apiVersion": API_VERSION, "kind": "BrokerCluster", "name": head, "uid": uid, "controller": True}
    return {
        "apiVersion": API_VERSION,
        "kind": SESSION_KIND,
        "metadata": {"name": name, "labels": {EVACUATION_LABEL: head_name(head)}, "ownerReferences": [owner]},
        "spec": {
            "scope": "Global",
            "source": {"name": head},
            "action": "MovePublishers",
            "select": {"sharePercent": 100},
            "mode": "Execute",
            "limits": {"queueFor": f"{HEAD_QUEUE_SECONDS}s"},
            "deadline": f"{HEAD_DEADLINE_SECONDS}s",
        },
    }


def is_stale(item: Mapping[str, Any]) -> bool:
    """Whether an object is an evacuation that was open when its fleet was stopped."""
    return EVACUATION_LABEL in item["metadata"].get("labels", {}) and not is_over(item)


def cordoned_edges(objects: Iterable[Object]) -> set[str]:
    """Edges that take no new subscribers: cordoned by their spec, or being drained by the mediator."""
    found: set[str] = set()
    for item in objects:
        if item["kind"] == "EdgeBroker" and item["spec"].get("cordoned", False):
            found.add(item["metadata"]["name"])
        elif item["kind"] == "BrokerFleet":
            found.update(item.get("status", {}).get("draining", []))
    return found
