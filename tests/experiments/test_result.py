"""A result as the JSON file has it."""

import json

from plimsoll.experiments.page import lines, page
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.pages.charts import Chart, ChartLine

CHART = Chart("Load", "ratio", [ChartLine("b1", 1, [(0.0, 0.5), (1.0, None)])])
RESULT = ExperimentResult(
    "x", "A <title>", "Padres", 7, [Claim("it falls", "2", "1.9", True), Claim("it rises", "3", "1", False)],
    [Figure("6a", CHART, "caption")], {"n": 1}, ("a note",),
)  # fmt: skip


def test_the_json_has_claims_seed_policy_and_time():
    plain = json.loads(json.dumps(RESULT.plain()))
    assert plain["claims"][1] == {"claim": "it rises", "paper": "3", "ours": "1", "held": False}
    assert (plain["seed"], plain["policy"], plain["wall_seconds"]) == (7, "Padres", 0.0)
    assert plain["figures"][0]["lines"][0]["points"] == [[0.0, 0.5], [1.0, None]]
    assert RESULT.held == 1


def test_the_page_shows_each_claim_and_escapes_text():
    text = page(RESULT)
    assert "not held" in text
    assert "A &lt;title&gt;" in text
    assert "1 of 2 claims held" in text


def test_the_terminal_shows_what_does_not_hold():
    assert any("NOT HELD" in line and "it rises" in line for line in lines(RESULT))
