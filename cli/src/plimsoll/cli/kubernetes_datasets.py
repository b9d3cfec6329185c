"""Changes of a fleet on Kubernetes that its operator would not accept, since feeds or channels are kept where they are.

`plimsoll apply` refuses them before anything is sent. The operator judges by what it has accepted; a fleet that is not
accepted as it is stored may well be on its way back, so that is left to the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from plimsoll.core.spec.parser import parse_each
from plimsoll.core.spec.problems import ResourceProblem, SourceDocument
from plimsoll.core.spec.resources import Resource
from plimsoll.core.spec.validation.datasets import moved_datasets
from plimsoll.local.storage.object_store import ObjectMissingError

Object = dict[str, Any]


class StoredObjects(Protocol):
    """What is asked of a namespace. `patched` with `dry_run="All"` changes nothing; `get` raises ObjectMissingError."""

    def get(self, kind: str, name: str) -> Object: ...
    def objects(self, kind: str) -> Iterable[Object]: ...
    def patched(self, item: Object, **options: str) -> Object: ...


def refused_moves(place: StoredObjects, fleet: Object) -> list[ResourceProblem]:
    """What is wrong with a BrokerFleet that is to be applied. Others are asked for only if its places change."""
    try:
        before = place.get(fleet["kind"], fleet["metadata"]["name"])
    except ObjectMissingError:  # it is created
        return []
    had, has = _resource(before), _resource(place.patched(fleet, dry_run="All"))
    if had is None or has is None or had.spec.datasets == has.spec.datasets or not _is_accepted(before):
        return []
    feeds = [found.spec for found in map(_resource, place.objects("Feed")) if found is not None]
    has_channels = any(True for _ in place.objects("Channel"))
    return [*moved_datasets(had.spec.datasets, has, feeds, has_channels=has_channels)]


def _resource(item: Object) -> Resource[Any] | None:
    """The object as it is stored; None if this version cannot read it."""
    resources, problems = parse_each([SourceDocument(item)])
    return None if problems else resources[0]


def _is_accepted(item: Mapping[str, Any]) -> bool:
    conditions = item.get("status", {}).get("conditions", [])
    return any(each["type"] == "Accepted" and each["status"] == "True" for each in conditions)
