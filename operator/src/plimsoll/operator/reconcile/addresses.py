"""The brokers that the mediator connects to, and the edges of each head.

Brokers are reached by the addresses of their Services, so that no name has to be resolved.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from plimsoll.core.config import PeerBroker, Role
from plimsoll.core.spec import head_name
from plimsoll.core.spec.broker_config import policy_text
from plimsoll.mediator.control_plane import ClusterEdges
from plimsoll.mediator.head_cordons import NOT_CORDONED, head_cordons
from plimsoll.operator import names
from plimsoll.operator.objects.manifest import annotation
from plimsoll.operator.reconcile.desired import DesiredFleet
from plimsoll.operator.reconcile.observed import ObservedObjects, label


def reachable_peers(observed: ObservedObjects, brokers: Mapping[str, Role]) -> dict[str, tuple[PeerBroker, Role]]:
    """The sockets of each broker that has an address, with the public key that its pod was started with."""
    found: dict[str, tuple[PeerBroker, Role]] = {}
    for name, role in brokers.items():
        service, pod = observed.get("Service", name), observed.pod(name)
        address = str((service or {}).get("spec", {}).get("clusterIP", ""))
        if service is None or pod is None or address in ("", "None"):
            continue
        ports = {each["name"]: int(each["port"]) for each in service["spec"]["ports"]}
        host = f"[{address}]" if ":" in address else address
        peer = PeerBroker(
            name=name,
            data=f"tcp://{host}:{ports['data']}",
            control=f"tcp://{host}:{ports['control']}",
            public_key=annotation(pod, names.KEY),
        )
        found[name] = (peer, role)
    return found


def cluster_edges(
    desired: DesiredFleet, observed: ObservedObjects, cordoned: Collection[str]
) -> dict[str, ClusterEdges]:
    """By head, the edges of its cluster, those of them that take no newcomers, and whether the head takes publishers.

    An edge that is no longer desired stays listed, as cordoned, until its pod is gone: it still has subscribers.
    """
    running: dict[str, str] = {}
    for kind in ("StatefulSet", "Pod"):
        for item in observed.kind(kind):
            if label(item, "app.kubernetes.io/component") == "edge":
                running[label(item, names.BROKER)] = label(item, names.CLUSTER)
    wanted = {broker.name: broker.cluster for broker in desired.brokers.values() if broker.role == "edge"}
    found: dict[str, ClusterEdges] = {}
    cordons = head_cordons(observed.kind("BrokerCluster"), cordoned)
    for cluster in desired.resources.clusters:
        edges = sorted(name for name, of in {**running, **wanted}.items() if of == cluster)
        closed = tuple(name for name in edges if name in cordoned or name not in wanted)
        head = head_name(cluster)
        policy, cordon = policy_text(desired.resources, cluster), cordons.get(head, NOT_CORDONED)
        found[head] = ClusterEdges(tuple(edges), closed, policy, cordon)
    return found
