"""The demo between clusters: its options, its report of sessions, and its page. `make demo-global` runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plimsoll.core.spec import parse
from plimsoll.demo import multi_cluster
from plimsoll.demo.options import resource_folder
from plimsoll.demo.report import multi_cluster_page
from plimsoll.local import manifests


def session(name: str, requested_at: float, between: tuple[str, ...] = (), moved: int = 0) -> dict[str, Any]:
    record = {"requestedAt": requested_at, **({"between": list(between)} if between else {})}
    status = {
        "record": record, "source": "b1", "target": "b2", "phase": "Succeeded", "reason": "AllBalanced",
        "message": "", "progress": {"moved": moved},
    }  # fmt: skip
    return {"metadata": {"name": name}, "status": status}


def test_its_fleet_is_a_chain_of_four_clusters_that_are_balanced_with_one_another():
    found = parse(manifests.load([str(resource_folder("global"))]))
    assert found.fleet.spec.global_balancing.enabled
    assert {name: [near.name for near in one.spec.neighbors] for name, one in found.clusters.items()} == {
        "b1": [], "b2": ["b1"], "b3": ["b2"], "b4": ["b3"],
    }  # fmt: skip
    assert all(len(one.spec.edges) == 2 for one in found.clusters.values())
    assert multi_cluster.MULTI_CLUSTER_SCENARIO.prefer == found.clusters["b1"].spec.edges[0].name


def test_sessions_are_told_in_their_order():
    objects = [session("later", 105.0, moved=3), session("first", 101.0, ("b1", "b2"), 7), {"metadata": {"name": "x"}}]
    found = multi_cluster.session_summaries(objects, 100.0)
    assert [(one["name"], one["at_seconds"], one["between"], one["moved"]) for one in found] == [
        ("first", 1.0, True, 7), ("later", 5.0, False, 3),
    ]  # fmt: skip


def test_the_page_needs_nothing_and_shows_figures_8(tmp_path: Path):
    cluster = {
        "edges": ["b11"], "subscribers": 12,
        "last": {"input_utilization": 0.5, "output_utilization": 0.25, "match_delay_seconds": 0.002},
        "over_time": {
            "seconds": [0.0, 1.0], "input_utilization": [None, 0.5], "output_utilization": [None, 0.25],
            "match_delay_seconds": [None, 0.002],
        },
    }  # fmt: skip
    counts = dict.fromkeys(("delivered", "lost", "duplicated", "reordered", "gaps"), 0)
    report = {
        "verdict": "failed", "problems": ["<b2> is wrong"], **counts, "clusters": {"b1": cluster, "b2": cluster},
        "sessions": multi_cluster.session_summaries([session("g", 1.0, ("b1", "b2"), 7)], 0.0),
    }  # fmt: skip
    multi_cluster_page.write_report(report, tmp_path)
    text = (tmp_path / "global.html").read_text()
    assert all(f"Figure {number}" in text for number in ("8a", "8b", "8c"))
    assert "&lt;b2&gt; is wrong" in text
    assert "http" not in text.replace("http-equiv", "")
    assert json.loads((tmp_path / "global.json").read_text())["verdict"] == "failed"
