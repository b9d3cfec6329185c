"""The load of each cluster over time: the averages of its edges, from load reports."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from plimsoll.demo.analysis.load_series import LoadSeries

METRICS: Final = ("input_utilization", "output_utilization", "match_delay_seconds")
STEP_SECONDS: Final = 1.0
FINAL_SECONDS: Final = 10.0
"""Seconds over which the final load of a cluster is averaged."""
OVERLOADED: Final = 0.95
DISTANCE_MARGIN: Final = 0.05
"""How much more a cluster farther away may carry, as a share of an edge's capacity."""


@dataclass(frozen=True)
class ClusterLoadSeries:
    """`edges`: by cluster, in the order of the chain."""

    edges: Mapping[str, Sequence[str]]
    series: LoadSeries

    def at(self, cluster: str, metric: str, seconds: float) -> float | None:
        """The average of a metric over a cluster's edges at a time; None before all have reported."""
        values = [self._last(edge, metric, seconds) for edge in self.edges[cluster]]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known and len(known) == len(values) else None

    def _last(self, edge: str, metric: str, seconds: float) -> float | None:
        columns = self.series.of(edge)
        place = bisect_right(columns["seconds"], seconds)
        return None if place == 0 else float(columns[metric][place - 1])

    def over_time(self, cluster: str, metric: str, until: float) -> list[tuple[float, float | None]]:
        """One point per second."""
        steps = range(int(until / STEP_SECONDS) + 1)
        return [(number * STEP_SECONDS, self.at(cluster, metric, number * STEP_SECONDS)) for number in steps]

    def last(self, cluster: str, metric: str, until: float) -> float:
        """The average of the last seconds."""
        points = [value for at, value in self.over_time(cluster, metric, until) if at > until - FINAL_SECONDS]
        known = [value for value in points if value is not None]
        return sum(known) / len(known) if known else 0.0

    def subscribers(self, cluster: str, until: float) -> int:
        """Subscribers that its edges serve at the end."""
        return int(sum(self._last(edge, "subscribers", until) or 0.0 for edge in self.edges[cluster]))

    def unmet_claims(self, until: float) -> list[str]:
        """Loads that do not fall along the chain, and edges overloaded at the end. PADRES 2006, 6.3."""
        found = []
        loads = [(name, self.last(name, "input_utilization", until)) for name in self.edges]
        for (near, less), (far, more) in pairwise(loads):
            if more > less + DISTANCE_MARGIN:
                found.append(f"{far} carries {more:.0%}, and {near}, which is nearer to where all came, {less:.0%}")
        for cluster, edges in self.edges.items():
            for edge in edges:
                for metric in METRICS[:2]:
                    load = self._last(edge, metric, until) or 0.0
                    if load > OVERLOADED:
                        found.append(f"{edge} of {cluster} is overloaded in the end: {metric} {load:.0%}")
        return found

    def lines(self, until: float) -> list[str]:
        """One line per cluster."""
        return [self._line(name, until, *(self.last(name, metric, until) for metric in METRICS)) for name in self.edges]

    def _line(self, name: str, until: float, taken: float, sent: float, delay: float) -> str:
        served = self.subscribers(name, until)
        return f"{name}: {served:>5,} subscribers   input {taken:>4.0%}   output {sent:>4.0%}   {1000 * delay:.2f} ms"

    def plain(self, until: float) -> dict[str, Any]:
        """By cluster, over time and at the end."""
        return {
            name: {
                "edges": list(self.edges[name]),
                "subscribers": self.subscribers(name, until),
                "last": {metric: round(self.last(name, metric, until), 6) for metric in METRICS},
                "over_time": {
                    "seconds": [at for at, _ in self.over_time(name, METRICS[0], until)],
                    **{metric: [value for _, value in self.over_time(name, metric, until)] for metric in METRICS},
                },
            }
            for name in self.edges
        }
