"""Resources: a fleet's objects, parsed together, and their form as mappings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from plimsoll.core.spec.field_info import described_fields
from plimsoll.core.spec.kinds import (
    API_VERSION,
    KINDS,
    AnySpec,
    BrokerClusterSpec,
    BrokerFleetSpec,
    ChannelSpec,
    EdgeBrokerSpec,
    FeedSpec,
    HardwareProfileSpec,
    LoadBalancingSessionSpec,
)
from plimsoll.core.spec.problems import Path, ResourceProblem, SourceDocument
from plimsoll.core.spec.quantities import Duration, Quantity

S_co = TypeVar("S_co", bound=AnySpec, covariant=True)


@dataclass(frozen=True)
class Resource(Generic[S_co]):
    """One object: its kind, name, labels, specification, and the document it came from."""

    kind: str
    name: str
    spec: S_co
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    owner: tuple[str, str] | None = None
    document: SourceDocument = field(default=SourceDocument({}), compare=False, repr=False)

    @property
    def subject(self) -> str:
        """`Kind/name`."""
        return f"{self.kind}/{self.name}"

    def problem(self, path: Path, found: str, remedy: str) -> ResourceProblem:
        """A problem at a path of this object."""
        return ResourceProblem(self.document.file, self.document.line_of(path), self.subject, path, found, remedy)

    def mapping(self) -> dict[str, Any]:
        """The object as Kubernetes stores it, without status; defaults are left out."""
        metadata: dict[str, Any] = {"name": self.name}
        if self.namespace:
            metadata["namespace"] = self.namespace
        if self.labels:
            metadata["labels"] = dict(self.labels)
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        if self.owner is not None:
            kind, name = self.owner
            metadata["ownerReferences"] = [{"apiVersion": API_VERSION, "kind": kind, "name": name, "controller": True}]
        return {"apiVersion": API_VERSION, "kind": self.kind, "metadata": metadata, "spec": to_mapping(self.spec)}


@dataclass(frozen=True)
class Resources:
    """The objects of one fleet, valid by themselves and together."""

    fleet: Resource[BrokerFleetSpec]
    clusters: Mapping[str, Resource[BrokerClusterSpec]]
    edges: Mapping[str, Resource[EdgeBrokerSpec]]
    profiles: Mapping[str, Resource[HardwareProfileSpec]]
    sessions: Mapping[str, Resource[LoadBalancingSessionSpec]]
    feeds: Mapping[str, Resource[FeedSpec]] = field(default_factory=dict)
    channels: Mapping[str, Resource[ChannelSpec]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Resource[AnySpec]]:
        """Objects in the order in which they can be created: referenced objects come first."""
        yield self.fleet
        for group in (self.profiles, self.clusters, self.edges, self.sessions, self.feeds, self.channels):
            yield from (group[name] for name in sorted(group))


def to_mapping(value: object, *, defaults: bool = False) -> Any:  # of the kind that the value is of
    """A specification as plain mappings, lists and scalars; values equal to defaults are left out unless `defaults`."""
    if isinstance(value, Quantity | Duration):
        return str(value)
    if isinstance(value, tuple):
        return [to_mapping(item, defaults=defaults) for item in value]
    if isinstance(value, dict):
        return dict(value)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    result = {}
    for item in described_fields(type(value)):
        part = getattr(value, item.name)
        if part is None or (not defaults and not item.required and part == item.default):
            continue
        result[item.key] = to_mapping(part, defaults=defaults)
    return result


__all__ = ["KINDS", "Resource", "Resources", "to_mapping"]
