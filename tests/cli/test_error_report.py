"""What a command's error comes to: a message and an exit code."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from plimsoll.cli.error_report import EXTRA_OF_MODULE, report
from plimsoll.cli.exit_codes import BAD_INPUT, CONFLICT, FAILED, NOT_FOUND, CommandError
from plimsoll.core.spec import InvalidResourcesError, ResourceProblem
from plimsoll.local.runtime import FleetChangeRefusedError
from plimsoll.local.storage.object_store import ObjectConflictError

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
PROBLEM = ResourceProblem("a.yaml", None, "BrokerCluster/east", ("spec",), "it is empty", "Fill it.")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            CommandError(NOT_FOUND, "no edge", "one\ntwo"),
            NOT_FOUND,
            "plimsoll: no edge\none\ntwo\n",
        ),
        (ObjectConflictError("it is there"), CONFLICT, "plimsoll: it is there\n"),
        (FleetChangeRefusedError([PROBLEM]), CONFLICT, "plimsoll: 1 change refused; nothing was changed\n"),
        (InvalidResourcesError([PROBLEM] * 2), BAD_INPUT, "plimsoll: 2 problems; nothing was started or changed\n"),
        (
            ModuleNotFoundError("no", name="kubernetes.client"),
            FAILED,
            "plimsoll: this command needs the Python package kubernetes, which is not installed: "
            "run pip install 'plimsoll-operator[cluster]'\n",
        ),
    ],
)
def test_a_message_and_an_exit_code(error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]):
    assert report(error) == code
    assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize("error", [ValueError("x"), ModuleNotFoundError("no", name="plimsoll.nothing")])
def test_a_fault_of_the_program_is_none_of_these(error: Exception):
    assert report(error) is None


def test_extras_are_those_of_the_wheel():
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    for module, extra in EXTRA_OF_MODULE.items():
        assert any(line.startswith(module.replace("_", "-")) for line in extras[extra]), module


def test_text_that_is_not_unicode_is_bad_input(capsys: pytest.CaptureFixture[str]):
    try:
        "\udcff".encode()
    except UnicodeEncodeError as fault:
        found = ValueError("subscriber 'x' cannot be sent")
        found.__cause__ = fault
        for error in (fault, found):
            assert report(error) == BAD_INPUT
            assert "is not valid Unicode" in capsys.readouterr().err
