"""Report cards: their five fields, and the number of subscribers under both restraints. PADRES 2006, 5.1."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.policies.hand import Broker, World, named

from plimsoll.core.policies.model.broker_pair import BrokerPair
from plimsoll.core.policies.model.load import METRICS, Metric
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import PlanRejection
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.policies.padres.report_cards import (
    OffloadGoal,
    ReportCard,
    best_report_card,
    objection,
    relief_level,
    report_card,
)

LIMITS = BalancingParameters()
LETTER = replace(LIMITS, rules="Paper")
QUICK = 1e-5
"""So fast that input and delay do not matter."""


def pair_of(world: World, limits: BalancingParameters = LIMITS) -> tuple[BrokerPair, SubscriptionProfile]:
    profile, loads = world.profile("s", "t"), [world.load(name) for name in world.brokers]
    return BrokerPair(world.load("s"), world.load("t"), profile, limits, limits.local_trigger, {}, None, loads), profile


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
    """By exhaustive search: of the numbers that overload no broker, none with a smaller difference is missed.

    The letter of the paper tries one number; we take the best of those without an objection.
    """
    wants = {f"r{i}": bits for i, (bits, _, _) in enumerate(rows)}
    served = {f"r{i}": named(f"s{i}", count) for i, (_, count, _) in enumerate(rows) if count}
    other = {f"r{i}": named(f"t{i}", count) for i, (_, _, count) in enumerate(rows) if count}
    world = World(3, wants, {"s": Broker(cost, 2000.0, served), "t": Broker(0.02, 3000.0, other), "u": Broker()})
    goal = OffloadGoal(metric)
    for limits in (LETTER, LIMITS):
        pair, profile = pair_of(world, limits)
        for row in profile.rows:
            found = best_report_card(pair, row, goal)
            fitting = [
                k
                for k in range(1, row.count + 1)
                if not LIMITS.thresholds.above_lower(pair.predict_move(row, k).target)
            ]
            if not fitting:
                assert isinstance(found, PlanRejection)
                assert found.kind == "WouldOverload"
                continue
            enough = [k for k in fitting if goal.is_reached(pair, pair.predict_move(row, k))]
            counts = range(1, (enough[0] if enough else fitting[-1]) + 1)
            free = [k for k in counts if objection(pair, goal, report_card(pair, row, k, metric)) is None]
            if isinstance(found, PlanRejection):
                k = found.subscribers
                assert objection(pair, goal, report_card(pair, row, k, metric)) == found
                assert limits is LETTER or not free, (free, found)
                continue
            among = counts if limits is LETTER else free
            best = min(goal.distance(pair, pair.predict_move(row, k)) for k in among)
            assert goal.distance(pair, found.prospect) == pytest.approx(best, abs=1e-9)
            assert found.subscribers in free


def test_fewer_go_if_the_best_number_may_not():
    """Eight at s, at 100 of 1000 B/s each; t has 4000 B/s and twice the delay. For output six or seven would be best.

    Six would bring t's delay to 0.12 s and leave 0.02 s at s: by N_f 1.0 apart, and before it was 0.8. Five: 0.1 and
    0.03 s, 0.7 apart. So five go, and by the letter none, as one number is tried.
    """
    world = World(1, {"a": 1}, {"s": Broker(0.01, 1000.0, {"a": named("a", 8)}), "t": Broker(0.02, 4000.0)})
    pair, profile = pair_of(world)
    found = best_report_card(pair, profile.rows[0], OffloadGoal("output"))
    assert isinstance(found, ReportCard)
    assert found.subscribers == 5


def test_output_is_not_evened_out_at_the_expense_of_others():
    """One of six goes: s sends 0.25 of its bandwidth instead of 0.3, and t 100 of 350 B/s, 0.286, instead of nothing.

    Beyond the trigger, squared: s and t were 0.04 apart and are not now. But s and each of the others were 0.04 and are
    0.0225, and t and each of them 0.0345: with three others that is 0.051 more. By the letter that does not count.
    """
    others = {name: Broker(QUICK, 2000.0) for name in "uvw"}
    brokers = {"s": Broker(QUICK, 2000.0, {"a": named("a", 6)}), "t": Broker(QUICK, 350.0), **others}
    world, goal = World(1, {"a": 1}, brokers), OffloadGoal("output")
    pair, profile = pair_of(world)
    found = best_report_card(pair, profile.rows[0], goal)
    assert isinstance(found, PlanRejection)
    assert found.kind == "Unstable"
    assert "theirs to the other brokers" in found.reason
    for one in (pair_of(replace(world, brokers={name: brokers[name] for name in "st"}))[0], pair_of(world, LETTER)[0]):
        assert isinstance(best_report_card(one, profile.rows[0], goal), ReportCard)


@pytest.mark.parametrize(("cost", "bandwidth"), [(0.004, 7000.0), (0.001, 7500.0)])
def test_input_is_not_evened_out_by_much_output(cost: float, bandwidth: float):
    """Two at s take in 60/s. One of them would bring t's output from 0 to 0.857, which is above 0.85, for an input of
    0.48; or to 0.8, for an input that is 0.02 beyond the trigger.
    """
    brokers = {"s": Broker(cost, 1e5, {"a": named("a", 2)}), "t": Broker(cost, bandwidth)}
    world = World(60, {"a": (1 << 60) - 1}, brokers)
    pair, profile = pair_of(world)
    found = best_report_card(pair, profile.rows[0], OffloadGoal("input"))
    assert isinstance(found, PlanRejection)
    assert found.kind == "Unstable"
    letter = best_report_card(pair_of(world, LETTER)[0], profile.rows[0], OffloadGoal("input"))
    assert isinstance(letter, ReportCard)
    assert letter.prospect.target.output_utilization > 0.79


def test_input_goes_where_output_stays_low():
    """As above, with room for 10,000 B/s at t: 0.6 of output for 0.24 of input."""
    brokers = {"s": Broker(0.004, 1e5, {"a": named("a", 2)}), "t": Broker(0.004, 10_000.0)}
    pair, profile = pair_of(World(60, {"a": (1 << 60) - 1}, brokers))
    assert isinstance(best_report_card(pair, profile.rows[0], OffloadGoal("input")), ReportCard)


# -- relief with room for newcomers


def overloaded(growth: float, limits: BalancingParameters = LIMITS) -> BrokerPair:
    """A source of 20 subscribers with 2/s x 20 x 0.025 = 1.0 of input; `growth` more come each second."""
    brokers = {"s": Broker(0.025, served={"ab": named("x", 20)}), "t": Broker(0.001)}
    world = World(2, {"ab": 3}, brokers)
    loads = [world.load(name) for name in world.brokers]
    source = replace(world.load("s"), growth=growth)
    return BrokerPair(source, world.load("t"), world.profile("s", "t"), limits, limits.local_trigger, {}, None, loads)


BRIEF = replace(LIMITS, stabilize_seconds=1.0, detection_seconds=1.0)


def test_relief_leaves_room_for_those_who_come_until_the_next_session():
    assert relief_level(overloaded(0.0, BRIEF), "input") == pytest.approx(0.85)
    # 2 s for two hand-overs, 1 s to stabilise and 1 s to detect: 0.5 x 4 of 20 are a tenth of 1.0.
    assert relief_level(overloaded(0.5, BRIEF), "input") == pytest.approx(0.75)


def test_room_for_newcomers_is_at_most_half_of_what_a_relieved_broker_may_have():
    assert relief_level(overloaded(100.0, BRIEF), "input") == pytest.approx(0.425)


def test_the_letter_of_the_paper_leaves_no_room():
    assert relief_level(overloaded(0.5, replace(BRIEF, rules="Paper")), "input") == pytest.approx(0.85)


@pytest.mark.parametrize(("growth", "moved"), [(0.0, 3), (0.5, 5)])
def test_more_go_while_subscribers_join(growth: float, moved: int):
    pair = overloaded(growth, BRIEF)
    found = best_report_card(pair, pair.profile.rows[0], OffloadGoal("input", relieves=("input",), exempt=True))
    assert isinstance(found, ReportCard)
    assert found.subscribers == moved
