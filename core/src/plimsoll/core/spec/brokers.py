"""The brokers of a fleet: their names, roles, and the places in the resources that declare them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from plimsoll.core.config import Role
from plimsoll.core.spec.field_info import BROKER_NAME, BROKER_NAME_LENGTH
from plimsoll.core.spec.kinds import GROUP, AnySpec, BrokerClusterSpec, EdgeBrokerSpec, EdgeGroup, NamedReference
from plimsoll.core.spec.problems import Path
from plimsoll.core.spec.resources import Resource, Resources
from plimsoll.core.spec.types.cluster import LocationSpec

CLUSTER_LABEL = f"{GROUP}/cluster"
GROUP_LABEL = f"{GROUP}/edge-group"


@dataclass(frozen=True)
class DeclaredBroker:
    """One declared broker, the object that declares it, and where in the object."""

    name: str
    role: Role
    cluster: str
    profile: str
    owner: Resource[AnySpec]
    path: Path
    location: LocationSpec | None = None


def is_broker_name(name: str) -> bool:
    """Whether every object of a broker of this name can exist on Kubernetes."""
    return len(name) <= BROKER_NAME_LENGTH and re.fullmatch(BROKER_NAME, name) is not None


def head_name(cluster: str) -> str:
    """The broker that is the head of a cluster."""
    return f"{cluster}-head"


def edge_groups(cluster: BrokerClusterSpec) -> tuple[EdgeGroup, ...]:
    """The groups of a cluster, with the replicas of `scale` in the group that it applies to."""
    scale = cluster.scale
    if scale is None:
        return cluster.edges
    meant = scaled_group(cluster)
    return tuple(replace(group, replicas=scale.replicas) if group is meant else group for group in cluster.edges)


def scaled_group(cluster: BrokerClusterSpec) -> EdgeGroup | None:
    """The group that scaling applies to: the one that `scale` names, else the first with `replicas`."""
    name = cluster.scale.group if cluster.scale is not None else ""
    countable = (group for group in cluster.edges if group.replicas is not None)
    return next((group for group in countable if name in ("", group.name)), None)


def group_members(group: EdgeGroup) -> tuple[str, ...]:
    """The edges of a group; without `replicas`, one edge with the group's name. So scaling never renames an edge."""
    if group.replicas is None:
        return (group.name,)
    return tuple(f"{group.name}-{index}" for index in range(group.replicas))


def declared_brokers(resources: Resources) -> Iterator[DeclaredBroker]:
    """Every broker of the fleet in starting order: heads first, then edges."""
    for name, cluster in sorted(resources.clusters.items()):
        yield DeclaredBroker(head_name(name), "head", name, cluster.spec.head.profile, cluster, ("metadata", "name"))
    for name, cluster in sorted(resources.clusters.items()):
        for index, group in enumerate(edge_groups(cluster.spec)):
            for member in group_members(group):
                path: Path = ("spec", "edges", index, "name")
                yield DeclaredBroker(member, "edge", name, group.profile, cluster, path, group.location)
    for name, edge in sorted(resources.edges.items()):
        cluster_name = edge.spec.cluster_ref.name
        own = edge.spec.location
        yield DeclaredBroker(name, "edge", cluster_name, edge.spec.profile, edge, ("metadata", "name"), own)


def cluster_brokers(resources: Resources) -> dict[str, list[str]]:
    """The brokers of each cluster."""
    result: dict[str, list[str]] = {name: [] for name in resources.clusters}
    for place in declared_brokers(resources):
        result[place.cluster].append(place.name)
    return result


def edge_brokers(resources: Resources) -> Iterator[Resource[EdgeBrokerSpec]]:
    """Every EdgeBroker: those that clusters create, and those that users create."""
    for name, cluster in sorted(resources.clusters.items()):
        for group in edge_groups(cluster.spec):
            for member in group_members(group):
                yield Resource(
                    kind="EdgeBroker",
                    name=member,
                    spec=EdgeBrokerSpec(
                        cluster_ref=NamedReference(name=name), profile=group.profile, location=group.location
                    ),
                    labels={CLUSTER_LABEL: name, GROUP_LABEL: group.name},
                    namespace=cluster.namespace,
                    owner=("BrokerCluster", name),
                    document=cluster.document,
                )
    for _, edge in sorted(resources.edges.items()):
        yield edge
