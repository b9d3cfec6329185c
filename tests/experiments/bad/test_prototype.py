"""The prototype's arms, small: it runs to its end and judges every claim by what was measured."""

from dataclasses import replace

from plimsoll.experiments.bad import prototype

SMALL = replace(prototype.small(), subscribers=20, seconds=150.0, reports=200, joined_seconds=40.0)


def test_the_arms_are_the_papers_eight_and_our_shuffle():
    found = prototype.arms(1800.0)
    assert len(found) == 9
    assert {(arm.placement, arm.migration, arm.shuffle) for arm in found[:8]} == {
        (placement, *scheme)
        for placement in ("Nearest", "RoundRobin")
        for scheme in (("None", "None"), ("LoadBased", "None"), ("SimilarityBased", "None"), ("LoadBased", "Greedy"))
    }
    assert found[8].ours_at == 900.0


def test_a_small_run_judges_all_claims():
    result = prototype.run(1, plan=SMALL)
    assert (len(result.claims), len(result.runs), len(result.figures)) == (8, 9, 10)
    assert all(each.paper and each.ours for each in result.claims)
    assert not result.claims[0].held  # 20 subscribers have not 2,200 subscriptions
    assert not any(row["failed"] for row in result.runs)


def test_without_balancing_claims_do_not_hold(monkeypatch):
    """A check that cannot fail is none."""
    monkeypatch.setattr(prototype, "SCHEMES", tuple((name, "None", "None") for name, *_ in prototype.SCHEMES))
    assert not any(each.held for each in prototype.run(1, plan=SMALL).claims)
