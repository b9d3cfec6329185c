"""Which brokers a fleet consists of: their names, roles, and the places in the resources that ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from plimsoll.core.config import Role
from plimsoll.core.spec.kinds import GROUP, AnySpec, BrokerClusterSpec, EdgeBrokerSpec, EdgeGroup, NamedReference
from plimsoll.core.spec.problems import Path
from plimsoll.core.spec.resources import Resource, Resources

CLUSTER_LABEL = f"{GROUP}/cluster"
GROUP_LABEL = f"{GROUP}/edge-group"


@dataclass(frozen=True)
class Place:
    """One broker that is asked for, by which object and where in it."""

    name: str
    role: Role
    cluster: str
    profile: str
    owner: Resource[AnySpec]
    path: Path


def head_name(cluster: str) -> str:
    """The broker that is the head of a cluster."""
    return f"{cluster}-head"


def groups(cluster: BrokerClusterSpec) -> tuple[EdgeGroup, ...]:
    """The groups of a cluster, the one that `scale` means with as many edges as that says."""
    scale = cluster.scale
    if scale is None:
        return cluster.edges
    meant = scaled(cluster)
    return tuple(replace(group, replicas=scale.replicas) if group is meant else group for group in cluster.edges)


def scaled(cluster: BrokerClusterSpec) -> EdgeGroup | None:
    """The group that scaling means: the one that `scale` names, or else the first with `replicas`."""
    name = cluster.scale.group if cluster.scale is not None else ""
    countable = (group for group in cluster.edges if group.replicas is not None)
    return next((group for group in countable if name in ("", group.name)), None)


def group_members(group: EdgeGroup) -> tuple[str, ...]:
    """The edges of a group; without `replicas` one edge of the group's name, so that scaling never renames one."""
    if group.replicas is None:
        return (group.name,)
    return tuple(f"{group.name}-{index}" for index in range(group.replicas))


def places(resources: Resources) -> Iterator[Place]:
    """Every broker of the fleet in the order of starting: heads first, then edges."""
    for name, cluster in sorted(resources.clusters.items()):
        yield Place(head_name(name), "head", name, cluster.spec.head.profile, cluster, ("metadata", "name"))
    for name, cluster in sorted(resources.clusters.items()):
        for index, group in enumerate(groups(cluster.spec)):
            for member in group_members(group):
                yield Place(member, "edge", name, group.profile, cluster, ("spec", "edges", index, "name"))
    for name, edge in sorted(resources.edges.items()):
        cluster_name = edge.spec.cluster_ref.name
        yield Place(name, "edge", cluster_name, edge.spec.profile, edge, ("metadata", "name"))


def members(resources: Resources) -> dict[str, list[str]]:
    """The brokers of each cluster."""
    result: dict[str, list[str]] = {name: [] for name in resources.clusters}
    for place in places(resources):
        result[place.cluster].append(place.name)
    return result


def edge_brokers(resources: Resources) -> Iterator[Resource[EdgeBrokerSpec]]:
    """Every EdgeBroker: those that clusters make, and those made by hand."""
    for name, cluster in sorted(resources.clusters.items()):
        for group in groups(cluster.spec):
            for member in group_members(group):
                yield Resource(
                    kind="EdgeBroker",
                    name=member,
                    spec=EdgeBrokerSpec(cluster_ref=NamedReference(name=name), profile=group.profile),
                    labels={CLUSTER_LABEL: name, GROUP_LABEL: group.name},
                    namespace=cluster.namespace,
                    owner=("BrokerCluster", name),
                    document=cluster.document,
                )
    for _, edge in sorted(resources.edges.items()):
        yield edge
