"""Accuracy of predictions: what counts as an estimate, and the claims about it."""

import pytest

from plimsoll.experiments.padres import accuracy
from plimsoll.experiments.padres.accuracy import Estimate
from plimsoll.experiments.stock_world import PolicyPlan


def test_accuracy_of_one_estimate():
    assert Estimate("input_utilization", 0.4, 0.5, True, False).accuracy == pytest.approx(0.8)
    assert Estimate("input_utilization", 2.0, 0.5, True, False).accuracy == 0.0


def test_press_takes_the_place_of_the_policys_estimator():
    block = {"type": "Padres", "estimation": {"type": "Ring", "ring": {"samples": 10}, "matchDelay": "Linear"}}
    made = accuracy.with_press(PolicyPlan(block), 50).block
    assert made is not None
    assert made["estimation"] == {
        "type": "Press", "press": {"samples": 50, "timeout": "30s"}, "matchDelay": "Linear",
    }  # fmt: skip


def test_a_small_run_judges_all_claims(streams, scenario):
    result = accuracy.run(streams, PolicyPlan(), 1, scenario=scenario, samples=(1, 50))
    assert len(result.claims) == 6
    assert {each.name for each in result.figures} == {"7a", "7b"}
    assert set(result.numbers["press"]) == {"1", "50"}
