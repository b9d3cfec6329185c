"""Loads of BAD: F = I + O, where I counts equal subscriptions once, and predictions after a step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.core.policies.bad.small import ALIKE, MIXED, fleet, loads, sample

from plimsoll.core.policies.bad.fleet import bad_fleet
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.rebalancer import Step


def test_input_that_two_subscribers_share_counts_once():
    """Two equal subscribers of 10: together 10 in and 20 out, apart 10 in and 10 out at each."""
    assert loads(fleet(B1="a a", B2="")) == [30.0, 0.0]
    assert loads(fleet(B1="a", B2="a")) == [20.0, 20.0]


@pytest.mark.parametrize(("brokers", "expected"), [(MIXED, [70.0, 12.0, 4.0]), (ALIKE, [50.0, 20.0, 4.0])])
def test_loads_of_the_small_fleets(brokers: dict[str, str], expected: list[float]):
    assert loads(fleet(**brokers)) == expected


def test_a_subscriber_that_asks_twice_for_the_same_has_one_back_end_subscription():
    assert loads(fleet(B1="aa")) == loads(fleet(B1="a")) == [20.0]


def test_what_a_broker_would_have_with_and_without_a_subscriber_is_what_it_then_has():
    before = fleet(**MIXED)
    first, third = before.brokers["B1"], before.brokers["B3"]
    for name, subscriber in first.subscribers.items():
        after = before.after(Step((PlanMove(subscriber.key, (name,), "B1", "B3", "to see"),)))
        assert after.brokers["B1"].load == first.load_without(subscriber)
        assert after.brokers["B3"].load == third.load_with(subscriber)
        assert loads(before) == [70.0, 12.0, 4.0], "a fleet is a value"


def test_similarity_is_the_rate_of_what_is_shared():
    one = fleet(B1="ab", B2="bc", B3="")
    subscriber = one.brokers["B1"].subscribers["B1-0"]
    assert [one.brokers[name].similarity(subscriber) for name in ("B1", "B2", "B3")] == [16.0, 6.0, 0.0]


def test_a_load_is_divided_by_capacity_if_that_is_wanted():
    given = sample(B1="a", B2="a")
    given = replace(given, loads=(BrokerLoad(name="B1", capacity=4.0), BrokerLoad(name="B2")))
    assert loads(bad_fleet(given, by_capacity=True)) == [5.0, 20.0]
    assert loads(bad_fleet(given)) == [20.0, 20.0]


def test_a_rate_is_the_highest_that_any_broker_measures():
    given = sample(B1="a", B2="a")
    slow = sample({"a": 4.0}, B2="a").profiles["B2"]
    assert loads(bad_fleet(replace(given, profiles={**given.profiles, "B2": slow}))) == [20.0, 20.0]


def test_a_subscription_that_did_not_fit_into_the_profile_makes_the_whole_list_one_of_its_own():
    given = sample(B1="ab b")
    cut = replace(given.profiles["B1"], each=given.profiles["B1"].each[1:])
    one = bad_fleet(replace(given, profiles={"B1": cut}))
    assert one.brokers["B1"].counts == {"ab": 1, "b": 1}
    assert loads(one) == [44.0], "16 + 6 in, and the same out"


def test_reports_after_a_step_follow_the_subscribers():
    report = BrokerLoad(name="B1", subscribers=4, subscriptions=7, input_rate=22.0, output_rate=48.0,
                        output_bytes_per_second=48.0, bandwidth=96.0, output_utilization=0.5)  # fmt: skip
    given = sample(**MIXED)
    before = bad_fleet(replace(given, loads=(report, *given.loads[1:])))
    assert before.loads[0] == report, "before a step it is what was reported"
    after = before.after(Step((PlanMove("ab", ("B1-0",), "B1", "B3", "to see"),)))
    b1, _, b3 = after.loads
    assert (b1.subscribers, b1.subscriptions, b1.output_bytes_per_second, b1.output_utilization) == (3, 5, 32.0, 1 / 3)
    assert (b1.input_rate, b1.output_rate) == (22.0, 32.0), "b is still wanted by another"
    assert (b3.subscribers, b3.subscriptions, b3.input_rate, b3.output_rate) == (1, 2, 16.0, 16.0)
