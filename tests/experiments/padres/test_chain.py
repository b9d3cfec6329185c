"""The experiment of PADRES 2006, 6.3, small."""

from msgspec import structs

from plimsoll.experiments.padres import chain
from plimsoll.experiments.stock_world import PolicyPlan


def test_a_small_run_judges_all_claims(streams):
    scenario = structs.replace(chain.SCENARIO, seconds=400.0, subscribers=200, publishers=12)
    result = chain.run(streams, PolicyPlan(), 1, scenario=scenario, sweeps=False)
    assert len(result.claims) == 4
    assert {each.name for each in result.figures} == {"8a", "8b", "8c"}
    assert len(result.numbers["input_at_end"]) == 4


def test_the_delay_by_length_of_the_chain(streams):
    scenario = structs.replace(chain.SCENARIO, seconds=200.0, subscribers=100, publishers=8)
    claim, figure, rows = chain.lengths(streams, PolicyPlan(global_seconds=30.0), scenario, (1, 2))
    assert [row["clusters"] for row in rows] == [1, 2]
    assert figure.name == "8d"
    assert claim.paper == "yes"
