"""The simulated fleet: a chain of clusters of one head and nine edges, with pods that fit no node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Object = dict[str, Any]
FLEET, CLIENT, PROFILE = "bench", "app", "small"
BROKERS_PER_CLUSTER = 10
FIRST_PORT = 21000
"""The control sockets of all simulated brokers are on one address, on ports from here on."""


def cluster(index: int) -> str:
    return f"c{index:02}"


def edge(index: int, number: int) -> str:
    return f"{cluster(index)}-edge-{number}"


def brokers(count: int) -> dict[str, int]:
    """All brokers, each with the port of its control socket; a head comes before its edges."""
    found = [
        name
        for index in range(count // BROKERS_PER_CLUSTER)
        for name in (f"{cluster(index)}-head", *(edge(index, n) for n in range(BROKERS_PER_CLUSTER - 1)))
    ]
    return {name: FIRST_PORT + number for number, name in enumerate(found)}


def objects(count: int) -> Iterator[Object]:
    """The resources that a user would apply."""
    if count % BROKERS_PER_CLUSTER or not count:
        raise ValueError(f"{count} brokers: the number must be a multiple of {BROKERS_PER_CLUSTER}")
    yield _object("BrokerFleet", FLEET, fleet())
    nowhere = [{"name": "plimsoll.dev/simulated", "value": "nowhere"}]
    yield _object("HardwareProfile", PROFILE, {"cpu": "100m", "memory": "64Mi", "nodeSelector": nowhere})
    ports = brokers(count)
    for index in range(count // BROKERS_PER_CLUSTER):
        own = {name: port for name, port in ports.items() if name.startswith(f"{cluster(index)}-")}
        yield _object("BrokerCluster", cluster(index), {
            "head": {"profile": PROFILE},
            "edges": [{"name": f"{cluster(index)}-edge", "profile": PROFILE, "replicas": BROKERS_PER_CLUSTER - 1}],
            "neighbors": [{"name": cluster(index - 1)}] if index else [],
            "listeners": {"brokers": [{"name": name, "controlPort": port} for name, port in own.items()]},
        })  # fmt: skip


def fleet(publications_per_second: int = 1000) -> Object:
    """The specification of the fleet. Its client's quota is in the authorized keys: a change rewrites them."""
    client = {"name": CLIENT, "publicationsPerSecond": str(publications_per_second)}
    return {"security": {"clients": [client]}, "defaults": {"policy": {"type": "Padres"}}}


def drain(name: str, of: str) -> Object:
    """A session that drains an edge."""
    return _object("LoadBalancingSession", name, {
        "scope": "Local", "source": {"name": of}, "action": "Drain", "mode": "Execute", "deadline": "60s",
    })  # fmt: skip


def by_trigger(name: str, of: str) -> Object:
    """A session that an edge has asked for."""
    item = drain(name, of)
    item["spec"]["trigger"] = {"broker": of, "reason": "OverloadedOutput"}
    return item


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> Object:
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}
