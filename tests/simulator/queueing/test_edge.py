"""An edge serves at the rate of its hardware, reports what it measured, and keeps messages in their turn."""

from dataclasses import replace

import pytest
from tests.simulator.queueing.conftest import traffic_of

from plimsoll.simulator.queueing.memory import memory_ratio
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficSubscriber


def test_utilization_is_rate_times_cost(world):
    """Ten subscriptions at 1 ms and a base of 1 ms: 11 ms for each of 40 publications a second."""
    fleet = world()
    fleet.run(30.0)
    report = fleet.edges["e11"].reporter.last
    assert report["input_utilization"] == pytest.approx(0.44, rel=0.06)
    assert report["match_delay_seconds"] == pytest.approx(0.011)
    assert report["subscriptions"] == report["subscribers"] == 10


def test_an_overloaded_edge_queues_and_delays_grow(world):
    fleet = world(traffic=traffic_of(rate=60.0))  # 120 a second at 11 ms each
    fleet.run(65.0)
    early, late = fleet.delays.between(10, 20).mean, fleet.delays.between(50, 60).mean
    assert late > 2 * early
    served, report = fleet.edges["e11"].meter, fleet.edges["e11"].reporter.last
    assert report["input_utilization"] == pytest.approx(120 * 0.011, rel=0.1)
    assert report["input_queue_messages"] > 100
    assert served.total["arrivals"] > served.total_served


def test_the_cost_of_a_publication_counts_the_subscriptions_of_its_time(world):
    """Publications that wait while subscribers leave are served faster, as by the product's service queue."""
    fleet = world(traffic=traffic_of(rate=60.0))
    fleet.run(20.0)
    edge = fleet.edges["e11"]
    for n in range(10):
        edge.stop_serving(f"s{n:02}")
    edge.advance(20.0)
    waiting = len(edge.waiting_for(-1))
    edge.advance(20.0 + waiting * 0.001 + 0.02)  # a millisecond each, no longer eleven
    assert waiting > 400
    assert edge.waiting_for(-1) == []


def test_memory_is_reported_and_grows_with_what_waits(world):
    calm, full = world(), world(traffic=traffic_of(rate=60.0))
    ratios = []
    for fleet in (calm, full):
        fleet.run(60.0)
        edge = fleet.edges["e11"]
        waiting = sum(each.content.size_bytes for each in edge.waiting_for(-1))
        report = edge.reporter.last
        ratios.append(report["memory_ratio"])
        assert report["memory_ratio"] == pytest.approx(
            memory_ratio(edge.config.hardware.memory_bytes, 10, 10, waiting + report["output_queue_bytes"]), rel=1e-3
        )
    assert ratios[1] > ratios[0]


def test_output_is_bounded_by_the_bandwidth(world):
    fleet = world(traffic=traffic_of(rate=20.0), each="0us", bandwidth="10k")
    fleet.run(40.0)
    report = fleet.edges["e11"].reporter.last
    assert report["output_utilization"] == pytest.approx(1.0, abs=0.05)
    assert report["output_queue_bytes"] > 0


def test_a_fair_output_keeps_a_light_subscriber_out_of_the_queue_of_heavy_ones(world):
    """Nine of ten want 60 publications a second, and one wants one: first come, first served, it waits as they do."""
    heavy, light = traffic_of(9, 60.0), traffic_of(1, 1.0).publishers[1]
    subscribers = [replace(each, subscriptions=("[topic,=,'a']",)) for each in heavy.subscribers]
    subscribers.append(TrafficSubscriber("light", "c1", ("[topic,=,'b']",), prefer="e11"))
    traffic = Traffic([heavy.publishers[0], replace(light, rates=(RateStep(0.0, 1.0),))], subscribers)
    delays = {}
    for is_fair in (False, True):
        fleet = world(traffic=traffic, base="10us", each="0us", bandwidth="20k", fair_output=is_fair)
        fleet.run(60.0)
        edge = fleet.edges["e11"]
        delays[is_fair] = fleet.delays.between(30.0, 60.0).percentile(0.001)  # of 300 deliveries a second one is light
        assert edge.reporter.last["output_utilization"] == pytest.approx(1.0, abs=0.05)
        assert edge.reporter.last["output_queue_bytes"] > 100_000
    assert delays[True] < 0.2
    assert delays[False] > 5.0
