"""Report cards: their five fields, and the number of subscribers under both restraints. PADRES 2006, 5.1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.policies.hand import Broker, World, named

from plimsoll.core.policies.model.broker_pair import BrokerPair
from plimsoll.core.policies.model.load import METRICS, Metric
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import PlanRejection
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.policies.padres.report_cards import OffloadGoal, ReportCard, best_report_card, objection, report_card

LIMITS = BalancingParameters()


def pair_of(world: World) -> tuple[BrokerPair, SubscriptionProfile]:
    profile = world.profile("s", "t")
    return BrokerPair(world.load("s"), world.load("t"), profile, LIMITS, LIMITS.local_trigger, {}), profile


def test_a_report_card_has_five_fields():
    """5.1: number; difference that it leaves; covered or not; rate reduced; output per subscriber.

    s: `ab` x 3 and `b` x 2: 2/s x 5 x 0.02 = 0.2. All of `ab` gone: 1/s x 2 x 0.02 = 0.04, and t has 2/s x 3 x 0.02.
    """
    brokers = {"s": Broker(0.02, served={"ab": named("x", 3), "b": named("b", 2)}), "t": Broker(0.02)}
    pair, profile = pair_of(World(2, {"ab": 3, "b": 2}, brokers))
    found = report_card(pair, profile.rows[0], 3, "input")
    assert found.subscribers == 3
    assert found.difference == pytest.approx(0.04 - 0.12)
    assert not found.is_covered
    assert found.saved_rate == pytest.approx(1.0)
    assert found.output_bytes_per_second == pytest.approx(200.0)
    assert report_card(pair, profile.rows[0], 2, "input").saved_rate == 0.0


METRIC_DIFFERENCES = st.sampled_from(METRICS)


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=4),
    METRIC_DIFFERENCES,
    st.sampled_from([0.005, 0.02, 0.05]),
)
def test_the_number_is_the_best_that_may_go(rows: list[tuple[int, int, int]], metric: Metric, cost: float):
    """By exhaustive search: of the numbers that overload no broker, none with a smaller difference is missed."""
    wants = {f"r{i}": bits for i, (bits, _, _) in enumerate(rows)}
    served = {f"r{i}": named(f"s{i}", count) for i, (_, count, _) in enumerate(rows) if count}
    other = {f"r{i}": named(f"t{i}", count) for i, (_, _, count) in enumerate(rows) if count}
    pair, profile = pair_of(World(3, wants, {"s": Broker(cost, 2000.0, served), "t": Broker(0.02, 3000.0, other)}))
    goal = OffloadGoal(metric)
    for row in profile.rows:
        found = best_report_card(pair, row, goal)
        fitting = [
            k for k in range(1, row.count + 1) if not LIMITS.thresholds.above_lower(pair.predict_move(row, k).target)
        ]
        if not fitting:
            assert isinstance(found, PlanRejection)
            assert found.kind == "WouldOverload"
            continue
        enough = [k for k in fitting if goal.is_reached(pair, pair.predict_move(row, k))]
        up_to = enough[0] if enough else fitting[-1]
        best = min(goal.distance(pair, pair.predict_move(row, k)) for k in range(1, up_to + 1))
        mine = found.prospect if isinstance(found, ReportCard) else pair.predict_move(row, found.subscribers)
        assert goal.distance(pair, mine) == pytest.approx(best, abs=1e-9)
        if isinstance(found, PlanRejection):
            k = found.subscribers
            assert objection(pair, goal, report_card(pair, row, k, metric)) == found
