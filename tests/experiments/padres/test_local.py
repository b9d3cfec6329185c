"""The experiment of PADRES 2006, 6.2, small: it runs to its end and judges every claim."""

from plimsoll.experiments.padres import local
from plimsoll.experiments.stock_world import PolicyPlan


def test_a_small_run_judges_all_claims(streams, scenario):
    result = local.run(streams, PolicyPlan(), 1, scenario=scenario, sweeps=False)
    assert len(result.claims) == 10
    assert {each.name for each in result.figures} == {"6a", "6b", "6c", "6d", "6e", "6f"}
    assert result.numbers["delay_worst_unbalanced_seconds"] >= result.numbers["delay_worst_seconds"]
    assert all(each.paper and each.ours for each in result.claims)


def test_without_a_policy_claims_do_not_hold(streams, scenario):
    """A check that cannot fail is none: without balancing no difference is within the threshold."""
    result = local.run(streams, PolicyPlan(None), 1, scenario=scenario, sweeps=False)
    held = {each.claim for each in result.claims if each.held}
    assert not held & {"B2 serves twice as many subscribers as B1 (6e)", "B4 serves ten times as many (6e)"}
    assert "Balancing shortens the time of high delays (6d)" not in held


def test_the_sweeps_have_a_row_for_each_value(streams, scenario):
    claims, figure, rows = local.scaling(streams, PolicyPlan(), scenario, (1, 2))
    assert [row["edges"] for row in rows] == [1, 2]
    assert (len(claims), figure.name) == (1, "6g")
    claims, figure, rows = local.thresholds(streams, PolicyPlan(), scenario, (0.1, 0.4))
    assert [row["trigger"] for row in rows] == [0.1, 0.4]
    assert (len(claims), figure.name) == (3, "6h")
