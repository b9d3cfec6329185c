"""Shares, a burning consumer, joins and leaves, small: every claim is judged by what was counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.core.policies.consumer_groups.cost_balancing import CostBalancing
from plimsoll.core.policies.consumer_groups.model import SlicePlan
from plimsoll.experiments.dpslb import balance


def test_a_small_run_judges_all_claims():
    result = balance.run(1, plan=balance.small())
    assert (len(result.claims), len(result.figures), len(result.runs)) == (10, 2, 2)
    failed = [each.claim for each in result.claims if not each.held]
    assert failed == ["Each session predicts the loads of its consumers, of unequal speed"]
    assert result.plain()["runs"] == balance.run(1, plan=balance.small()).plain()["runs"], "a seed gives one result"


def test_claims_fail_where_nothing_is_balanced(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CostBalancing, "balance", lambda self, consumers: SlicePlan())
    result = balance.run(1, plan=replace(balance.small(), counted=30.0))
    failed = {each.claim for each in result.claims if not each.held}
    assert "Slices 0 to 5 and 6 to 9 are 60 and 40 % of the items (figure 11)" in failed
    assert "A consumer that burns its processor loses slices (3.3)" in failed
