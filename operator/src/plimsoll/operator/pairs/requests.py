"""What is asked of each head with a standby: whether it is to have one, and whether that one is to lead now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.standby.leadership import stored_leadership
from plimsoll.core.spec import head_name
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import annotation, is_leaving
from plimsoll.operator.objects.pods import standby_key
from plimsoll.operator.reconcile.observed import ObservedObjects, is_unschedulable, pod_restart_hash


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
    """Of each head that has a standby, or has still to let it go.

    `heads`: configuration and restart hash of each head, by name. `wanted`: clusters whose specification asks for a
    standby.
    """
    for config, current in heads.values():
        if config.standby is None:
            continue
        wants = config.cluster in wanted
        cluster = observed.get("BrokerCluster", config.cluster) or {}
        yield PairRequest(
            cluster=config.cluster,
            head=head_name(config.cluster),
            wants=wants,
            hands_over=_why_hand_over(cluster, observed, config, current, wants=wants),
            has_disk=config.disk_log is not None,
            keyed=not config.security.plain,
        )


def _why_hand_over(cluster: Object, observed: ObservedObjects, head: BrokerConfig, current: str, *, wants: bool) -> str:
    """Why the process that leads is to be replaced by its standby, if that one can lead."""
    leader, standby = observed.pod(head.name), observed.standby_pod(head.name)
    if leader is None or standby is None or is_leaving(standby) or not is_pair_pod(leader):
        return ""
    if not wants:
        return "its standby is removed" if stored_leadership(cluster.get("status", {})).leader == 1 else ""
    if has_earlier_settings(standby, head, current):
        return ""  # it is replaced first
    if has_earlier_settings(leader, head, current):
        return f"pod {leader['metadata']['name']} has earlier settings"
    if is_unschedulable(observed.node_of(leader)) and not is_unschedulable(observed.node_of(standby)):
        return "its node is drained"
    return ""


def has_earlier_settings(pod: Object, config: BrokerConfig, current: str) -> bool:
    """Whether a pod has to be replaced. `current`: the restart hash of its broker.

    A process that follows dials the other one by the key that it was started with.
    """
    is_rekeyed = config.standby is not None and annotation(pod, names.STANDBY_KEY) not in ("", standby_key(config))
    return pod_restart_hash(pod) != current or is_rekeyed


def is_pair_pod(pod: Object | None) -> bool:
    """Whether the process of this pod can be one of two: it takes on a standby while it runs."""
    containers = (pod or {}).get("spec", {}).get("containers", [])
    return any(port.get("name") == names.PAIR_PORT_NAME for each in containers for port in each.get("ports", []))
