"""What is asked of each head with a standby: whether it is to have one, and whether that one is to lead now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.standby.leadership import stored_leadership
from plimsoll.core.spec import head_name
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import is_leaving
from plimsoll.operator.reconcile.observed import ObservedObjects, is_unschedulable, pod_restart_hash

PAIR_PORT_NAME = "pair"


@dataclass(frozen=True)
class PairRequest:
    """What is asked of a head with a standby; `hands_over`: why the standby is to lead now, empty if it is not to.

    `wants`: whether it is to have a standby. `has_disk`, `keyed`: as its configuration says.
    """

    cluster: str
    head: str
    wants: bool = True
    hands_over: str = ""
    has_disk: bool = False
    keyed: bool = True


def pair_requests(
    heads: Mapping[str, tuple[BrokerConfig, str]], wanted: frozenset[str], observed: ObservedObjects
) -> Iterator[PairRequest]:
    """Of each head that has a standby, or still runs as one of two.

    `heads`: configuration and restart hash of each head, by name. `wanted`: clusters whose specification asks for a
    standby.
    """
    for name, (config, current) in heads.items():
        if config.standby is None and not any(map(is_pair_pod, observed.pods(name))):
            continue
        wants = config.cluster in wanted
        cluster = observed.get("BrokerCluster", config.cluster) or {}
        yield PairRequest(
            cluster=config.cluster,
            head=head_name(config.cluster),
            wants=wants,
            hands_over=_why_hand_over(cluster, observed, name, current, wants=wants),
            has_disk=config.disk_log is not None,
            keyed=not config.security.plain,
        )


def _why_hand_over(cluster: Object, observed: ObservedObjects, head: str, current: str, *, wants: bool) -> str:
    """Why the process that leads is to be replaced by its standby, if that one can lead."""
    leader, standby = observed.pod(head), observed.standby_pod(head)
    if leader is None or standby is None or is_leaving(standby) or not is_pair_pod(leader):
        return ""
    if not wants:
        return "it is to have no standby any more" if stored_leadership(cluster.get("status", {})).leader == 1 else ""
    if pod_restart_hash(standby) != current:
        return ""  # it is replaced first
    if pod_restart_hash(leader) != current:
        return f"pod {leader['metadata']['name']} has earlier settings"
    if is_unschedulable(observed.node_of(leader)) and not is_unschedulable(observed.node_of(standby)):
        return "its node is drained"
    return ""


def is_pair_pod(pod: Object | None) -> bool:
    """Whether the process of this pod is one of two."""
    containers = (pod or {}).get("spec", {}).get("containers", [])
    return any(port.get("name") == PAIR_PORT_NAME for each in containers for port in each.get("ports", []))
