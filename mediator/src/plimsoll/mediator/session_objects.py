"""LoadBalancingSession objects and the mediator's values: pure functions between the two.

The status of an object has a part for people, and as `record` the state that a mediator resumes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from plimsoll.core.session import CreateSession, Session, SessionRequest, decode, encode, status
from plimsoll.core.session.queue_order import Origin, Turn, turn
from plimsoll.core.spec import API_VERSION, InvalidResourcesError, SourceDocument
from plimsoll.core.spec.kinds import GROUP, LoadBalancingSessionSpec
from plimsoll.core.spec.parser import parse_each

Object = dict[str, Any]
SESSION_KIND = "LoadBalancingSession"
EVACUATION_LABEL = f"{GROUP}/evacuates"


def session_request(item: Object) -> SessionRequest:
    """The request of a session's object.

    Raises:
        InvalidResourcesError: the object cannot be read.

    """
    resources, problems = parse_each([SourceDocument(item, "<store>")])
    if problems:
        raise InvalidResourcesError(problems)
    spec = resources[0].spec
    if not isinstance(spec, LoadBalancingSessionSpec):
        raise TypeError(f"a {item['kind']} is not a {SESSION_KIND}")
    metadata = item["metadata"]
    return SessionRequest(
        name=metadata["name"],
        uid=metadata["uid"],
        generation=int(metadata["generation"]),
        spec=spec,
        parent=parent_uid(item),
        deleting="deletionTimestamp" in metadata,
        evacuates=evacuates(item),
    )


def parent_uid(item: Mapping[str, Any]) -> str:
    """The uid of the session that owns this one; empty if none does."""
    for owner in item["metadata"].get("ownerReferences", []):
        if owner.get("controller") and owner.get("kind") == SESSION_KIND:
            return str(owner["uid"])
    return ""


def evacuates(item: Mapping[str, Any]) -> bool:
    """Whether a session empties an edge that leaves or restarts."""
    return EVACUATION_LABEL in item["metadata"].get("labels", {})


def first_turn(item: Mapping[str, Any], parent: Session | None) -> Turn:
    """The turn of an object that the mediator has not taken in yet, by the time of its creation."""
    origin: Origin = "user" if item.get("spec", {}).get("trigger") is None else "trigger"
    if parent is not None:
        origin = parent.origin
    elif evacuates(item):
        origin = "evacuation"
    created = item["metadata"].get("creationTimestamp")
    at = datetime.fromisoformat(created).timestamp() if created else 0.0
    return turn(origin, at, item["metadata"]["uid"])


def stored_status(session: Session, now: float) -> dict[str, Any]:
    """The status of a session's object."""
    return {**status(session, now), "record": encode(session)}


def stored_session(item: Mapping[str, Any]) -> Session | None:
    """The stored session, or None if no mediator has seen the object yet; raises ValueError.

    If its names are stored apart (`planObjects`), the item must first be completed by `plan_storage`.
    """
    found = item.get("status", {}).get("record")
    return None if found is None else decode(found)


def is_over(item: Mapping[str, Any]) -> bool:
    """Whether the session has ended."""
    return "endedAt" in item.get("status", {})


def child_object(create: CreateSession) -> Object:
    """The object of a session that the mediator creates: a child of another one, or one that an edge triggered."""
    metadata: dict[str, Any] = {"name": create.name}
    if create.parent:
        owner = {"name": create.parent_name, "uid": create.parent, "controller": True}
        metadata["ownerReferences"] = [{"apiVersion": API_VERSION, "kind": SESSION_KIND, **owner}]
    return {"apiVersion": API_VERSION, "kind": SESSION_KIND, "metadata": metadata, "spec": dict(create.spec)}
