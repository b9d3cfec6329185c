"""Which backend a command gets: a local store, an API server, or an address."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from plimsoll.cli import kubernetes_backend
from plimsoll.cli.address_backend import AddressBackend
from plimsoll.cli.backend import choose_backend
from plimsoll.cli.contexts.context_file import ContextFile, StoredContext, write_contexts
from plimsoll.cli.exit_codes import NOT_FOUND, CommandError


def options(**given: str) -> argparse.Namespace:
    return argparse.Namespace(**{"fleet": None, "namespace": None, "context": None, **given})


def test_a_local_fleet_is_the_default():
    with pytest.raises(CommandError, match="no fleet in") as caught:
        choose_backend(options())
    assert caught.value.code == NOT_FOUND


def test_a_namespace_is_at_an_api_server(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str | None, ...]] = []

    def found(*where: str | None) -> object:
        asked.append(where)
        return there

    there: Any = object()
    monkeypatch.setattr(kubernetes_backend.KubernetesBackend, "from_kubeconfig", found)
    assert choose_backend(options(namespace="ships")) is there
    assert asked == [("ships", None)]


def test_an_address_has_a_backend_of_its_own():
    write_contexts(ContextFile("prod", {"prod": StoredContext(addresses=("tcp://127.0.0.1:1",), plain=True)}))
    assert isinstance(choose_backend(options()), AddressBackend)
