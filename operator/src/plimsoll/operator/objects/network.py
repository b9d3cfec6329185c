"""Services, disruption budgets and network policies of brokers and collectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plimsoll.core.config import BrokerConfig
from plimsoll.core.spec.kinds import ListenerSpec
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.dataset_pods import beside
from plimsoll.operator.objects.pods import port_of
from plimsoll.sparkjobs.launch.spec import JOB_LABEL

NODE_PORTS = range(30000, 32768)
"""The default range of node ports; an API server may be configured with another one."""
OPERATOR_LABELS = {"app.kubernetes.io/name": "plimsoll-operator"}
DNS = [{"port": port, "protocol": protocol} for port in (53, 5353) for protocol in ("UDP", "TCP")]
"""Ports of DNS pods; policies match the pod's port, not the Service's, and OpenShift's resolvers listen on 5353."""


def selected_pods(config: BrokerConfig, leader: int) -> dict[str, str]:
    """The labels of the pod of a broker that others connect to; of a head, of the one of its two that leads."""
    pod = {} if config.role != "head" else {names.POD_NAME: names.pod_of(config.name, leader)}
    return {names.BROKER: config.name, **pod}


def service(config: BrokerConfig, metadata: Object, leader: int = 0) -> Object:
    """The Service of a broker. It has an address before the pod is ready, because peers connect in advance.

    `leader`: the pod of a head with a standby that leads.
    """
    ports = {"data": port_of(config.data), "control": port_of(config.control), "http": names.HTTP_PORT}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata, "name": config.name, "labels": _labels(config)},
        "spec": {
            "type": "ClusterIP",
            "publishNotReadyAddresses": True,
            "selector": selected_pods(config, leader),
            "ports": [
                {"name": name, "port": port, "targetPort": name, "protocol": "TCP"} for name, port in ports.items()
            ],
        },
    }


def external_service(config: BrokerConfig, listener: ListenerSpec, metadata: Object, leader: int = 0) -> Object | None:
    """The Service of a broker's data socket for clients outside the cluster, if it is requested.

    A port in the range of node ports is opened on every node; another one requests a load balancer. Without a port
    users route the advertised host themselves.
    """
    port = listener.advertised_port
    if not listener.advertised_host or not port:
        return None
    opened = {"name": "data", "port": port, "targetPort": "data", "protocol": "TCP"}
    spec: Object = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [opened]}
    if port in NODE_PORTS:
        opened = {**opened, "port": port_of(config.data), "nodePort": port}
        spec = {"type": "NodePort", "ports": [opened]}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata, "name": names.external_of(config.name), "labels": _labels(config)},
        "spec": {**spec, "publishNotReadyAddresses": True, "selector": selected_pods(config, leader)},
    }


def disruption_budget(fleet: str, cluster: str, *, at_most: int, metadata: Object) -> Object:
    """How many edges of a cluster may be evicted at once; with 0, only those that the operator has emptied."""
    selected = {names.CLUSTER: cluster, "app.kubernetes.io/component": "edge"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            **metadata,
            "name": f"{cluster}-edges",
            "labels": {**names.fleet_labels(fleet), names.CLUSTER: cluster},
        },
        "spec": {
            "maxUnavailable": at_most,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {
                "matchLabels": selected,
                "matchExpressions": [{"key": names.EVICTABLE, "operator": "DoesNotExist"}],
            },
        },
    }


