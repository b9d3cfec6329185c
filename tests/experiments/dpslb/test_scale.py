"""A large group, made small: loads by the true rates, moves at rest, and what is lost."""

from __future__ import annotations

import pytest

from plimsoll.core.policies.consumer_groups.cost_balancing import CostBalancing
from plimsoll.core.policies.consumer_groups.model import SlicePlan
from plimsoll.experiments.dpslb import scale


def test_a_small_run_holds_its_claims():
    result = scale.run(1, plan=scale.small())
    assert (len(result.claims), len(result.runs)) == (6, 3)
    assert [each.claim for each in result.claims if not each.held] == []


def test_claims_fail_where_nothing_is_balanced(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CostBalancing, "balance", lambda self, consumers: SlicePlan())
    result = scale.run(1, plan=scale.small())
    assert any("within the tolerance" in each.claim and not each.held for each in result.claims)
