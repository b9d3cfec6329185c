"""LoadBalancingSession objects and the mediator's values: pure functions between the two.

The status of an object holds what people read, and as `record` what a mediator goes on from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.core.session import Create, Request, Session, decode, encode, status
from plimsoll.core.spec import API_VERSION, Document, InvalidResourcesError
from plimsoll.core.spec.kinds import LoadBalancingSessionSpec
from plimsoll.core.spec.parsing import read

Object = dict[str, Any]
KIND = "LoadBalancingSession"


def request(item: Object) -> Request:
    """What an object asks for.

    Raises:
        InvalidResourcesError: the object cannot be read.

    """
    resources, problems = read([Document(item, "<store>")])
    if problems:
        raise InvalidResourcesError(problems)
    spec = resources[0].spec
    if not isinstance(spec, LoadBalancingSessionSpec):
        raise TypeError(f"a {item['kind']} is not a {KIND}")
    metadata = item["metadata"]
    return Request(
        name=metadata["name"],
        uid=metadata["uid"],
        generation=int(metadata["generation"]),
        spec=spec,
        parent=parent(item),
        deleting="deletionTimestamp" in metadata,
    )


def parent(item: Mapping[str, Any]) -> str:
    """The uid of the session that owns this one; empty without."""
    for owner in item["metadata"].get("ownerReferences", []):
        if owner.get("controller") and owner.get("kind") == KIND:
            return str(owner["uid"])
    return ""


def stored(session: Session, now: float) -> dict[str, Any]:
    """The status of a session's object."""
    return {**status(session, now), "record": encode(session)}


def record(item: Mapping[str, Any]) -> Session | None:
    """The session as it was stored, or None if no mediator has seen the object yet; raises ValueError.

    Where its names are stored apart (`planObjects`), the item is first to be made whole: `plans.joined`.
    """
    found = item.get("status", {}).get("record")
    return None if found is None else decode(found)


def is_over(item: Mapping[str, Any]) -> bool:
    """Whether the session has come to its end."""
    return "endedAt" in item.get("status", {})


def child(create: Create) -> Object:
    """The object that the mediator asks for: a child of a session, or one that an edge wants."""
    metadata: dict[str, Any] = {"name": create.name}
    if create.parent:
        owner = {"name": create.parent_name, "uid": create.parent, "controller": True}
        metadata["ownerReferences"] = [{"apiVersion": API_VERSION, "kind": KIND, **owner}]
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": dict(create.spec)}
