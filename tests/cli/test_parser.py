"""The parser: every command has a function and help, and building it loads none of them."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator

import pytest

from plimsoll.cli.parser import KIND_HELP, SIMULATED_POLICIES, parser
from plimsoll.core.spec import KINDS
from plimsoll.core.spec.types.policy import POLICY_TYPES


def commands(made: argparse.ArgumentParser, *words: str) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield (*words, name), inner
                yield from commands(inner, *words, name)


COMMANDS = dict(commands(parser()))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_has_its_function_and_its_help(words: tuple[str, ...]):
    made = COMMANDS[words]
    assert callable(made.get_default("load")())
    assert made.description
    for action in made._actions:
        assert action.help or action.choices or words in {("delete",), ("describe",), ("get",)} or action.metavar


def test_kinds_are_those_of_the_resources():
    assert ", ".join(f"{kind.name} ({kind.short})" for kind in KINDS.values()) == KIND_HELP


def test_every_policy_can_be_simulated():
    assert ("own", "none", *POLICY_TYPES, "pulsar", "delay-sensitive") == SIMULATED_POLICIES


def test_the_parser_loads_neither_resources_nor_sockets_nor_the_kubernetes_client():
    script = "import sys; from plimsoll.cli.parser import parser; parser(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    slow = {"plimsoll.core.spec", "plimsoll.core.session", "zmq", "yaml", "kubernetes", "argcomplete", "sqlite3"}
    assert slow & set(loaded) == set()
