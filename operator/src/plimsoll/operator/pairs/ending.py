"""A head whose standby is removed: first its first pod leads alone, as stored, then the second one ends.

Only then its configuration says that it has none: a process that starts and reads so leads at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from plimsoll.core.head.standby.leadership import stored_leadership
from plimsoll.core.spec import Resources, head_name
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref


def is_ending(cluster: Mapping[str, object] | None) -> bool:
    """Whether the store still counts on the second process of a head, whatever its specification says.

    The StatefulSet ends the second pod when it is made smaller: so the first one must lead before, and must not wait
    for the second.
    """
    status = (cluster or {}).get("status", {})
    stored = stored_leadership(status if isinstance(status, Mapping) else {})
    return stored.leader == 1 or stored.standby > 0


def has_second_pod(resources: Resources, cluster: str, stored: Mapping[Ref, Object]) -> bool:
    """Whether the head of a cluster is to have two pods, as asked for or since it cannot do without the second yet."""
    return bool(resources.clusters[cluster].spec.head.standby) or is_ending(stored.get(("BrokerCluster", cluster)))


def with_ending_pairs(resources: Resources, stored: Mapping[Ref, Object]) -> Resources:
    """The resources, with a standby for each head whose second process counts, or is still there."""
    clusters = dict(resources.clusters)
    for name, cluster in resources.clusters.items():
        is_there = ("Pod", names.pod_of(head_name(name), 1)) in stored
        if not cluster.spec.head.standby and (is_there or is_ending(stored.get(("BrokerCluster", name)))):
            head = replace(cluster.spec.head, standby=1)
            clusters[name] = replace(cluster, spec=replace(cluster.spec, head=head))
    return replace(resources, clusters=clusters)
