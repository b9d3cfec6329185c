"""The usage of edges as Pulsar counts it, smoothed over looks: Pulsar 2023, section 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.core.policies.model.load import BrokerLoad


@dataclass(frozen=True, slots=True)
class UsageWeights:
    """What each resource counts. Input is the input utilisation of an edge, output its share of bandwidth."""

    cpu: float = 1.0
    memory: float = 1.0
    input: float = 1.0
    output: float = 1.0

    def usage(self, load: BrokerLoad) -> float:
        """The highest of the weighted utilisations; 1.0 is all that there is."""
        return max(
            load.cpu_ratio * self.cpu,
            load.memory_ratio * self.memory,
            load.input_utilization * self.input,
            load.output_utilization * self.output,
        )


def smoothed_usage(
    before: Mapping[str, float], loads: Sequence[BrokerLoad], weights: UsageWeights, history: float
) -> dict[str, float]:
    """usage = history x previous + (1 - history) x usage. The first look of an edge counts as it is."""
    found = {load.name: weights.usage(load) for load in loads}
    return {name: history * before.get(name, now) + (1.0 - history) * now for name, now in found.items()}


def average_usage(usage: Mapping[str, float]) -> float:
    """The mean over all edges; 0 without any."""
    return sum(usage[name] for name in sorted(usage)) / len(usage) if usage else 0.0
