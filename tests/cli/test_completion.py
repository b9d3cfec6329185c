"""Completion as a shell asks for it: commands, options, kinds, names of objects, contexts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli import asked
from tests.cli.conftest import Run

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(home: Path, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """What is offered for a line, as the scripts of all shells ask for it."""
    monkeypatch.setenv("KUBECONFIG", str(home / "none"))

    def offered(line: str) -> list[str]:
        answer = home / "offered"
        answer.write_text("")
        asked_by = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
        for name, value in {**asked_by, "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}.items():
            monkeypatch.setenv(name, value)
        command = [sys.executable, "-m", "plimsoll.cli.main"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return [word.strip() for word in answer.read_text().split("\n")]

    return offered


def test_commands_and_options(complete: Complete):
    assert complete("plimsoll unc") == ["uncordon"]
    assert complete("plimsoll context del") == ["delete"]
    assert complete("plimsoll get eb --outp") == ["--output"]
    assert complete("plimsoll get eb -o y") == ["yaml"]


def test_kinds_and_names_of_objects(complete: Complete):
    for _ in asked.fleet():
        assert complete("plimsoll get edgeb") == ["edgebrokers"]
        assert complete("plimsoll describe eb e-") == ["e-0", "e-1"]
        assert complete("plimsoll drain w") == ["w"]
        assert complete("plimsoll logs ea") == ["east-head"]
        assert complete("plimsoll get eb --context def") == ["default"]
        assert complete("plimsoll get eb --fleet def") == ["default"]


def test_a_look_up_that_fails_offers_nothing(complete: Complete):
    assert complete("plimsoll drain w") == [""]
    assert complete("plimsoll get nothing x") == [""]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(run: Run, shell: str):
    code, out, err = run("completion", shell)
    assert (code, err) == (0, "")
    assert "plimsoll" in out
    assert "_ARGCOMPLETE" in out
