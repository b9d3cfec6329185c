"""What an edge may carry: its metrics, their thresholds, and the states LOW, HIGH and OVERLOAD.

Tao, Poslad, Bigham 2013, Tables II and III. The uplink has only a lower threshold: above it, and even above all that it
can send, an edge is not overloaded as long as every deadline is kept. The depth of queues has only a higher one.
"""

# ruff: noqa: RUF009  # frozen values, safe as defaults

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from plimsoll.core.policies.model.load import NO_THRESHOLD, BrokerLoad, OverloadThreshold

Utilization = Literal["downlink", "matching", "uplink"]
DeadlineMetric = Literal["downlink", "matching", "uplink", "depth"]
LoadState = Literal["LOW", "HIGH", "OVERLOAD"]

UTILIZATIONS: tuple[Utilization, ...] = get_args(Utilization)


def utilization_of(load: BrokerLoad, metric: Utilization) -> float:
    """The use of a resource, as a ratio."""
    if metric == "downlink":
        return load.downlink_utilization
    return load.input_utilization if metric == "matching" else load.output_utilization


@dataclass(frozen=True, slots=True)
class DeadlineLimits:
    """The thresholds of an edge's resources. The one of a queue's depth follows from its deadline, eq. 2."""

    downlink: OverloadThreshold = OverloadThreshold()
    matching: OverloadThreshold = OverloadThreshold()
    uplink: OverloadThreshold = OverloadThreshold(0.9, NO_THRESHOLD)

    def of(self, metric: Utilization) -> OverloadThreshold:
        """The thresholds of one resource."""
        found: OverloadThreshold = getattr(self, metric)
        return found

    def above_lower(self, load: BrokerLoad) -> tuple[Utilization, ...]:
        """The resources of which an edge can take no more."""
        return tuple(each for each in UTILIZATIONS if utilization_of(load, each) > self.of(each).lower)

    def above_higher(self, load: BrokerLoad) -> tuple[Utilization, ...]:
        """The resources that are overloaded."""
        return tuple(each for each in UTILIZATIONS if utilization_of(load, each) > self.of(each).higher)

    def state(self, load: BrokerLoad, endangered: bool) -> LoadState:
        """The state of an edge. `endangered`: whether the queue of a topic is deeper than its deadline allows."""
        if endangered or self.above_higher(load):
            return "OVERLOAD"
        return "HIGH" if self.above_lower(load) else "LOW"

    def described(self, load: BrokerLoad) -> Iterator[str]:
        """The overloaded resources in words."""
        for metric in self.above_higher(load):
            yield f"{metric} at {utilization_of(load, metric):.3f}, above {self.of(metric).higher:g}"
