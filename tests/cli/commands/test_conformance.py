"""`plimsoll conformance`: what it plays, what it prints, its exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from plimsoll.cli.main import main
from plimsoll.conformance import SCENARIOS

ADAPTER = str(Path(__file__).resolve().parents[3] / "examples" / "clients" / "conformance_client.py")
OURS = ["--", sys.executable, ADAPTER]


def test_scenarios_are_listed(capsys: pytest.CaptureFixture[str]):
    assert main(["conformance", "--list", "--profile", "simple"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [each.name for each in SCENARIOS if "simple" in each.profiles]


def test_a_client_that_keeps_to_the_rules(capsys: pytest.CaptureFixture[str]):
    assert (
        main(["conformance", "--scenario", "attach", "--scenario", "move", "--jobs", "2", "--patience", "25", *OURS])
        == 0
    )
    assert capsys.readouterr().out.splitlines()[-1] == "2 of 2 scenarios kept"


def test_a_client_that_does_not(capsys: pytest.CaptureFixture[str]):
    assert main(["conformance", "--profile", "simple", "--scenario", "move-to-ignored", "--json", *OURS]) == 1
    document = json.loads(capsys.readouterr().out)
    (found,) = document["scenarios"]
    assert (document["kept"], found["kept"], found["rule"]["section"]) == (False, False, "6.4")
    assert any("ATTACH" in line["text"] for line in found["exchange"])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([], "name the client program behind --"),
        (["--", "/no/such/program"], "/no/such/program cannot be started"),
        (["--scenario", "moves", *OURS], "profile full has no scenario 'moves'"),
        (["--profile", "simple", "--scenario", "move", *OURS], "profile simple has no scenario 'move'"),
    ],
)
def test_bad_input(given: list[str], found: str, capsys: pytest.CaptureFixture[str]):
    assert main(["conformance", *given]) == 2
    assert found in capsys.readouterr().err
