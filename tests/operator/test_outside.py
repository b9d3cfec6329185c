"""Clients outside the cluster connect to the addresses that listeners advertise: a node's ports, or a load balancer."""

import asyncio
import base64
import json
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from kubernetes import client as kubernetes
from kubernetes import config
from tests.operator import kube
from tests.operator.running import FLEET, Running, running

from plimsoll import client
from plimsoll.operator.objects.network import NODE_PORTS

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.images("broker"),
    pytest.mark.timeout(1200),
]

MANY = 200
OPENED_SECONDS = 300.0


def node_and_ports(count: int) -> tuple[str, list[int]]:
    """An address of a node, and ports that no Service has."""
    config.load_kube_config(kube.kubeconfig())
    api = kubernetes.CoreV1Api()
    node, services = api.list_node().items[0].to_dict(), api.list_service_for_all_namespaces().to_dict()["items"]
    addresses = {each["type"]: each["address"] for each in node["status"]["addresses"]}
    taken = {port["node_port"] for service in services for port in service["spec"]["ports"] or []}
    return addresses["InternalIP"], random.Random(2006).sample(sorted(set(NODE_PORTS) - taken), count)


async def open_load_balancer(fleet: Running, host: str) -> set[int]:
    """Play the provider of load balancers, which gives a node's own address; yields the open ports."""
    config.load_kube_config(kube.kubeconfig())
    api, opened = kubernetes.CoreV1Api(), set()
    for name in await fleet.named("Service"):
        item = await fleet.get("Service", name)
        if item["spec"]["type"] == "LoadBalancer":
            status = {"status": {"loadBalancer": {"ingress": [{"ip": host}]}}}
            await asyncio.to_thread(api.patch_namespaced_service_status, name, fleet.namespace, status)
            opened |= {port["port"] for port in item["spec"]["ports"]}
    return opened


def with_listeners(host: str, head: int, edge: int) -> str:
    brokers = "".join(
        f"\n    - {{name: {name}, advertisedHost: {host}, advertisedPort: {port}}}"
        for name, port in (("east-head", head), ("edge-0", edge))
    )
    return FLEET.replace("replicas: 3}", "replicas: 1}") + f"  listeners:\n    brokers:{brokers}\n"


async def curve(fleet: Running, identity: str) -> tuple[str, client.Curve]:
    """The address of the head and the keys, from an identity's Secret."""
    secret = await fleet.get("Secret", f"plimsoll-client-{identity}")
    data = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    head = json.loads(data["heads.json"])["east"]
    return head["endpoint"], client.Curve(secret=data["secret.key"].strip(), server=head["publicKey"])


@pytest.mark.sweep
def test_a_client_outside_publishes_and_is_served_by_ports_of_a_node(tmp_path: Path):
    host, (head, edge) = node_and_ports(2)

    async def story() -> None:
        async with running(tmp_path, with_listeners(host, head, edge)) as fleet:
            await fleet.ready(1)
            services = [await fleet.get("Service", name) for name in await fleet.named("Service")]
            opened = {port["nodePort"] for item in services for port in item["spec"]["ports"] if "nodePort" in port}
            assert opened == {head, edge}
            await serves_from_outside(fleet, f"tcp://{host}:{head}")

    asyncio.run(story())


@pytest.mark.sweep
def test_a_client_outside_publishes_and_is_served_by_a_load_balancer(tmp_path: Path):
    host, _ = node_and_ports(0)
    head, edge = 17_400, 17_401  # not in the range of node ports

    async def story() -> None:
        async with running(tmp_path, with_listeners(host, head, edge)) as fleet:
            await fleet.ready(1)
            assert await open_load_balancer(fleet, host) == {head, edge}
            await serves_from_outside(fleet, f"tcp://{host}:{head}")

    asyncio.run(story())


async def serves_from_outside(fleet: Running, head: str) -> None:
    """All that is published outside comes, in order, to a subscriber outside."""
    reading, writing = await curve(fleet, "subscriber"), await curve(fleet, "publisher")
    assert reading[0] == head
    assert await asyncio.to_thread(exchange, reading, writing) == list(range(MANY))


def exchange(reading: tuple[str, client.Curve], writing: tuple[str, client.Curve]) -> list[int]:
    """Publish, and receive; returns the received numbers, in order."""
    seen: list[int] = []
    is_done = threading.Event()

    def take(items: Sequence[object]) -> None:
        seen.extend(int(item.attributes["n"]) for item in items if isinstance(item, client.Delivery))
        if len(seen) >= MANY:
            is_done.set()

    with (
        client.Connection(reading[0], name="subscriber", security=reading[1]) as inward,
        client.Connection(writing[0], name="publisher", security=writing[1]) as outward,
    ):
        subscriber = client.Subscriber(inward, name="outside", on_batch=take)
        subscriber.subscribe("[class,=,'STOCK']", timeout=OPENED_SECONDS)
        publisher = client.Publisher(outward, name="outside")
        for number in range(MANY):
            publisher.publish({"class": "STOCK", "n": number})
        assert is_done.wait(OPENED_SECONDS), f"only {len(seen)} of {MANY} have come"
    return seen
