"""The page of a run with a group shows its claims, its steps and its consumers, in files that need no network."""

from __future__ import annotations

import json
from pathlib import Path

from plimsoll.core.verify.slice_laws import judge_slices
from plimsoll.demo.analysis.group_claims import GroupFigures, GroupLook, GroupSteps
from plimsoll.demo.group_demo import report_of
from plimsoll.demo.group_run import GroupRun
from plimsoll.demo.report.group_page import render_page, write_report


def run(*faults: str) -> GroupRun:
    looks = [GroupLook(0.5, {"fast": 6, "slow": 4}, {"fast": 120.0}, 3, 0)]
    figures = GroupFigures(judge_slices([], {}), [], looks, GroupSteps.of(100.0), 10, None)
    return GroupRun(figures, 0, list(faults))


def test_a_page_has_claims_steps_and_consumers():
    page = render_page(report_of(run(), 120.0))
    for text in ("A group of 10 slices", "items lost", "not measured", "62.0 s: late joins", "fast", "Backlog"):
        assert text in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_a_fault_is_a_failure_with_its_text(tmp_path: Path):
    report = report_of(run("edge e-0 was killed"), 120.0)
    assert report["verdict"] == "failed"
    write_report(report, tmp_path)
    assert json.loads((tmp_path / "groups.json").read_text()) == json.loads(json.dumps(report))
    assert "edge e-0 was killed" in (tmp_path / "groups.html").read_text()
