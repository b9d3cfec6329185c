"""The page of a run that was balanced: its figures, and every session with what it promised and came to."""

import re

import pytest
from tests.local.demo.test_balance import LIMITS, SCENARIO, run
from tests.local.demo.test_report import Page
from tests.local.demo.test_sessions import stored

from plimsoll.core.config import Peer
from plimsoll.core.spec import parse as parse_resources
from plimsoll.local import manifests
from plimsoll.local.demo import report, sessions
from plimsoll.local.demo.balance import judge
from plimsoll.local.demo.fleet import Broker
from plimsoll.local.demo.options import resources
from plimsoll.local.demo.page import page


@pytest.fixture
def made(judged):
    series = run(lambda second: 0.4 if second <= 12 or 20 < second <= 25 else 0.0, says=1)
    late = stored("late", 130.0, started_at=None, ended_at=None, plan=None, message="<asked> & waiting")
    rows = sessions.rows([stored(), late], began_at=100.0)
    found = judge("padres", SCENARIO, LIMITS, ["b1", "b2"], series, rows)
    places = (("quotes-head", "head", "b0"), ("b1", "edge", "b1"), ("b2", "edge", "b2"))
    brokers = {name: Broker(name, role, profile, Peer(name=name)) for name, role, profile in places}  # type: ignore[arg-type]
    fleet = parse_resources(manifests.load([str(resources("balancing"))]))
    return report.build(
        report.Run(SCENARIO, fleet, brokers, series, judged([1, 2, 3, 4]), {"traffic_seconds": 40.0}, {}, "now", found)
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
    text = page(made)
    found = Page(text)
    assert found.tags.count("svg") == 10
    assert re.findall(r"figure (6[a-h])", found.words) == ["6a", "6b", "6c", "6e", "6d", "6f", "6h"]
    assert not re.search(r"https?:|//|url\(|@import", text)
    assert [tag for tag in found.tags if tag in {"script", "link", "img"}] == []


def test_each_session_stands_there_with_predicted_beside_measured(made):
    words = Page(page(made)).words
    assert "120 > 50 / 40 %" in words
    assert "10.0 > 4.0 / 5.0 ms" in words
    assert "<asked> & waiting" in words
    assert "at 15 s" in words
