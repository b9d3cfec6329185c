"""The page of a run that was balanced: its figures, and every session with its predictions and measurements."""

import re
from typing import Any

import pytest
from tests.demo.analysis.test_balancing_result import LIMITS, SCENARIO, run
from tests.demo.analysis.test_session_outcomes import stored
from tests.demo.report.test_json_report import Page

from plimsoll.core.config import PeerBroker
from plimsoll.core.spec import parse as parse_resources
from plimsoll.demo.analysis import session_outcomes
from plimsoll.demo.analysis.balancing_result import assess_balancing
from plimsoll.demo.analysis.claims import ClaimsVerdict
from plimsoll.demo.analysis.machine_load import MachineLoad
from plimsoll.demo.fleet import DemoBroker
from plimsoll.demo.options import resource_folder
from plimsoll.demo.report import json_report
from plimsoll.demo.report.html_page import render_page
from plimsoll.local import manifests

QUIET = MachineLoad(2, 40.0, 0.9, 0.02)


@pytest.fixture
def made(make):
    return make(QUIET)


@pytest.fixture
def make(judged):
    return lambda machine, unmet=(): _report(judged, ClaimsVerdict(list(unmet), machine))


def _report(judged, claims):
    series = run(lambda second: 0.4 if second <= 12 or 20 < second <= 25 else 0.0, says=1)
    late = stored("late", 130.0, started_at=None, ended_at=None, plan=None, message="<asked> & waiting")
    rows = session_outcomes.reported_sessions([stored(), late], began_at=100.0)
    found = assess_balancing("padres", SCENARIO, LIMITS, ["b1", "b2"], series, rows)
    places: Any = (("quotes-head", "head", "b0"), ("b1", "edge", "b1"), ("b2", "edge", "b2"))
    brokers = {name: DemoBroker(name, role, profile, PeerBroker(name=name)) for name, role, profile in places}
    fleet = parse_resources(manifests.load([str(resource_folder("balancing"))]))
    return json_report.build_report(
        json_report.DemoResult(
            SCENARIO,
            fleet,
            brokers,
            series,
            judged([1, 2, 3, 4]),
            {"traffic_seconds": 40.0},
            {},
            "now",
            claims,
            found,
        )
    )


def test_the_json_has_the_keys_of_balancing(made):
    assert (made["converged_at_seconds"], made["converged_again_at_seconds"]) == (15.0, 28.0)
    assert set(made["overhead_ratio"]) == {"converging", "steady", "counted"}
    assert made["overhead_ratio"]["counted"]["steady"]["sessions"] > 0
    assert made["estimation_accuracy"]["sessions"] == 1
    wanted = {"uid", "source", "target", "action", "mode", "subscribers", "state", "duration_seconds", "predicted",
              "measured"}  # fmt: skip
    assert all(wanted <= set(row) for row in made["sessions"])


def test_the_page_has_the_figures_of_the_paper_and_is_well_formed(made):
    text = render_page(made)
    found = Page(text)
    assert found.tags.count("svg") == 10
    assert re.findall(r"figure (6[a-h])", found.words) == ["6a", "6b", "6c", "6e", "6d", "6f", "6h"]
    assert not re.search(r"https?:|//|url\(|@import", text)
    assert [tag for tag in found.tags if tag in {"script", "link", "img"}] == []


def test_each_session_stands_there_with_predicted_beside_measured(made):
    words = Page(render_page(made)).words
    assert "120 > 50 / 40 %" in words
    assert "10.0 > 4.0 / 5.0 ms" in words
    assert "<asked> & waiting" in words
    assert "at 15 s" in words


def test_claims_stand_there_as_they_were_judged(make):
    assert "All claims on balancing held." in Page(render_page(make(QUIET))).words
    text = Page(render_page(make(QUIET, ["b1 and b2 differ by <0.105>"]))).words
    assert "did not hold in this run:" in text
    assert "b1 and b2 differ by <0.105>" in text
    busy = make(MachineLoad(2, 40.0, 0.9, 1.0), ["b1 and b2 differ"])
    assert "the machine was too busy with other work (1.0 of 2 processors)" in Page(render_page(busy)).words
    assert (busy["claims"]["state"], busy["verdict"], busy["problems"]) == ("not judged", "passed", [])
    assert busy["machine_load"]["too_busy"]
