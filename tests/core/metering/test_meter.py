"""Buckets keep to their rate; meters fold what was counted into a sample, and start over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.metering.bucket import TokenBucket
from plimsoll.core.metering.meter import LoadMeter, SteadyService
from plimsoll.core.metering.service_queue import ServicedItem


@given(st.lists(st.tuples(st.floats(0, 0.5), st.integers(1, 3000)), min_size=1, max_size=60))
def test_no_more_leaves_than_rate_and_burst_and_one_frame(steps: list[tuple[float, int]]):
    bucket, now, spent, largest = TokenBucket(1000.0, 2000.0), 0.0, 0, 0
    for wait, size in steps:
        now += wait
        if bucket.open(now):
            bucket.spend(size, now)
            spent, largest = spent + size, max(largest, size)
        assert spent <= 2000.0 + 1000.0 * now + largest + 1e-6


@given(st.integers(1, 10_000))
def test_an_empty_bucket_says_when_it_opens(size: int):
    bucket = TokenBucket(500.0, 100.0)
    bucket.spend(size + 100, 0.0)
    at = bucket.ready_at(0.0)
    assert at == pytest.approx((size + 1) / 500.0)
    assert not bucket.open(at - 0.01) or size < 5
    assert bucket.open(at + 1e-9)
    assert bucket.ready_at(at + 1.0) == at + 1.0


def test_a_long_rest_saves_up_no_more_than_the_burst():
    bucket, spent = TokenBucket(1000.0, 2000.0), 0
    while bucket.open(60.0):
        bucket.spend(300, 60.0)
        spent += 300
    assert 2000 <= spent < 2300


def test_time_that_goes_back_fills_nothing():
    bucket = TokenBucket(1000.0, 10.0, now=5.0)
    bucket.spend(50, 5.0)
    assert not bucket.open(1.0)
    assert not bucket.open(5.0)


def test_a_sample_holds_the_definitions_of_load():
    meter = LoadMeter(started=10.0)
    meter.arrivals, meter.served, meter.service_seconds = 200, 100, 0.5
    meter.deliveries, meter.bytes_out = 1000, 40_000
    meter.indexed, meter.index_seconds = 100, 0.1
    meter.input_waits, meter.input_wait_seconds = 4, 1.0
    meter.output_waits, meter.output_wait_seconds = 10, 0.5
    sample = meter.sample(14.0, 20_000.0)
    assert (sample.seconds, sample.input_rate, sample.output_rate) == (4.0, 50.0, 250.0)
    assert sample.match_delay_seconds == pytest.approx(0.005)
    assert sample.index_delay_seconds == pytest.approx(0.001)
    assert sample.input_utilization == pytest.approx(50.0 * 0.005)
    assert sample.output_utilization == pytest.approx(10_000 / 20_000)
    assert (sample.input_queue_delay_seconds, sample.output_queue_delay_seconds) == (0.25, 0.05)
    assert meter.total == {"arrivals": 200, "deliveries": 1000, "bytes_out": 40_000}


def test_an_idle_interval_keeps_the_last_matching_delay_and_counts_go_on():
    meter = LoadMeter()
    meter.served, meter.service_seconds, meter.deliveries = 10, 0.1, 3
    meter.sample(1.0, None)
    idle = meter.sample(2.0, None)
    assert idle.match_delay_seconds == pytest.approx(0.01)
    assert (idle.input_rate, idle.input_utilization, idle.output_utilization) == (0.0, 0.0, 0.0)
    assert meter.total["deliveries"] == 3


def test_the_use_of_the_downlink_is_bytes_in_by_its_bandwidth():
    meter = LoadMeter()
    meter.bytes_in = 3000
    sample = meter.sample(2.0, None, 0, 6000.0)
    assert (sample.input_bytes_per_second, sample.downlink_utilization) == (1500.0, 0.25)
    meter.bytes_in = 3000
    assert meter.sample(4.0, None).downlink_utilization == 0.0, "a downlink without a limit"


def test_a_fold_at_the_same_instant_divides_by_nothing():
    assert LoadMeter(started=3.0).sample(3.0, None).input_rate == 0.0


def test_while_nothing_is_served_the_matching_delay_follows_the_subscriptions():
    """Eq. 4: with half of the subscriptions, half of the delay; when they are back it is what was measured."""
    meter = LoadMeter()
    meter.service_seconds, meter.served = 0.4, 100
    assert meter.sample(1.0, None, 200).match_delay_seconds == pytest.approx(0.004)
    assert meter.sample(2.0, None, 100).match_delay_seconds == pytest.approx(0.002)
    assert meter.sample(3.0, None, 0).match_delay_seconds == 0.0
    assert meter.sample(4.0, None, 200).match_delay_seconds == pytest.approx(0.004)


def test_a_model_is_fitted_to_the_rounds_in_which_no_subscription_came():
    meter = LoadMeter()
    meter.count_round(0.5, 10)  # ten joined, and nothing was published
    meter.arrivals, meter.deliveries = 4, 40
    meter.count_round(0.25, 10)
    meter.arrivals, meter.deliveries = 6, 62
    meter.count_round(1.0, 11)  # another joined, which took most of the time
    meter.arrivals, meter.deliveries = 7, 73
    meter.count_round(0.125, 11)
    assert meter.steady == SteadyService(5, 4 * 10 + 11, 40 + 11, 0.375)
    assert (meter.served, meter.service_seconds) == (7, 1.875)
    meter.sample(1.0, None)
    assert meter.steady == SteadyService()
    meter.arrivals, meter.deliveries = 1, 3
    meter.count_round(0.5, 11)
    assert meter.steady == SteadyService(1, 11, 3, 0.5)


def test_an_emulated_publication_counts_with_the_subscriptions_that_it_was_served_with():
    meter = LoadMeter()
    for count in (2, 2, 5):
        meter.count_serviced(ServicedItem(0.0, 0.1 * count, True, None, count))
    meter.count_serviced(ServicedItem(0.0, 0.0, False, None, 5))
    assert (meter.steady.publications, meter.steady.subscriptions) == (3, 9)
    assert meter.steady.seconds == pytest.approx(0.9)
