"""Loads of edges over a run, from their load reports, and the figures that policies are compared by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean
from typing import Any, Final

OVERLOADED: Final = 0.95


@dataclass(slots=True)
class EdgeLoadHistory:
    """Loads of one edge over time: the higher of input and output."""

    seconds: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)

    def between(self, start: float, end: float = float("inf")) -> list[float]:
        """The loads of the reports of this time."""
        return [load for at, load in zip(self.seconds, self.loads, strict=True) if start <= at < end]


class LoadHistory:
    """`edges`: by name, those that have reported."""

    def __init__(self) -> None:
        self.edges: dict[str, EdgeLoadHistory] = {}

    def take(self, report: Mapping[str, Any], now: float) -> None:
        """Note a load report; those of heads say nothing here."""
        if report["role"] == "edge":
            taken = self.edges.setdefault(str(report["broker"]), EdgeLoadHistory())
            taken.seconds.append(now)
            taken.loads.append(max(report["input_utilization"], report["output_utilization"]))

    def means(self, start: float, end: float = float("inf")) -> list[float]:
        """The mean load of each edge over this time; 0 of one without a report in it."""
        return [fmean(each.between(start, end) or [0.0]) for each in self.edges.values()]

    def overloaded_seconds(self, until: float) -> float:
        """How long edges were overloaded, summed over them."""
        return sum(
            until / len(each.seconds) * sum(load > OVERLOADED for load in each.loads)
            for each in self.edges.values() if each.seconds
        )  # fmt: skip


def cov(loads: Sequence[float]) -> float:
    """The coefficient of variation: deviation by mean. BAD 2019."""
    mean = fmean(loads) if loads else 0.0
    return sqrt(fmean((load - mean) ** 2 for load in loads)) / mean if mean else 0.0
