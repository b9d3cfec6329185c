"""A short soak of sessions in real processes: no delivery is lost or repeated, and nothing is left over."""

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.soak.command import main
from plimsoll.soak.session_series import runner


def options(folder: Path, sessions: int) -> list[str]:
    words = f"--sessions {sessions} --slice 60 --seed 3 --subscribers 80 --speed 4 --clients 2"
    return [*words.split(), "--report", str(folder)]


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # a fleet of seven brokers, eighty subscribers, sixty sessions, and the check for residue
def test_sessions_back_to_back_lose_nothing_and_leave_no_residue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(options(tmp_path, 60))
    printed = capsys.readouterr()
    report: dict[str, Any] = json.loads((tmp_path / runner.REPORT).read_text())
    assert code == 0, printed
    assert [report[name] for name in ("lost", "duplicated", "reordered", "orphaned", "gaps")] == [0] * 5
    assert report["sessions"] == 60
    assert report["delivered"] == report["expected"] > 0
    assert report["outcomes"]["moved"] > 0
    assert report["session_seconds_p95"] > 0
    assert report["added_latency_ms"]["count"] > 0
    # A finished series runs nothing again, and a series with other options does not resume from it.
    assert main(options(tmp_path, 60)) == 0
    assert main([*options(tmp_path, 60), "--lanes", "3"]) == 2
    assert "is of another series" in capsys.readouterr().err


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # a fleet, a hundred sessions, and faults that take seconds to recover from
def test_sessions_lose_nothing_while_edges_and_clients_are_killed_and_frozen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*options(tmp_path, 100), "--disturb", "2"])
    printed = capsys.readouterr()
    report: dict[str, Any] = json.loads((tmp_path / runner.REPORT).read_text())
    assert code == 0, printed
    assert [report[name] for name in ("lost", "duplicated", "reordered", "orphaned", "gaps")] == [0] * 5
    assert report["delivered"] >= report["expected"] > 0
    assert report["faults"]
