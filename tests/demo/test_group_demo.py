"""The demo of groups: a short run on processes, and its report. `make demo-groups` runs the whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plimsoll.core.spec import parse
from plimsoll.demo.analysis.group_claims import GroupSteps
from plimsoll.demo.group_demo import REPORT_FILES, SECONDS, main
from plimsoll.demo.options import resource_folder
from plimsoll.local import manifests


def test_its_fleet_has_one_group_of_ten_slices():
    found = parse(manifests.load([str(resource_folder("groups"))]))
    (cluster,) = found.clusters.values()
    (group,) = cluster.spec.consumer_groups
    assert (group.slices.count, group.slices.function) == (10, "Modulo")


def test_its_steps_are_two_intervals_of_balancing_apart_where_load_is_to_settle():
    times = GroupSteps.of(SECONDS)
    assert times.burn >= 40.0
    assert times.join - times.burn >= 20.0
    assert times.end - times.kill >= 10.0


@pytest.mark.sweep
def test_a_short_run_processes_each_item_and_leaves_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code = main(["--seconds", "6", "--report", str(tmp_path)])
    shown = capsys.readouterr().out
    assert code == 0, shown
    report = json.loads((tmp_path / "groups.json").read_text())
    assert (report["lost"], report["repeated"], report["reordered"]) == (0, 0, 0)
    assert report["published"] > 1000
    assert sum(one["finished"] for one in report["consumers"].values()) >= report["published"]
    assert len(report["claims"]) == 9
    assert {"fast", "slow"} <= set(report["looks"][0]["slices"])
    assert all((tmp_path / name).exists() for name in REPORT_FILES)
    assert "claims held" in shown
    assert not (tmp_path / "fleet").exists()
