"""The dashboards are made from their source, are complete, and ask for what is exported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
from tests.helm.conftest import CHART, ROOT, Render
from tests.helm.exported import selectors, unknown

from plimsoll.operator.process import CANARY_LABEL

FILES = sorted((CHART / "files" / "dashboards").glob("*.json"))
DASHBOARDS: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in FILES}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OF_GRAFANA = {"__rate_interval", "__range", "__all", "datasource"}


def panels(name: str) -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARDS[name]["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str]]:
    """The title and expression of each query."""
    for name in DASHBOARDS:
        for panel in panels(name):
            for target in panel["targets"]:
                yield f"{name}: {panel['title']} {target['refId']}", target["expr"]


QUERIES = dict(queries())


@pytest.fixture(params=DASHBOARDS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_there_are_five_made_from_their_source():
    assert set(DASHBOARDS) == {"fleet", "sessions", "telemetry", "operator", "datasets"}
    made = [sys.executable, "scripts/make_dashboards.py", "--check"]
    done = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), "make chart"


def test_selectors_are_found():
    text = 'max by (a) (rate(plimsoll_x_total{b=~"$c", d!="e"}[5m])) / up > 0 or {__name__=~"p_(x|y)_z", k="l"}'
    assert list(selectors(text)) == [
        ("plimsoll_x_total", {"b", "d"}),
        ("up", set()),
        ("p_x_z", {"k"}),
        ("p_y_z", {"k"}),
    ]


def test_what_nothing_exports_is_found():
    assert unknown("rate(plimsoll_broker_mesages_total[5m])") == ["plimsoll_broker_mesages_total"]
    assert unknown('plimsoll_broker_state{kind="OK"} > 0') == ["plimsoll_broker_state{kind}"]


@pytest.mark.parametrize("title", QUERIES)
def test_a_query_asks_for_what_is_exported(title: str):
    assert list(selectors(QUERIES[title])) or QUERIES[title].startswith("vector(")
    assert unknown(QUERIES[title]) == []


def test_a_dashboard_is_complete(name: str):
    dashboard = DASHBOARDS[name]
    assert dashboard["uid"] == f"plimsoll-{name}"
    assert dashboard["schemaVersion"] == 39
    assert dashboard["title"]
    assert dashboard["description"].endswith(".")
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


def test_a_panel_has_a_source_queries_a_unit_and_a_sentence(name: str):
    for panel in panels(name):
        title = panel["title"]
        assert panel["description"].endswith("."), title
        assert panel["datasource"] == SOURCE
        assert panel["targets"], title
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references), title
        assert all(target["datasource"] == SOURCE for target in panel["targets"])
        assert all(target["expr"].strip() and target["legendFormat"] for target in panel["targets"]), title
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"], title
        assert defaults["noValue"], title
        assert defaults["thresholds"]["steps"][0]["value"] is None, title


def test_panels_lie_on_the_grid_without_overlap(name: str):
    places = [(panel["gridPos"], panel["title"]) for panel in DASHBOARDS[name]["panels"]]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place, _ in places)
    for (one, first), (two, second) in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= two["x"] or two["x"] + two["w"] <= one["x"]
            or one["y"] + one["h"] <= two["y"] or two["y"] + two["h"] <= one["y"]
        )  # fmt: skip
        assert apart, (first, second)


def test_variables_are_used_and_known(name: str):
    text = json.dumps(DASHBOARDS[name])
    known = {item["name"] for item in DASHBOARDS[name]["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", text)) - OF_GRAFANA
    assert used == known - {"datasource"}
    for item in DASHBOARDS[name]["templating"]["list"]:
        if item["type"] == "query":
            assert unknown(re.sub(r"^label_values\((.*), \w+\)$", r"\1", item["definition"])) == []


def test_titles_are_unique_within_a_row(name: str):
    titles: list[str] = []
    for panel in [*DASHBOARDS[name]["panels"], {"type": "row"}]:
        if panel["type"] == "row":
            assert len(set(titles)) == len(titles)
            titles = []
        else:
            titles.append(panel["title"])


def test_what_was_promised_stands_beside_what_was_measured():
    legends = {panel["title"]: {target["legendFormat"] for target in panel["targets"]} for panel in panels("sessions")}
    assert {"promised", "measured"} <= legends["Time of a hand-over"]
    assert any("edge_utilization_ratio" in expr and "by (value)" in expr for expr in QUERIES.values())


def dashboard_maps(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ConfigMaps with a dashboard; the operator has one of its own."""
    return [item for item in objects if item["kind"] == "ConfigMap" and CANARY_LABEL not in item["metadata"]["labels"]]


def test_the_chart_renders_them_if_asked(render: Render):
    assert not dashboard_maps(render())
    given = {"enabled": True, "namespace": "seen", "annotations": {"grafana_folder": "Plimsoll"}}
    maps = dashboard_maps(render(dashboards=given))
    assert {item["metadata"]["name"] for item in maps} == {f"plimsoll-dashboard-{name}" for name in DASHBOARDS}
    for item in maps:
        assert item["metadata"]["namespace"] == "seen"
        assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert item["metadata"]["annotations"] == {"grafana_folder": "Plimsoll"}
        ((file, text),) = item["data"].items()
        assert json.loads(text) == DASHBOARDS[file.removeprefix("plimsoll-").removesuffix(".json")]
