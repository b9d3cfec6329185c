"""Smoothed usage: Pulsar 2023, section 5."""

from __future__ import annotations

import pytest

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.pulsar.usage import UsageWeights, average_usage, smoothed_usage


def test_usage_is_the_highest_of_the_weighted_resources():
    load = BrokerLoad(name="e-0", cpu_ratio=0.2, memory_ratio=0.5, input_utilization=0.3, output_utilization=0.4)
    assert UsageWeights().usage(load) == 0.5
    assert UsageWeights(memory=0.0).usage(load) == 0.4
    assert UsageWeights(memory=0.0, input=2.0).usage(load) == 0.6
    assert UsageWeights(cpu=10.0).usage(load) == 2.0


def test_history_weighs_more_than_the_present():
    """Three brokers at 0.3, one of which jumps to 0.9: computed from the text's formula."""
    at = [BrokerLoad(name=name, cpu_ratio=0.3) for name in "abc"]
    usage = smoothed_usage({}, at, UsageWeights(), 0.9)
    assert usage == {"a": 0.3, "b": 0.3, "c": 0.3}, "a first look counts as it is"
    found = []
    for _ in range(3):
        usage = smoothed_usage(usage, [BrokerLoad(name="a", cpu_ratio=0.9), *at[1:]], UsageWeights(), 0.9)
        found.append((usage["a"], average_usage(usage) + 0.1))
    assert [each for each, _ in found] == pytest.approx([0.36, 0.414, 0.4626])
    assert [line for _, line in found] == pytest.approx([0.42, 0.438, 0.4542])


def test_no_edges_have_no_usage():
    assert average_usage({}) == 0.0
