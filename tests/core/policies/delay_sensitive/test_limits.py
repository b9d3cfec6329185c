"""States of an edge: Table III, with metrics that lack a threshold."""

import pytest

from plimsoll.core.policies.delay_sensitive.limits import DeadlineLimits
from plimsoll.core.policies.model.load import BrokerLoad


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "LOW"),
        ({"output_utilization": 0.9}, "LOW"),
        ({"output_utilization": 0.91}, "HIGH"),
        ({"output_utilization": 1.07}, "HIGH"),
        ({"downlink_utilization": 0.92}, "HIGH"),
        ({"downlink_utilization": 0.951}, "OVERLOAD"),
        ({"input_utilization": 0.95}, "HIGH"),
        ({"input_utilization": 0.96}, "OVERLOAD"),
    ],
)
def test_the_uplink_is_never_overload(fields, state):
    assert DeadlineLimits().state(BrokerLoad(name="b", **fields), endangered=False) == state


def test_a_deadline_in_danger_is_overload_whatever_else_is_low():
    assert DeadlineLimits().state(BrokerLoad(name="b"), endangered=True) == "OVERLOAD"


def test_what_is_overloaded_is_said():
    load = BrokerLoad(name="b", downlink_utilization=1.2, input_utilization=0.99, output_utilization=3.0)
    assert list(DeadlineLimits().described(load)) == [
        "downlink at 1.200, above 0.95", "matching at 0.990, above 0.95",
    ]  # fmt: skip
