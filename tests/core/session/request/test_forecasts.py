"""Forecasts of plans: what they count beside the move, and by how much they are uncertain."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.match_delay import SubscriptionMatchDelay
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import BrokerAction, OffloadPlan, PlanMove, PlanStep
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.session.request.forecasts import edge_forecast, forecasts_of, with_newcomers
from plimsoll.core.session.session_plan import LoadFigures

QUIET = SubscriptionProfile(SampledTraffic([]), ())
SOON = BalancingParameters(stabilize_seconds=8.0 / 3.0, detection_seconds=1.0)
"""With the hand-over, the middle of what is measured is three seconds later."""


def made_of(source: BrokerLoad, target: BrokerLoad, after: BrokerLoad, *names: str) -> OffloadPlan:
    moves = (PlanStep((PlanMove("k", names, "a", "b", "why"),)),) if names else ()
    return OffloadPlan(BrokerAction("b", "output", 0.4), source, target, after, target, steps=moves)


@pytest.mark.parametrize(("rate", "uncertain"), [(1 / 6, 0.0), (150.0, 0.1)])
def test_no_more_output_is_promised_than_samples_can_show(rate: float, uncertain: float):
    """Eight samples of 1.33/s span six seconds; of 1,200/s they span 7 ms, and four subscribers may take 0.1 more."""
    traffic = SampledTraffic([SampleBlock(8, rate, 10.0)])
    names = ("x1", "x2", "x3", "x4")
    profile = SubscriptionProfile(traffic, (ProfileRow("k", 1, names),))
    source, target = (
        BrokerLoad(name=name, bandwidth=221_000.0, output_utilization=used) for name, used in (("a", 0.5), ("b", 0.05))
    )
    found, words = forecasts_of(made_of(source, target, replace(source, output_utilization=0.3), *names), profile, SOON)
    told = [forecast.after.output for forecast in found if forecast.after is not None]
    assert told == pytest.approx([0.3 + uncertain, 0.05 + uncertain], abs=0.006)
    assert ("output is uncertain" in words) == bool(uncertain)
    assert found[0].uncertain is not None
    assert found[0].uncertain.output == pytest.approx(uncertain, abs=0.006)


def test_a_source_is_promised_no_more_output_than_it_has():
    profile = SubscriptionProfile(SampledTraffic([SampleBlock(8, 150.0, 10.0)]), (ProfileRow("k", 1, ("x",)),))
    source, target = (BrokerLoad(name=name, bandwidth=1000.0, output_utilization=0.3) for name in "ab")
    found, _ = forecasts_of(made_of(source, target, replace(source, output_utilization=0.2), "x"), profile, SOON)
    assert found[0].after is not None
    assert found[0].after.output == 0.3


def growing(growth: float) -> tuple[BrokerLoad, BrokerLoad]:
    """100 subscribers at 1 ms each, 50/s, of whom 90 go with 40/s; and how many come each second."""
    before = BrokerLoad(
        name="a", subscribers=100, subscriptions=100, input_rate=50.0, match_delay_seconds=0.1, input_utilization=5.0,
        output_rate=500.0, output_bytes_per_second=1000.0, bandwidth=2000.0, output_utilization=0.5, growth=growth,
        delay=SubscriptionMatchDelay(0.0, 0.001, 100),
    )  # fmt: skip
    after = replace(
        before, subscribers=10, subscriptions=10, input_rate=10.0, match_delay_seconds=0.01, input_utilization=0.1,
        output_rate=50.0, output_bytes_per_second=100.0, output_utilization=0.05,
    )  # fmt: skip
    return before, after


def test_newcomers_count_in_what_is_promised():
    """20/s for three seconds are 60, with 60 % of what 100 had: 30/s of the 40/s that left come back."""
    before, after = growing(20.0)
    later = with_newcomers(before, after, 3.0)
    assert (later.subscribers, later.subscriptions) == (70, 70)
    assert later.input_rate == pytest.approx(40.0)
    assert later.match_delay_seconds == pytest.approx(0.07)
    assert later.input_utilization == pytest.approx(2.8)
    assert later.output_utilization == pytest.approx(0.05 + 0.6 * 0.5)
    found, words = forecasts_of(made_of(before, BrokerLoad(name="b"), after), QUIET, SOON)
    assert found[0].subscribers_after == 70
    assert found[0].after == LoadFigures(input=2.8, output=0.35, match_seconds=0.07)
    assert words == "subscribers are joining, and forecasts count 60 more at a"
    assert found[0].uncertain is not None
    assert found[0].uncertain.match_seconds == pytest.approx(0.03)
    assert found[0].uncertain.input == pytest.approx(math.hypot(1.35, 2.8 * math.sqrt(2 / 50)), rel=0.001)


def test_newcomers_bring_back_no_more_than_had_come_in():
    before, after = growing(1000.0)
    assert with_newcomers(before, after, 3.0).input_rate == 50.0


@pytest.mark.parametrize("growth", [0.0, 0.1])
def test_few_newcomers_are_not_counted(growth: float):
    before, after = growing(growth)
    assert with_newcomers(before, after, 3.0) is after


def test_forecasts_are_told_to_four_places():
    made = edge_forecast(*(BrokerLoad(name="a", input_utilization=ratio) for ratio in (0.123456, 0.056789)))
    assert (made.utilization_before, made.utilization_after) == (0.1235, 0.0568)
