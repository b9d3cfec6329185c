"""The line of the delay over subscriptions: found from few samples, kept for long, and never stranger than eq. 4."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.model.load import BrokerLoad, LoadChange
from plimsoll.core.policies.model.match_delay import LinearMatchDelay, MatchLoadChange, SubscriptionMatchDelay
from plimsoll.core.policies.model.subscription_delay import SubscriptionDelayFitter

BASE, SLOPE = 25e-5, 1e-5
"""A base of 25 subscriptions, as brokers with little to match have."""


def fitted(counts: list[int], *, noise: float = 0.0, publications: int = 50, seed: int = 1) -> SubscriptionDelayFitter:
    fit, seeded = SubscriptionDelayFitter(), random.Random(seed)
    for count in counts:
        seconds = publications * (BASE + SLOPE * count) * seeded.uniform(1 - noise, 1 + noise)
        fit.note(count, seconds, publications)
    return fit


def test_the_base_is_what_a_broker_keeps_when_its_subscribers_leave():
    """20 subscriptions at 1,000/s use 0.45; without 16 of them eq. 4 promises 0.09, and 0.29 comes."""
    load = BrokerLoad(
        name="s", subscriptions=20, input_rate=1000.0, match_delay_seconds=BASE + 20 * SLOPE, input_utilization=0.45,
        delay=fitted([4, 9, 20]).model(20),
    )  # fmt: skip
    gone = LoadChange(subscribers=-16, subscriptions=-16)
    assert load.predict(gone).input_utilization == pytest.approx(1000.0 * (BASE + 4 * SLOPE), rel=0.01)
    paper = BrokerLoad(
        name="s", subscriptions=20, input_rate=1000.0, match_delay_seconds=BASE + 20 * SLOPE, input_utilization=0.45
    )
    assert paper.predict(gone).input_utilization == pytest.approx(0.09)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
def test_few_samples_are_enough(noise: float):
    found = fitted([5, 10, 20, 40, 80], noise=noise).model(80)
    assert found is not None
    for count in (5, 40, 160):
        true = BASE + SLOPE * count
        assert found.after(MatchLoadChange(count - 80)) == pytest.approx(true, rel=0.01 + noise)


def test_what_was_measured_long_ago_at_another_number_still_counts():
    fit = fitted([10, 20])
    for _ in range(100):
        fit.note(200, 1000 * (BASE + SLOPE * 200), 1000)
    found = fit.model(200)
    assert found is not None
    assert found.base_seconds == pytest.approx(BASE, rel=0.1)


def test_at_one_number_of_subscriptions_it_is_eq_4():
    found = fitted([200] * 10, noise=0.1).model(200)
    assert found is not None
    paper = LinearMatchDelay(200, found.delay_seconds)
    for change in (-150, 100):
        assert found.after(MatchLoadChange(change)) == pytest.approx(paper.after(MatchLoadChange(change)))


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(1e-6, 1e-2), st.integers(0, 50)), max_size=20))
def test_neither_base_nor_slope_is_negative(notes: list[tuple[int, float, int]]):
    fit = SubscriptionDelayFitter()
    for count, seconds, publications in notes:
        fit.note(count, seconds * publications, publications)
    found = fit.model(7)
    if found is not None:
        assert found.base_seconds >= 0.0
        assert found.seconds_per_subscription >= 0.0
        assert found.after(MatchLoadChange(-9)) == pytest.approx(found.base_seconds)


def test_a_pause_of_the_machine_counts_little():
    fit = fitted([10, 20, 40] * 50)
    fit.note(40, 100.0, 1)
    found = fit.model(40)
    assert found is not None
    assert found.delay_seconds == pytest.approx(BASE + SLOPE * 40, rel=0.05)


def test_nothing_noted_is_no_model():
    fit = SubscriptionDelayFitter()
    fit.note(0, 1.0, 5)
    fit.note(5, 1.0, 0)
    assert fit.model(5) is None
    assert SubscriptionMatchDelay(1.0, 2.0, 3).delay_seconds == 7.0
