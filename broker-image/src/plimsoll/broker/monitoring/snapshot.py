"""The state of a broker at one moment, as a value: taken by the loop once a second, read by other threads.

The cost does not depend on the number of subscribers: counters are copied, nothing is recounted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.broker.monitoring.publisher_metrics import NO_MOVES, PublisherMoveCounts
from plimsoll.broker.monitoring.usage_meter import RoundDurations
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.policies.model.load import ResourceThresholds


@dataclass(frozen=True, slots=True)
class BrokerSnapshot:
    """`at` is of the monotonic clock. `report`: the last load report. `process`: what the shell knows.

    `sessions`: hand-overs that a head coordinates; `arriving`: places that an edge keeps for subscribers on their way.
    `thresholds`: of an edge's policy; None without one. `named_topics`: those that the policy names, by hash; `late`:
    deliveries of each since the start that came later than required, under 0 those of all others.
    """

    at: float
    labels: Mapping[str, str]
    epoch: int
    unready: str
    report: Mapping[str, Any]
    counters: Mapping[str, int]
    totals: Mapping[str, int]
    served: int
    service_seconds: float
    links: int
    sessions: int
    arriving: int
    outcomes: Mapping[str, int]
    process: Mapping[str, Any]
    quota_holds: int
    link_holds: int
    refusals: Mapping[str, int]
    rounds: RoundDurations
    thresholds: ResourceThresholds | None = None
    publisher_moves: PublisherMoveCounts = NO_MOVES
    named_topics: Mapping[int, str] = field(default_factory=dict)
    late: Mapping[int, int] = field(default_factory=dict)


def unready_reason(machine: Head | Edge) -> str:
    """Why the broker is not ready for clients; an empty string if it is."""
    if isinstance(machine, Head):
        waited_for = ", ".join(sorted(machine.startup.missing))
        return "leaving" if machine.done() else f"waiting for {waited_for} to report" if waited_for else ""
    if machine.is_leaving:
        return "leaving"
    return "" if machine.head.open else f"head {machine.config.head_name} does not answer"


def take_snapshot(
    machine: Head | Edge, version: str, refusals: Mapping[str, int], rounds: RoundDurations, now: float
) -> BrokerSnapshot:
    """A snapshot of the present state. `refusals`: counts by what peers failed to prove."""
    config, meter = machine.config, machine.meter
    meter_of_topics = machine.topic_meter if isinstance(machine, Edge) else None
    labels = {"broker": config.name, "cluster": config.cluster, "fleet": config.fleet, "role": config.role}
    coordinator = machine.coordinator if isinstance(machine, Head) else None
    publishers = machine.publishers if isinstance(machine, Head) else None
    roles_refused = publishers.roles_refused if publishers else machine.counters["roles_refused"]
    return BrokerSnapshot(
        at=now,
        labels={**labels, "version": version},
        epoch=machine.epoch,
        unready=unready_reason(machine),
        report=machine.reporter.last,
        counters=dict(machine.counters),
        totals=dict(meter.total),
        served=meter.total_served,
        service_seconds=meter.total_service_seconds,
        links=len(machine.links),
        sessions=len(coordinator.sessions) if coordinator else 0,
        arriving=len(machine.handover_target.slots) if isinstance(machine, Edge) else 0,
        outcomes=dict(sorted(coordinator.table.outcomes.items())) if coordinator else {},
        process=machine.process,
        quota_holds=publishers.credits.times_held if publishers else 0,
        link_holds=publishers.credits.times_held_for_links if publishers else 0,
        refusals={**refusals, "role": refusals.get("role", 0) + roles_refused},
        rounds=rounds.copy(),
        thresholds=_thresholds(machine),
        publisher_moves=PublisherMoveCounts.of(machine) if isinstance(machine, Head) else NO_MOVES,
        named_topics=meter_of_topics.required.names if meter_of_topics is not None else {},
        late=dict(meter_of_topics.late) if meter_of_topics is not None else {},
    )


def _thresholds(machine: Head | Edge) -> ResourceThresholds | None:
    agent = machine.balancing_agent if isinstance(machine, Edge) else None
    return agent.load_monitor.parameters.thresholds if agent is not None else None
