"""Clients outside the cluster come in by the addresses that listeners advertise: here ports of a node."""

import asyncio
import base64
import json
import os
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
from plimsoll.operator.network import NODE_PORTS

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif("KUBECONFIG" not in os.environ, reason="needs a Kubernetes cluster, named by KUBECONFIG"),
    pytest.mark.timeout(300),
]

MANY = 200
OPENED_SECONDS = 90.0


def node_and_ports(count: int) -> tuple[str, list[int]]:
    """An address of a node, and ports that no Service has."""
    config.load_kube_config(kube.kubeconfig())
    api = kubernetes.CoreV1Api()
    node, services = api.list_node().items[0].to_dict(), api.list_service_for_all_namespaces().to_dict()["items"]
    addresses = {each["type"]: each["address"] for each in node["status"]["addresses"]}
    taken = {port["node_port"] for service in services for port in service["spec"]["ports"] or []}
    return addresses["InternalIP"], random.Random(2006).sample(sorted(set(NODE_PORTS) - taken), count)


def with_listeners(host: str, head: int, edge: int) -> str:
    brokers = "".join(
        f"\n    - {{name: {name}, advertisedHost: {host}, advertisedPort: {port}}}"
        for name, port in (("east-head", head), ("edge-0", edge))
    )
    return FLEET.replace("replicas: 3}", "replicas: 1}") + f"  listeners:\n    brokers:{brokers}\n"


async def curve(fleet: Running, identity: str) -> tuple[str, client.Curve]:
    """Where an identity's Secret says that the head is, and the keys."""
    secret = await fleet.get("Secret", f"plimsoll-client-{identity}")
    data = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    head = json.loads(data["heads.json"])["east"]
    return head["endpoint"], client.Curve(secret=data["secret.key"].strip(), server=head["publicKey"])


def test_a_client_outside_publishes_and_is_served_by_ports_of_a_node(tmp_path: Path):
    host, (head, edge) = node_and_ports(2)

    async def story() -> None:
        async with running(tmp_path, with_listeners(host, head, edge)) as fleet:
            await fleet.ready(1)
            reading, writing = await curve(fleet, "subscriber"), await curve(fleet, "publisher")
            assert reading[0] == f"tcp://{host}:{head}"
            services = {name: await fleet.get("Service", name) for name in await fleet.named("Service")}
            opened = {
                port["nodePort"] for item in services.values() for port in item["spec"]["ports"] if "nodePort" in port
            }
            assert opened == {head, edge}
            seen = await asyncio.to_thread(exchange, reading, writing)
            assert seen == list(range(MANY))

    asyncio.run(story())


def exchange(reading: tuple[str, client.Curve], writing: tuple[str, client.Curve]) -> list[int]:
    """Publish, and take in what comes; the numbers that came, in order."""
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
