"""What each cluster of a run carries over time: the averages of its edges, as load reports have them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from plimsoll.local.demo.series import Series

METRICS: Final = ("input_utilization", "output_utilization", "match_delay_seconds")
STEP_SECONDS: Final = 1.0
LAST_SECONDS: Final = 10.0
"""What a cluster carries in the end is averaged over so long."""
OVERLOADED: Final = 0.95
FARTHER: Final = 0.05
"""A cluster that is farther away may carry so much more, as a part of what an edge can take."""


@dataclass(frozen=True)
class Clusters:
    """`edges`: by cluster, in the order of the chain."""

    edges: Mapping[str, Sequence[str]]
    series: Series

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
        """A point each second."""
        steps = range(int(until / STEP_SECONDS) + 1)
        return [(number * STEP_SECONDS, self.at(cluster, metric, number * STEP_SECONDS)) for number in steps]

    def last(self, cluster: str, metric: str, until: float) -> float:
        """What it carried in the last seconds."""
        points = [value for at, value in self.over_time(cluster, metric, until) if at > until - LAST_SECONDS]
        known = [value for value in points if value is not None]
        return sum(known) / len(known) if known else 0.0

    def subscribers(self, cluster: str, until: float) -> int:
        """How many its edges serve in the end."""
        return int(sum(self._last(edge, "subscribers", until) or 0.0 for edge in self.edges[cluster]))

    def problems(self, until: float) -> list[str]:
        """Loads that do not fall along the chain, and edges that are overloaded in the end. PADRES 2006, 6.3."""
        found = []
        loads = [(name, self.last(name, "input_utilization", until)) for name in self.edges]
        for (near, less), (far, more) in pairwise(loads):
            if more > less + FARTHER:
                found.append(f"{far} carries {more:.0%}, and {near}, which is nearer to where all came, {less:.0%}")
        for cluster, edges in self.edges.items():
            for edge in edges:
                for metric in METRICS[:2]:
                    load = self._last(edge, metric, until) or 0.0
                    if load > OVERLOADED:
                        found.append(f"{edge} of {cluster} is overloaded in the end: {metric} {load:.0%}")
        return found

    def lines(self, until: float) -> list[str]:
        """A line for each cluster."""
        return [self._line(name, until, *(self.last(name, metric, until) for metric in METRICS)) for name in self.edges]

    def _line(self, name: str, until: float, taken: float, sent: float, delay: float) -> str:
        served = self.subscribers(name, until)
        return f"{name}: {served:>5,} subscribers   input {taken:>4.0%}   output {sent:>4.0%}   {1000 * delay:.2f} ms"

    def plain(self, until: float) -> dict[str, Any]:
        """Over time and in the end, by cluster."""
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
