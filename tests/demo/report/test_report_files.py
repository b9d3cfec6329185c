"""The two files of a report."""

from __future__ import annotations

import json
from pathlib import Path

from plimsoll.demo.report.report_files import write_report_files


def test_a_report_replaces_the_one_before_and_leaves_nothing_beside(tmp_path: Path):
    for lost in (3, 0):
        write_report_files(tmp_path, "groups", {"lost": lost}, f"<p>{lost}</p>")
    assert json.loads((tmp_path / "groups.json").read_text()) == {"lost": 0}
    assert (tmp_path / "groups.html").read_text() == "<p>0</p>"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups.html", "groups.json"]
