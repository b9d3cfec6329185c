"""Programs of the checkout: found where they are installed, and said to be missing where they are not."""

import argparse
import importlib

import pytest

from plimsoll.cli.commands.checkout_program import run_program
from plimsoll.cli.commands.demo import demo
from plimsoll.cli.commands.experiment import experiment
from plimsoll.cli.exit_codes import CommandError
from plimsoll.cli.main import main


def options(*arguments: str) -> argparse.Namespace:
    return argparse.Namespace(arguments=list(arguments))


@pytest.mark.parametrize("command", [demo, experiment])
def test_their_help_is_their_own(command, capsys):
    with pytest.raises(SystemExit) as ended:
        command(options("--", "--help"))
    assert ended.value.code == 0
    assert f"plimsoll {command.__name__}" in capsys.readouterr().out


def test_arguments_reach_them_from_the_command_line(capsys):
    with pytest.raises(SystemExit):
        main(["experiment", "--help"])
    assert "--quick" in capsys.readouterr().out


@pytest.mark.parametrize(("missing", "said"), [("plimsoll.demo", "not part of the wheel"), ("pandas", "needs pandas")])
def test_what_is_missing_is_said(monkeypatch, missing, said):
    def refuse(name: str):
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(CommandError, match=said):
        run_program(options(), "plimsoll.demo", "the demo", "demo")
