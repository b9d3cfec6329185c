"""A soak of some seconds with real processes: killed processes are restarted, and every delivery is accounted for."""

import json
from pathlib import Path

import pytest

from plimsoll.soak.command import REPORT, main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--sessions 5 --members 301", "--members 301: more than the 300 --subscribers"),
        ("--sessions 5 --saturated --members 151", "--saturated: --members may be at most 150 of 300"),
        ("--sessions 5 --saturated --utilization 0.5", "--utilization and --saturated exclude one another"),
    ],
)
def test_impossible_options_are_refused(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    assert message in capsys.readouterr().err


FAULTS = {"kill-edge", "freeze-edge", "freeze-head", "freeze-subscribers"}
SOAKS = [
    pytest.param(14, 1.5, FAULTS, id="14 s"),
    pytest.param(26, 3, {*FAULTS, "kill-head"}, id="26 s", marks=pytest.mark.sweep),
]


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a fleet, half a minute of traffic, and the recovery of all subscribers
@pytest.mark.parametrize(("seconds", "every", "disturbances"), SOAKS)
def test_a_short_soak_loses_nothing_outside_gaps(
    seconds: float, every: float, disturbances: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = f"--seconds {seconds} --every {every} --subscribers 60 --clients 2".split()
    options += ["--report", str(tmp_path)]
    code = main(options)
    report = json.loads((tmp_path / REPORT).read_text())
    assert code == 0, capsys.readouterr().out
    assert report["problems"] == []
    assert (report["lost"], report["duplicated"], report["reordered"]) == (0, 0, 0)
    assert report["expected"] > 0
    # A killed head's log is gone; only the gap that it reports may excuse a delivery.
    assert report["delivered"] + report["excused"] >= report["expected"]
    assert "kill-head" in disturbances or report["gaps"] == 0
    assert disturbances <= set(report["disturbances"])
