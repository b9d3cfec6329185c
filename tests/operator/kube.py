"""A namespace of its own for each test against the API server that KUBECONFIG names."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from plimsoll.operator.api import Api, ApiConflictError, ApiNotFoundError

CRDS = Path(__file__).parents[2] / "crds"


def kubeconfig() -> str:
    return os.environ["KUBECONFIG"]


@functools.cache
def definitions() -> tuple[dict[str, Any], ...]:
    """The committed definitions of the product's kinds."""
    return tuple(yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml")))


async def apply_definitions(api: Api) -> None:
    """The same for every test: applying it again changes nothing."""
    for definition in definitions():
        await api.apply(definition, retry=True)


@contextlib.asynccontextmanager
async def namespace(api: Api) -> AsyncIterator[str]:
    """A namespace that is deleted with its test; its objects are deleted with it, later."""
    name = f"plimsoll-test-{secrets.token_hex(4)}"
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        yield name
    finally:
        with contextlib.suppress(ApiConflictError, ApiNotFoundError):  # the test has deleted it
            await api.delete("Namespace", "", name, retry=True)
