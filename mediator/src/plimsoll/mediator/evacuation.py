"""Before an edge leaves, its subscribers are moved elsewhere: pure functions from objects to what is to be done.

The moving is a session like any other, which the mediator runs; it is owned by the edge's object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.core.spec import API_VERSION, Resources, places
from plimsoll.core.spec.kinds import GROUP
from plimsoll.mediator.sessions import KIND, is_over

Object = dict[str, Any]
LABEL = f"{GROUP}/evacuates"
DEADLINE_SECONDS = 120
QUEUE_SECONDS = 60
MARGIN_SECONDS = 5.0
LONGEST_SECONDS = DEADLINE_SECONDS + QUEUE_SECONDS + MARGIN_SECONDS
"""So long an edge waits for its session at most, whatever becomes of the mediator."""


def has_refuge(wanted: Resources, edge: str, cluster: str) -> bool:
    """Whether there is an edge to which others could go: nobody goes from a cluster that is deleted as a whole."""
    others = (place for place in places(wanted) if place.role == "edge" and place.name != edge)
    return cluster in wanted.clusters and next(others, None) is not None


def session(edge: Object) -> Object:
    """The session that empties an edge. Its name is the same whenever it is made."""
    name, uid = edge["metadata"]["name"], edge["metadata"]["uid"]
    owner = {"apiVersion": API_VERSION, "kind": "EdgeBroker", "name": name, "uid": uid, "controller": True}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": f"evacuate-{name[:40].rstrip('-')}-{uid[:8]}",
            "labels": {LABEL: name},
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


def is_stale(item: Mapping[str, Any]) -> bool:
    """Whether an object is an evacuation that a fleet left open when it was stopped."""
    return LABEL in item["metadata"].get("labels", {}) and not is_over(item)


def cordoned(objects: Iterable[Object]) -> set[str]:
    """Edges that take no newcomers: as asked for, or because the mediator is draining them."""
    found: set[str] = set()
    for item in objects:
        if item["kind"] == "EdgeBroker" and item["spec"].get("cordoned", False):
            found.add(item["metadata"]["name"])
        elif item["kind"] == "BrokerFleet":
            found.update(item.get("status", {}).get("draining", []))
    return found
