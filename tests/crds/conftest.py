"""The definitions of this checkout on the API server that KUBECONFIG names, and a namespace there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.crds.server import CRDS, Server, namespaced
from tests.crds.structural import definitions, schema_of

GROUP = "/openapi/v3/apis/plimsoll.dev/v1alpha1"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if not os.environ.get("KUBECONFIG"):
        pytest.skip("needs a Kubernetes cluster: KUBECONFIG is not set")
    with namespaced() as found:
        apply_definitions(found)
        yield found


def apply_definitions(server: Server) -> None:
    """Retried as needed: other tests may apply theirs to this cluster, too, and an API server needs a moment."""
    until = time.monotonic() + 300
    while True:
        for definition in definitions().values():
            reply = server.apply_definition(definition)
            assert reply.accepted, reply.message
        for _ in range(20):
            if all(is_established(server, item) for item in definitions().values()) and is_served(server):
                return
            time.sleep(0.2)
        assert time.monotonic() < until, "these definitions are not served after a minute"


def is_established(server: Server, definition: dict[str, Any]) -> bool:
    reply = server.ask("GET", f"{CRDS}/{definition['metadata']['name']}")
    conditions = {each["type"]: each["status"] for each in reply.content.get("status", {}).get("conditions", [])}
    return conditions.get("Established") == "True"


def is_served(server: Server) -> bool:
    """Whether the API server publishes for our group what crds/ contains."""
    schemas = server.ask("GET", GROUP).content.get("components", {}).get("schemas", {})
    served = {name.rpartition(".")[2]: each.get("properties", {}) for name, each in schemas.items()}
    return all(
        served.get(kind, {}).get(part) == schema_of(kind)["properties"][part]
        for kind in definitions()
        for part in ("spec", "status")
    )
