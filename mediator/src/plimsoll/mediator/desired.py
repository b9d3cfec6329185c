"""What should run, from what the store holds: pure functions from objects to resources and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.core.spec import KINDS as ALL_KINDS
from plimsoll.core.spec import Document, Resources, parse
from plimsoll.mediator.sessions import KIND as SESSION
from plimsoll.mediator.sessions import is_over

Object = dict[str, Any]
KINDS = tuple(kind for kind in ALL_KINDS if kind != SESSION)
"""What says which brokers run. Sessions do not, and refer to what may have gone since."""


def resources(objects: Iterable[Object]) -> Resources:
    """The fleet that stored objects ask for, without those that are being deleted.

    Raises:
        InvalidResourcesError: as `parse` does.

    """
    wanted = (item for item in objects if "deletionTimestamp" not in item["metadata"])
    return parse(Document(item, "<store>") for item in wanted)


def fingerprint(objects: Iterable[Object]) -> dict[tuple[str, str], tuple[int, bool]]:
    """Changes when a specification does, or an object comes or goes; not with status."""
    return {
        (item["kind"], item["metadata"]["name"]): (
            int(item["metadata"]["generation"]),
            "deletionTimestamp" in item["metadata"],
        )
        for item in objects
    }


def cordoned_as(new: Object, old: Mapping[str, Any] | None) -> Object:
    """What a cluster makes of an edge, with the one field that is its users' to set."""
    if old is None or not old["spec"].get("cordoned", False):
        return new
    return {**new, "spec": {**new["spec"], "cordoned": True}}


def made_by_cluster(item: Mapping[str, Any]) -> str | None:
    """The cluster that made an EdgeBroker, None for one made by hand."""
    for owner in item["metadata"].get("ownerReferences", []):
        if owner.get("controller") and owner.get("kind") == "BrokerCluster":
            return str(owner["name"])
    return None


def unsupervised(item: Object) -> Object:
    """An object as it may be shown while no supervisor runs: nobody observes what its status says, but what is over."""
    status = item.get("status")
    if not status or is_over(item):
        return item
    conditions = [
        {**condition, "status": "Unknown", "reason": "NotSupervised", "message": "the fleet does not run"}
        for condition in status.get("conditions", [])
    ]
    return {**item, "status": {**status, "state": "N/A", "conditions": conditions} if "state" in status else {
        **status, "conditions": conditions,
    }}  # fmt: skip
