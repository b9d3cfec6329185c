"""The steps by which a fleet becomes what it should be; each with its reason, for events and logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.operator.names import Object
from plimsoll.operator.objects import Ref


@dataclass(frozen=True)
class Apply:
    """Write an object."""

    item: Object
    reason: str


@dataclass(frozen=True)
class Patch:
    """Change a part of a stored object."""

    item: Object
    patch: Mapping[str, Any]
    reason: str


@dataclass(frozen=True)
class Delete:
    """Ask for the deletion of an object, in the life that was seen."""

    item: Object
    reason: str
    grace_seconds: int | None = None


@dataclass(frozen=True)
class Restart:
    """Delete a broker's pod, so that its StatefulSet makes it anew."""

    broker: str
    pod: Object
    reason: str


@dataclass(frozen=True)
class Evacuate:
    """Ask for the session that empties an edge."""

    edge: Object
    session: Object
    reason: str


@dataclass(frozen=True)
class Wait:
    """Nothing is done about this until something else has happened."""

    subject: Ref
    reason: str


@dataclass(frozen=True)
class Taken:
    """A name that is needed belongs to somebody else."""

    subject: Ref
    reason: str


Change = Apply | Patch | Delete | Restart | Evacuate | Wait | Taken


def subject(change: Change) -> Ref:
    """What a change is about."""
    match change:
        case Apply(item) | Patch(item) | Delete(item):
            return str(item["kind"]), str(item["metadata"]["name"])
        case Restart(broker):
            return "Pod", broker
        case Evacuate(edge):
            return "EdgeBroker", str(edge["metadata"]["name"])
        case Wait(found) | Taken(found):
            return found
