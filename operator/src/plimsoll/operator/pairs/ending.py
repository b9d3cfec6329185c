"""A head that is to have no standby any more keeps its two pods until the first one leads alone, as stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from plimsoll.core.head.standby.leadership import stored_leadership
from plimsoll.core.spec import Resources
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


def with_ending_pairs(resources: Resources, stored: Mapping[Ref, Object]) -> Resources:
    """The resources, with a standby for each head that cannot do without its second process yet."""
    clusters = dict(resources.clusters)
    for name, cluster in resources.clusters.items():
        if not cluster.spec.head.standby and is_ending(stored.get(("BrokerCluster", name))):
            head = replace(cluster.spec.head, standby=1)
            clusters[name] = replace(cluster, spec=replace(cluster.spec, head=head))
    return replace(resources, clusters=clusters)
