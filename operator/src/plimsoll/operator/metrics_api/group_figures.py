"""The figures of consumer groups that autoscalers read, from the last reports of heads.

A head that has not reported for a while has none: an autoscaler that gets no figure leaves the number of pods as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.core.policies.consumer_groups.reported import reported_groups
from plimsoll.operator.mediator.broker_poller import BrokerReading

STALE_SECONDS: Final = 30.0

FIGURES: Final = {"plimsoll_group_lag_items": "lag", "plimsoll_group_busy_consumers": "busy_consumers"}
"""By the name of a metric, the field of a group's report."""


@dataclass(frozen=True, slots=True)
class GroupFigure:
    """`labels`: cluster and group. `value`: as a quantity of Kubernetes. `age_seconds`: of the report."""

    metric: str
    labels: Mapping[str, str]
    value: str
    age_seconds: float


def group_figures(readings: Mapping[str, BrokerReading], clusters: Mapping[str, str]) -> Iterator[GroupFigure]:
    """Of all groups of a fleet. `clusters`: the cluster of each broker."""
    for broker, reading in sorted(readings.items()):
        if broker not in clusters or reading.report_age is None or reading.report_age > STALE_SECONDS:
            continue
        for group, found in sorted(reported_groups(reading.report).items()):
            for metric, field in FIGURES.items():
                value = found.get(field)
                if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                    labels = {"cluster": clusters[broker], "group": group}
                    yield GroupFigure(metric, labels, _quantity(value), reading.report_age)


def _quantity(value: float) -> str:
    """A whole number, or thousandths."""
    return str(int(value)) if value == int(value) else f"{round(value * 1000)}m"
