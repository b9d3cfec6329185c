"""The steps that bring a fleet from its observed state to the desired one; each has its reason, for logs and Events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref


@dataclass(frozen=True)
class Apply:
    """Write an object by server-side apply."""

    item: Object
    reason: str


@dataclass(frozen=True)
class Patch:
    """Merge-patch a stored object."""

    item: Object
    patch: Mapping[str, Any]
    reason: str


@dataclass(frozen=True)
class Delete:
    """Delete an object, if it still has the uid that was observed."""

    item: Object
    reason: str
    grace_seconds: int | None = None


@dataclass(frozen=True)
class Restart:
    """Delete a broker's pod, so that its StatefulSet creates a new one."""

    broker: str
    pod: Object
    reason: str
    event: str = "Restarting"
    """The reason of the Event; a Warning if it is another one."""


@dataclass(frozen=True)
class Evacuate:
    """Create the session that moves all subscribers away from an edge, or all publishers from the head of a cluster."""

    owner: Object
    session: Object
    reason: str


@dataclass(frozen=True)
class StepBlocked:
    """An object that has to wait for something else; the reason says for what."""

    subject: Ref
    reason: str


@dataclass(frozen=True)
class NameTaken:
    """An object whose name is taken by one that the operator does not manage."""

    subject: Ref
    reason: str


ExecutableStep = Apply | Patch | Delete | Restart | Evacuate
ReconcileStep = ExecutableStep | StepBlocked | NameTaken


def subject_of(step: ReconcileStep) -> Ref:
    """The object that a step is about."""
    match step:
        case Apply(item) | Patch(item) | Delete(item):
            return str(item["kind"]), str(item["metadata"]["name"])
        case Restart(broker):
            return "Pod", broker
        case Evacuate(owner):
            return str(owner.get("kind", "EdgeBroker")), str(owner["metadata"]["name"])
        case StepBlocked(found) | NameTaken(found):
            return found
        case _:
            assert_never(step)
