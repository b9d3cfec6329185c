"""One run of a world on the queueing model, with what is analysed afterwards."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec import Resources
from plimsoll.demo.analysis.balancing_result import BalancingResult, assess_balancing, convergence_limits
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.analysis.session_outcomes import ReportedSession, reported_sessions
from plimsoll.demo.workload import DemoScenario
from plimsoll.mediator import session_objects
from plimsoll.simulator.queueing.delays import DelaysOverTime
from plimsoll.simulator.queueing.fleet import LinkDelays, QueueingFleet
from plimsoll.simulator.queueing.traffic import Traffic

DELAY_INTERVAL_SECONDS = 10.0


@dataclass(frozen=True)
class WorldRun:
    """What a run has left behind. `owners`: the edge of each subscriber at the end."""

    series: LoadSeries
    delays: DelaysOverTime
    sessions: Sequence[ReportedSession]
    owners: Mapping[str, str]
    edges: Sequence[str]
    published: int
    delivered: int
    processor_seconds: float

    def balance(self, policy: str, scenario: DemoScenario, resources: Resources) -> BalancingResult:
        """When it converged and at what cost, as for a run of the demo."""
        return assess_balancing(
            policy, scenario, convergence_limits(resources), self.edges, self.series, self.sessions
        )  # fmt: skip

    def row(self, name: str) -> dict[str, Any]:
        """What it did and what it took, as a row of a result; `name`: what it was, for readers."""
        return {
            "run": name, "published": self.published, "delivered": self.delivered, "sessions": len(self.sessions),
            "moved": sum(each.subscribers for each in self.sessions),
            "processor_seconds": round(self.processor_seconds, 2),
        }  # fmt: skip

    def column(self, edge: str, metric: str) -> list[tuple[float, float]]:
        """A metric of an edge over time: one point for each load report."""
        columns = self.series.of(edge)
        return list(zip(columns["seconds"], columns[metric], strict=True))


def run_world(
    resources: Resources,
    traffic: Traffic,
    seconds: float,
    seed: int = 0,
    *,
    start: float = 0.0,
    links: LinkDelays = LinkDelays(),  # noqa: B008  # a frozen value
    spread_reports: bool = True,
    clients: int | None = None,
) -> WorldRun:
    """Run a world to its end. `start`: the time of second 0 of the traffic."""
    began, series = time.process_time(), LoadSeries(start)
    fleet = QueueingFleet(
        resources, traffic, seed=seed, on_report=series.take, delay_interval_seconds=DELAY_INTERVAL_SECONDS,
        links=links, spread_reports=spread_reports, clients=clients,
    )  # fmt: skip
    fleet.run(start + seconds)
    items: list[dict[str, Any]] = [
        {"spec": dict(one.fields), "status": session_objects.stored_status(one.session, seconds)}
        for one in fleet.mediator.objects.values()
        if one.session is not None
    ]
    return WorldRun(
        series, fleet.delays, reported_sessions(items, start), fleet.owners(), sorted(fleet.edges),
        fleet.counts.published, fleet.counts.delivered, time.process_time() - began,
    )  # fmt: skip


def thinned(points: Sequence[tuple[float, float]], most: int = 400) -> list[tuple[float, float | None]]:
    """At most this many points: means over equal stretches of the sequence."""
    size = -(-len(points) // most) if points else 1
    parts = [points[at : at + size] for at in range(0, len(points), size)]
    return [(sum(t for t, _ in part) / len(part), sum(v for _, v in part) / len(part)) for part in parts]
