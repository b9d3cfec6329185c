"""The command line prints totals, broken laws, and the command that replays a failed run."""

from __future__ import annotations

import pytest

from plimsoll.core.edge.machine import Edge
from plimsoll.simulator.cli import main


def test_a_series_prints_its_totals(capsys: pytest.CaptureFixture[str]):
    assert main(["--scenario", "calm", "--seeds", "3", "--from", "5"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split()[:3] == ["scenario", "seeds", "events"]
    assert printed[1].split()[:2] == ["calm", "3"]
    assert printed[1].split()[-1] == "0"
    assert printed[-1].endswith("events/s")


def test_totals_do_not_depend_on_the_number_of_processes(capsys: pytest.CaptureFixture[str]):
    assert main(["--seeds", "4", "--scenario", "calm", "--jobs", "2"]) == 0
    together = capsys.readouterr().out.splitlines()[1]
    assert main(["--seeds", "4", "--scenario", "calm"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == together


def test_a_broken_law_is_printed_with_its_replay(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Edge, "deliver", lambda self, pub, piece: None)
    assert main(["--scenario", "calm", "--seeds", "1", "--from", "2"]) == 1
    printed = capsys.readouterr().out
    assert "FAILED calm seed 2: I1" in printed
    assert "replay: python -m plimsoll.simulator --scenario calm --seed 2 --trace" in printed
    assert "it still fails with" in printed
    assert main(["--scenario", "calm", "--seed", "2"]) == 1
    assert "was lost" in capsys.readouterr().out


def test_a_trace_has_frames_and_the_outcome(capsys: pytest.CaptureFixture[str]):
    assert main(["--scenario", "calm", "--seed", "1", "-v"]) == 0
    printed = capsys.readouterr().out
    assert "Hello(" in printed
    assert "calm seed 1:" in printed
    assert "digest" in printed


@pytest.mark.parametrize("arguments", [["--seeds", "0"], ["--scenario", "no-such"], ["--jobs", "x"]])
def test_bad_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2
    assert "error" in capsys.readouterr().err
