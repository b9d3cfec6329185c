"""The report: what decides its verdict, and a page that is whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from plimsoll.demo.emergency.oracle import EmergencyVerdict
from plimsoll.demo.emergency.page import claims_of, plain, quantile, write_report
from plimsoll.demo.emergency.plan import EmergencyScenario, emergency_plan
from plimsoll.demo.emergency.run import EmergencyRun, cov

GOOD = EmergencyVerdict(9, 9, 0, 0, 0, 0, 0, 0, 0, ())
STATUS: dict[str, Any] = {
    "rowsIn": 3, "rowsUsed": 3, "lateRows": 0, "invalidRows": 0, "results": 9, "acceptedResults": 9,
}  # fmt: skip
LOADS = [(1.0, {"a": 9.0}), (2.0, {"a": 1.0, "b": 5.0}), (4.0, {"a": 3.0, "b": 7.0}), (4.5, {"a": 0.0, "b": 0.0})]
RUN = EmergencyRun(
    plan=emergency_plan(EmergencyScenario(people=3, reports=3, seconds=4.0)), arm="ldm", placement="nearest",
    verdict=GOOD, channels={"type": STATUS}, loads=LOADS, delays=[1.0, 2.0, 3.0],
    sessions=[{"status": {"progress": {"moved": 2}}}], front_end=5, back_end=4, results=9, reports=3, problems=[],
    wall_seconds=1.0,
)  # fmt: skip


def test_a_good_run_passes_and_both_files_say_so(tmp_path: Path):
    report = write_report(RUN, tmp_path)
    assert (report["verdict"], report["due"], report["migrations"]) == ("passed", 9, 2)
    assert (report["meanLoads"], report["cov"]) == ({"a": 2, "b": 6}, 0.5), "of the second half of the traffic"
    assert json.loads((tmp_path / "channels.json").read_text()) == json.loads(json.dumps(report))
    page = (tmp_path / "channels.html").read_text()
    assert "Passed: every result that was due came" in page
    assert "Emergency of Type" in page
    assert page.count("<rect") >= 5


def test_each_fault_fails_it():
    for name in ("missing", "wrong", "lost", "duplicated", "reordered", "unasked", "gaps"):
        changes: dict[str, Any] = {name: 1}
        assert plain(replace(RUN, verdict=replace(GOOD, **changes)))["verdict"] == "failed", name
    for changed in ({"rowsIn": 2, "rowsUsed": 2}, {"rowsUsed": 2}, {"acceptedResults": 8}):
        run = replace(RUN, channels={"type": {**STATUS, **changed}})
        assert plain(run)["verdict"] == "failed", changed
        assert sum(not each.held for each in claims_of(run)) == 1
    assert plain(replace(RUN, problems=["late"]))["verdict"] == "failed"


def test_quantiles_and_cov():
    assert [quantile([1.0, 2.0, 3.0], share) for share in (0.5, 0.95, 1.0)] == [2.0, 3.0, 3.0]
    assert quantile([], 0.5) is None
    assert cov({}) == 0.0
