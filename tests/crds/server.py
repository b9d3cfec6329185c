"""The API server that KUBECONFIG names, with plain requests: tests check its answers."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kubernetes import config

from plimsoll.core.spec import KINDS

Object = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Reply:
    """A status code, and the object, or why it was refused."""

    code: int
    content: Object

    @property
    def accepted(self) -> bool:
        return self.code < 300

    @property
    def message(self) -> str:
        return str(self.content.get("message", ""))


class Server:
    """Requests to one API server; those for objects go to one namespace."""

    def __init__(self, namespace: str) -> None:
        self._client = config.new_client_from_config(os.environ["KUBECONFIG"])
        self.namespace = namespace

    def ask(self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **query: str) -> Reply:
        headers = {"Accept": query.pop("accept", "application/json"), "Content-Type": kind}
        method, url, headers, _, _ = self._client.param_serialize(
            method, path, query_params=list(query.items()), header_params=headers, auth_settings=["BearerToken"]
        )
        payload = None if body is None else json.dumps(body)
        pool = self._client.rest_client.pool_manager
        found = pool.request(method, url, body=payload, headers=headers, timeout=30.0)
        return Reply(found.status, json.loads(found.data))

    def path(self, kind: str, name: str = "", sub: str = "") -> str:
        parts = ["/apis/plimsoll.dev/v1alpha1/namespaces", self.namespace, KINDS[kind].plural, name, sub]
        return "/".join(part for part in parts if part)

    def create(self, content: Object, *, dry: bool = False, validation: str = "Strict") -> Reply:
        query = {"fieldValidation": validation, **({"dryRun": "All"} if dry else {})}
        return self.ask("POST", self.path(content["kind"]), content, **query)

    def get(self, kind: str, name: str) -> Object:
        reply = self.ask("GET", self.path(kind, name))
        assert reply.accepted, reply.message
        return reply.content

    def patch(self, kind: str, name: str, patch: Object, *, sub: str = "", dry: bool = False) -> Reply:
        """A merge patch."""
        query = {"dryRun": "All"} if dry else {}
        return self.ask("PATCH", self.path(kind, name, sub), patch, kind="application/merge-patch+json", **query)

    def apply_definition(self, definition: Object) -> Reply:
        """Server-side, as charts and users do; the same for every test."""
        name = definition["metadata"]["name"]
        query = {"fieldManager": "plimsoll-tests", "force": "true"}
        return self.ask("PATCH", f"{CRDS}/{name}", definition, kind="application/apply-patch+yaml", **query)


@contextmanager
def namespaced() -> Iterator[Server]:
    """A server with a namespace of its own, which is deleted at the end."""
    name = f"plimsoll-test-{secrets.token_hex(4)}"
    server = Server(name)
    reply = server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert reply.accepted, reply.message
    try:
        yield server
    finally:
        server.ask("DELETE", f"/api/v1/namespaces/{name}")
