"""The demo in virtual time, for sweeps: the machines of the product deliver its plan, and balance it."""

from __future__ import annotations

import gc

import msgspec
import pytest
from bench.balancing.__main__ import page, row
from bench.balancing.settings import documents
from bench.balancing.world import Outcome, World

from plimsoll.core.spec import parse as parse_resources
from plimsoll.demo import quotes
from plimsoll.demo.options import BALANCING_SCENARIO

SCENARIO = msgspec.structs.replace(
    BALANCING_SCENARIO, seconds=40.0, subscribers=60, publishers=20, join_to=0.3, step_at=1.0
)


def simulated(edges: int = 0) -> Outcome:
    return World(SCENARIO, documents(SCENARIO.subscribers, edges=edges), quotes.load(), "padres").run()


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return simulated()


def test_subscribers_come_to_the_weakest_edge_and_are_moved_while_all_is_delivered(outcome: Outcome):
    assert outcome.published > 1000
    assert outcome.delivered > 5000
    assert outcome.repeated == 0
    moved = [each for each in outcome.balance.sessions if each.subscribers]
    assert moved
    assert moved[0].source == "b1"
    assert outcome.series.of("b1")["subscribers"][-1] < SCENARIO.subscribers
    assert sum(outcome.series.of(f"b{i}")["subscribers"][-1] for i in range(1, 5)) == SCENARIO.subscribers


@pytest.mark.sweep
def test_a_run_is_the_same_each_time(outcome: Outcome):
    again = simulated()
    assert again.delays == outcome.delays
    assert [each.plain() for each in again.balance.sessions] == [each.plain() for each in outcome.balance.sessions]
    gc.collect()


def test_fewer_subscribers_weigh_as_much_more():
    whole, half = (parse_resources(documents(count)).profiles["b1"].spec for count in (2000, 1000))
    assert whole.emulation is not None
    assert half.emulation is not None
    assert half.emulation.per_subscription.seconds == pytest.approx(2 * whole.emulation.per_subscription.seconds)
    assert half.emulation.base == whole.emulation.base
    assert half.bandwidth.output_bytes_per_second is not None
    assert whole.bandwidth.output_bytes_per_second is not None
    assert 2 * half.bandwidth.output_bytes_per_second.value == whole.bandwidth.output_bytes_per_second.value


def test_a_sweep_takes_other_edges_and_other_triggers():
    """PADRES 2006, 6.2: for figure 6g all edges have 500 MHz, five times b1, and 3 Mbit/s."""
    found = parse_resources(documents(2000, edges=6))
    assert len(found.clusters["quotes"].spec.edges) == 6
    alike, b1 = found.profiles["alike"].spec, found.profiles["b1"].spec
    assert alike.emulation is not None
    assert b1.emulation is not None
    assert 5 * alike.emulation.per_subscription.seconds == pytest.approx(b1.emulation.per_subscription.seconds)
    policy = parse_resources(documents(2000, trigger=0.2)).fleet.spec.defaults.policy
    assert policy is not None
    assert float(policy.detection.local_trigger.ratio.value) == 0.2


def test_the_page_has_both_figures(outcome: Outcome):
    one = {"edges": 4, "trigger": 0.1, **row(outcome, SCENARIO.seconds)}
    text = page({"6g": [one], "6h": [one], "subscribers": 60, "seconds": 40.0, "seed": 1})
    assert text.count("<svg") == 2
    assert "figure 6g" in text
    assert "figure 6h" in text