def pair_budget(config: BrokerConfig, metadata: Object) -> Object:
    """One of the two pods of a head with a standby may be evicted while the other one is ready.

    A standby is ready once it may be promoted.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**metadata, "name": config.name, "labels": _labels(config)},
        "spec": {
            "minAvailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": {names.BROKER: config.name}},
        },
    }


def network_policy(
    fleet: str, ports: frozenset[tuple[int, int]], metadata: Object, *, has_pairs: bool = False
) -> Object:
    """Clients and Prometheus reach a broker; its control port is for brokers, collectors, channels and the operator.

    `ports`: the data and control ports in use. `has_pairs`: some head has a standby, whose processes the operator asks.
    """
    brokers, collectors = _pods(fleet, "plimsoll-broker"), _pods(fleet, "plimsoll-collector")
    driver = _pods(fleet, "plimsoll-channels")
    operator = {"namespaceSelector": {}, "podSelector": {"matchLabels": OPERATOR_LABELS}}
    data, control = sorted({data for data, _ in ports}), sorted({control for _, control in ports})
    pairs = [{"from": [operator], "ports": _ports([names.PAIR_PORT])}] if has_pairs else []
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {**metadata, "name": names.NETWORK_POLICY, "labels": names.fleet_labels(fleet)},
        "spec": {
            "podSelector": brokers["podSelector"],
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"ports": _ports([*data, names.HTTP_PORT])},
                {"from": [brokers, collectors, driver, operator], "ports": _ports(control)},
                *pairs,
            ],
            "egress": [{"to": [brokers], "ports": _ports(sorted({*data, *control}))}, {"ports": DNS}],
        },
    }


def collector_policy(fleet: str, http: int, control: frozenset[int], metadata: Object) -> Object:
    """All pods may reach a collector's one port; it may reach the control ports of brokers, and nothing else.

    Its volume is mounted by the node, to which no network policy applies.
    """
    brokers, collectors = _pods(fleet, "plimsoll-broker"), _pods(fleet, "plimsoll-collector")
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {**metadata, "name": names.COLLECTOR_POLICY, "labels": names.fleet_labels(fleet)},
        "spec": {
            "podSelector": collectors["podSelector"],
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": _ports([http])}],
            "egress": [{"to": [brokers], "ports": _ports(sorted(control))}, {"ports": DNS}],
        },
    }


def dataset_policy(
    fleet: str, http: int, brokers: Iterable[BrokerConfig], metadata: Object, *, store: bool = False
) -> Object:
    """All pods may reach the HTTP port of recorders and of the driver of channels; these may reach brokers alone.

    `store`: an object store as well, which may be at any address.
    """
    told = list(brokers)
    ports = {port_of(config.data) for config in told} | {port_of(config.control) for config in told}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {**metadata, "name": names.DATASET_POLICY, "labels": names.fleet_labels(fleet)},
        "spec": {
            "podSelector": beside(fleet),
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": _ports([http])}],
            "egress": [{"to": [_pods(fleet, "plimsoll-broker")], "ports": _ports(sorted(ports))}, {"ports": DNS}]
            if not store
            else [{}],
        },
    }


def feed_policy(fleet: str, port: int, metadata: Object) -> Object:
    """Applications may reach the port at which recorders serve their datasets, and that of recorders alone."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {**metadata, "name": names.FEED_POLICY, "labels": names.fleet_labels(fleet)},
        "spec": {
            **_pods(fleet, "plimsoll-recorder"),
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": _ports([port])}],
        },
    }


def executor_policies(fleet: str, job: str, metadata: Object) -> Iterator[Object]:
    """The driver of channels and its executors reach each other; executors reach nothing else, and nothing them.

    The driver also reaches the API server, which may be at any address. `job`: the label of the executors.
    """
    driver = _pods(fleet, "plimsoll-channels")
    executors = {"podSelector": {"matchLabels": {names.FLEET: fleet, JOB_LABEL: job}}}
    allowed: dict[str, Object] = {
        names.CHANNEL_POLICY: {**driver, "ingress": [{"from": [executors]}], "egress": [{}]},
        names.EXECUTOR_POLICY: {
            **executors,
            "ingress": [{"from": [driver, executors]}],
            "egress": [{"to": [driver, executors]}, {"ports": DNS}],
        },
    }
    for name, rules in allowed.items():
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {**metadata, "name": name, "labels": names.fleet_labels(fleet)},
            "spec": {**rules, "policyTypes": ["Ingress", "Egress"]},
        }


def _pods(fleet: str, name: str) -> Object:
    return {"podSelector": {"matchLabels": {names.FLEET: fleet, "app.kubernetes.io/name": name}}}


def _ports(numbers: list[int]) -> list[Object]:
    return [{"port": number, "protocol": "TCP"} for number in numbers]


def _labels(config: BrokerConfig) -> dict[str, str]:
    return names.broker_labels(config.fleet, config.cluster, config.name, config.role)
