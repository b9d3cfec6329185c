"""Rounds of shedding, small: every claim is judged by what was counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.experiments.pulsar import shedding


def test_a_small_run_judges_all_claims():
    result = shedding.run(1, plan=shedding.small())
    assert (len(result.claims), len(result.runs), len(result.figures)) == (12, 8, 4)
    held = {each.claim for each in result.claims if each.held}
    assert {"Ten edges at 80 % and one idle: ThresholdShedder does nothing", "A split relieves it"} <= held
    assert all(each.paper and each.ours for each in result.claims)
    assert result.plain()["runs"] == shedding.run(1, plan=shedding.small()).plain()["runs"], "a seed gives one result"


def test_claims_fail_where_nothing_is_shed_or_split(monkeypatch: pytest.MonkeyPatch):
    plain = shedding.policy
    monkeypatch.setattr(shedding, "policy", lambda bundles, seed=1, **_: plain(bundles, seed, shedder="None"))
    result = shedding.run(1, plan=replace(shedding.small(), sizes=shedding.small().sizes[:1]))
    failed = {each.claim.partition(": ")[2] or each.claim for each in result.claims if not each.held}
    assert {"A split relieves it", "AvgShedder gives the idle edge something after 2 looks",
            "the letter moves more than ours"} <= failed  # fmt: skip


def test_a_case_has_the_bundles_of_its_policy():
    with pytest.raises(ValueError, match="begins with 4 bundles, and the case with 5"):
        shedding._rounds(shedding.policy(4), 2, 1.0, 5)
