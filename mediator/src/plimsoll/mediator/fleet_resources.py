"""A fleet's resources from stored objects, and back: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.core.spec import KINDS as ALL_KINDS
from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.mediator.session_objects import SESSION_KIND as SESSION
from plimsoll.mediator.session_objects import is_over

Object = dict[str, Any]
FLEET_KINDS = tuple(kind for kind in ALL_KINDS if kind != SESSION)
"""The kinds that describe a fleet; sessions do not, and may name brokers that no longer exist."""

BROKER_KINDS = tuple(kind for kind in FLEET_KINDS if kind not in ("Feed", "Channel"))
"""Those that determine which brokers run."""


def fleet_resources(objects: Iterable[Object]) -> Resources:
    """The fleet that stored objects describe, without those being deleted.

    Raises:
        InvalidResourcesError: as `parse` does.

    """
    wanted = (item for item in objects if "deletionTimestamp" not in item["metadata"])
    return parse(SourceDocument(item, "<store>") for item in wanted)


def fingerprint(objects: Iterable[Object]) -> dict[tuple[str, str], tuple[int, bool]]:
    """A hash that changes with any spec, and when objects are created or deleted; not with a status."""
    return {
        (item["kind"], item["metadata"]["name"]): (
            int(item["metadata"]["generation"]),
            "deletionTimestamp" in item["metadata"],
        )
        for item in objects
    }


def with_cordon_of(new: Object, old: Mapping[str, Any] | None) -> Object:
    """The EdgeBroker of an edge of a cluster; `cordoned` is kept, as users set it."""
    if old is None or not old["spec"].get("cordoned", False):
        return new
    return {**new, "spec": {**new["spec"], "cordoned": True}}


def with_head_cordon_of(new: Object, old: Mapping[str, Any] | None) -> Object:
    """A BrokerCluster that is applied again; the cordon of its head stays unless the new one says otherwise."""
    written = None if old is None else old["spec"].get("head", {}).get("cordonedEpoch")
    if new["kind"] != "BrokerCluster" or written is None or "cordonedEpoch" in new["spec"]["head"]:
        return new
    return {**new, "spec": {**new["spec"], "head": {**new["spec"]["head"], "cordonedEpoch": written}}}


def owning_cluster(item: Mapping[str, Any]) -> str | None:
    """The cluster that created an EdgeBroker; None if a user created it."""
    for owner in item["metadata"].get("ownerReferences", []):
        if owner.get("controller") and owner.get("kind") == "BrokerCluster":
            return str(owner["name"])
    return None


def unsupervised(item: Object) -> Object:
    """An object as shown while no supervisor runs: its conditions are Unknown, except those of ended sessions."""
    return with_unknown_conditions(item, "NotSupervised", "the fleet does not run")


def aged(item: Object, seconds: int) -> Object:
    """An object whose status says how old it is; one without a status has none still."""
    status = item.get("status")
    return {**item, "status": {**status, "writtenSecondsAgo": seconds}} if status else item


def with_unknown_conditions(item: Object, reason: str, message: str) -> Object:
    """An object whose status is out of date: its conditions are Unknown, except those of ended sessions."""
    status = item.get("status")
    if not status or is_over(item):
        return item
    conditions = [
        {**condition, "status": "Unknown", "reason": reason, "message": message}
        for condition in status.get("conditions", [])
    ]
    return {**item, "status": {**status, "state": "N/A", "conditions": conditions} if "state" in status else {
        **status, "conditions": conditions,
    }}  # fmt: skip
