"""The page of the demo of deadlines: claims, late deliveries by topic and policy, moves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plimsoll.demo.report import deadline_page


def run(late: int, **own: Any) -> dict[str, Any]:
    series = {"seconds": [-0.5, 0.5], "output_utilization": [0.0, 0.7]}
    return {
        "problems": [], "violations": [], "late": late, "delivered": 100, "moves": [],
        "topics": {"t8": {"delivered": 60, "late": late}, "t9": {"delivered": 40, "late": 0}},
        "late_over_time": [(0.0, float(late))], "longest_over_time": [(0, 0.25)], "depths": [(0.5, 3.0)],
        "brokers": {"b1": {"series": series}}, **own,
    }  # fmt: skip


MOVE = {"at_seconds": 10.0, "ended_at_seconds": 10.4, "from": "b1", "to": "b0", "topics": {"t1": 8}}
REPORT: dict[str, Any] = {
    "verdict": "passed", "problems": [], "published": 1000, "expected": 100, "delivered": 100, "lost": 0,
    "duplicated": 0, "reordered": 0, "gaps": 0, "burst_at_seconds": 8.0,
    "claims": [{"claim": "deliveries <lost>", "value": 0, "bound": "<= 0", "held": True}],
    "required_seconds": {"t8": 0.4, "t9": 0.35}, "runs": {"DelaySensitive": run(0, moves=[MOVE]), "none": run(37)},
}  # fmt: skip


def test_it_shows_claims_late_deliveries_and_moves(tmp_path: Path):
    deadline_page.write_report(REPORT, tmp_path)
    page = (tmp_path / "deadlines.html").read_text()
    assert json.loads((tmp_path / "deadlines.json").read_text())["runs"]["none"]["late"] == 37
    assert "Passed: nothing lost, repeated or reordered." in page
    assert "deliveries &lt;lost&gt;" in page
    assert "DelaySensitive, 10.0 to 10.4 s: 8 of t1 from b1 to b0" in page
    assert "none: nothing moved" in page
    assert "<td>t8</td><td>400 ms</td><td>0</td><td>37</td>" in page


def test_the_terminal_shows_topics_that_were_late_and_the_sum():
    lines = deadline_page.late_lines(REPORT)
    assert [line.split()[0] for line in lines] == ["late", "t8", "all"]
    assert lines[1].split() == ["t8", "400", "ms", "0", "37"]
    assert lines[2].endswith("37 of 100")


def test_a_failure_comes_first():
    page = deadline_page.render_page({**REPORT, "verdict": "failed", "problems": ["none: 1 deliveries were lost"]})
    assert page.index("Failed.") < page.index("none: 1 deliveries were lost") < page.index("Claims")
