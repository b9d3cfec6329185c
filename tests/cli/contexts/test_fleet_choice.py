"""Which fleet a command goes to."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import asked

from plimsoll.cli.contexts.context_file import ContextFile, StoredContext, write_contexts
from plimsoll.cli.contexts.fleet_choice import (
    AddressChoice,
    FleetChoice,
    KubernetesChoice,
    LocalChoice,
    choose_fleet,
    known_names,
)
from plimsoll.cli.exit_codes import BAD_INPUT, NOT_FOUND, CommandError

STORED = {
    "prod": StoredContext(addresses=("tcp://h:1",), plain=True),
    "k": StoredContext(kubernetes="gke", namespace="ships"),
    "quotes": StoredContext(fleet="other"),
}


@pytest.fixture(autouse=True)
def contexts(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A running local fleet `default`, a kubeconfig with `kind` and `default`, and three stored contexts."""
    config = home / "config"
    config.write_text("contexts: [{name: kind}, {name: default}]")
    monkeypatch.setenv("KUBECONFIG", str(config))
    for name in ("PLIMSOLL_CONTEXT", "PLIMSOLL_FLEET", "PLIMSOLL_KUBERNETES"):
        monkeypatch.delenv(name, raising=False)
    write_contexts(ContextFile("", STORED))
    yield from (None for _ in asked.fleet())


def chosen(**given: str) -> FleetChoice:
    return choose_fleet(argparse.Namespace(**{"fleet": None, "namespace": None, "context": None, **given}))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, LocalChoice()),
        ({"fleet": "q"}, LocalChoice("q")),
        ({"namespace": "ships"}, KubernetesChoice(None, "ships")),
        ({"context": "kind"}, KubernetesChoice("kind")),
        ({"context": "kind", "namespace": "ships"}, KubernetesChoice("kind", "ships")),
        ({"context": "k"}, KubernetesChoice("gke", "ships")),
        ({"context": "k", "namespace": "boats"}, KubernetesChoice("gke", "boats")),
        ({"context": "prod"}, AddressChoice("prod", STORED["prod"])),
        ({"context": "quotes"}, LocalChoice("other")),
        ({"context": "default", "namespace": "ships"}, KubernetesChoice("default", "ships")),
    ],
)
def test_options_select(given: dict[str, str], expected: FleetChoice):
    assert chosen(**given) == expected


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("PLIMSOLL_CONTEXT", "kind", KubernetesChoice("kind")),
        ("PLIMSOLL_KUBERNETES", "1", KubernetesChoice()),
        ("PLIMSOLL_KUBERNETES", "0", AddressChoice("prod", STORED["prod"])),
        ("PLIMSOLL_FLEET", "q", LocalChoice("q")),
        ("PLIMSOLL_HOME_UNUSED", "", AddressChoice("prod", STORED["prod"])),
    ],
)
def test_the_environment_selects_before_the_context_in_use(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: FleetChoice
):
    write_contexts(ContextFile("prod", STORED))
    monkeypatch.setenv(variable, value)
    assert chosen() == expected
    assert chosen(fleet="named") == LocalChoice("named")


def test_a_namespace_is_one_of_the_kubernetes_context_in_use():
    write_contexts(ContextFile("k", STORED))
    assert chosen(namespace="boats") == KubernetesChoice("gke", "boats")
    write_contexts(ContextFile("prod", STORED))
    assert chosen(namespace="boats") == KubernetesChoice(None, "boats")


def test_a_name_that_stands_for_two_is_not_guessed(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(CommandError, match="is a local fleet and a context of the kubeconfig") as caught:
        chosen(context="default")
    assert caught.value.code == BAD_INPUT
    monkeypatch.setenv("PLIMSOLL_KUBERNETES", "1")
    assert chosen(context="default") == KubernetesChoice("default")


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({"context": "pord"}, NOT_FOUND, 'no context "pord". Did you mean "prod"?'),
        ({"context": "kind", "fleet": "q"}, BAD_INPUT, "both name a fleet"),
        ({"context": "prod", "namespace": "ships"}, BAD_INPUT, "prod is not a Kubernetes cluster"),
    ],
)
def test_what_selects_nothing_is_named(given: dict[str, str], code: int, said: str):
    with pytest.raises(CommandError, match=said.replace("?", r"\?")) as caught:
        chosen(**given)
    assert caught.value.code == code


def test_all_names_are_known():
    assert known_names() == ["default", "k", "kind", "prod", "quotes"]
