"""When a plan is wanted, and what is remembered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.core.policies.delay_sensitive.small import Topic, load

from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.rebalancer import FleetLook

POLICY = DelaySensitive()
EIGHT = Topic(8, 7, 200.0, 400.0, 1.1, delivery=175.0)
OTHER = load("b0", [Topic(1)], 10_000.0)


def look(depth: int, **fields: float) -> FleetLook:
    return FleetLook((OTHER, load("b1", [replace(EIGHT, depth=depth)], 1e6, **fields)))


def test_a_plan_is_wanted_once_the_queue_is_deeper_than_its_deadline_allows():
    """Of the paper's 25 more messages a second, 97.5 are reached between the third and the fourth second."""
    memory, wanted = POLICY.observe({}, look(0)), []
    for second in range(1, 5):
        memory = POLICY.observe(memory, look(25 * second))
        wanted.append(POLICY.wanted(memory))
    assert wanted[:3] == ["", "", ""]
    assert wanted[3] == "b1: 100 messages of 8#00000008 wait, and 98 may for 1.1 s"


def test_the_uplink_alone_wants_none():
    assert POLICY.imbalance(look(0, output_utilization=1.07)) == ""
    assert POLICY.state(look(0, output_utilization=1.07).loads[1]) == "HIGH"


@pytest.mark.parametrize(("field", "what"), [("downlink_utilization", "downlink"), ("input_utilization", "matching")])
def test_other_resources_want_one_above_the_higher_threshold(field, what):
    assert POLICY.imbalance(look(0, **{field: 0.95})) == ""
    assert POLICY.imbalance(look(0, **{field: 0.96})) == f"b1: {what} at 0.960, above 0.95"


def test_a_deadline_that_no_path_keeps_is_overload_by_the_letter_alone():
    far = FleetLook((OTHER, load("b1", [Topic(8, 7, 200.0, 400.0, 0.2, delivery=200.0, transmission=0.3)], 1e6)))
    assert POLICY.imbalance(far) == ""
    text = DelaySensitive(rules="Text")
    assert text.imbalance(far) == "b1: 0 messages of 8#00000008 wait, and 0 may for 0.2 s"
    assert text.state(far.loads[1]) == "OVERLOAD"


def test_a_topic_without_a_deadline_may_wait():
    assert POLICY.imbalance(FleetLook((load("b1", [Topic(8, depth=10**6)], 1e6),))) == ""


def test_the_time_of_a_balancing_is_the_mean_of_those_that_were():
    memory = POLICY.observe({}, replace(look(0), balancings=(0.2, 0.4)))
    assert POLICY.mean_balancing_seconds(memory) == pytest.approx(0.3)
    later = POLICY.observe(POLICY.after_moves(memory), look(0))
    assert POLICY.mean_balancing_seconds(later) == pytest.approx(0.3)
    assert POLICY.mean_balancing_seconds({}) == pytest.approx(0.1)
    assert POLICY.mean_balancing_seconds({"balancing_seconds": "long"}) == pytest.approx(0.1)


def test_longer_balancings_are_begun_earlier():
    memory = POLICY.observe({}, replace(look(90), balancings=(0.2,)))
    assert POLICY.wanted(memory)
    assert not POLICY.wanted(POLICY.observe({}, look(90)))


def test_after_moves_nothing_is_wanted_until_the_next_look():
    memory = POLICY.observe({}, look(100))
    assert POLICY.wanted(memory)
    assert POLICY.wanted(POLICY.after_moves(memory)) == ""
