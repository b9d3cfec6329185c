"""What a broker knows of itself at one moment, as a value: taken by the loop once a second, read by other threads.

Taking one costs the same however many subscribers there are: counters are copied, nothing is counted anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.broker.meter import Durations
from plimsoll.core.edge import Edge
from plimsoll.core.head import Head


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`at` is of the monotonic clock. `report`: the last load report. `process`: what the shell knows.

    `sessions`: hand-overs that a head coordinates; `arriving`: places that an edge keeps for subscribers on their way.
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
    refusals: Mapping[str, int]
    rounds: Durations


def unready(machine: Head | Edge) -> str:
    """Why nobody should be sent here; an empty string if everybody may come."""
    if isinstance(machine, Head):
        waited_for = ", ".join(sorted(machine.missing))
        return "leaving" if machine.done() else f"waiting for {waited_for} to report" if waited_for else ""
    if machine.is_leaving:
        return "leaving"
    return "" if machine.head.open else f"head {machine.config.head_name} does not answer"


def take(machine: Head | Edge, version: str, refusals: Mapping[str, int], rounds: Durations, now: float) -> Snapshot:
    """A snapshot of what is there now. `refusals`: by what was not proven."""
    config, meter = machine.config, machine.meter
    labels = {"broker": config.name, "cluster": config.cluster, "fleet": config.fleet, "role": config.role}
    office = machine.office.status() if isinstance(machine, Head) else {}
    publishers = machine.publishers if isinstance(machine, Head) else None
    roles_refused = publishers.roles_refused if publishers else machine.counters["roles_refused"]
    return Snapshot(
        at=now,
        labels={**labels, "version": version},
        epoch=machine.epoch,
        unready=unready(machine),
        report=machine.reporter.last,
        counters=dict(machine.counters),
        totals=dict(meter.total),
        served=meter.total_served,
        service_seconds=meter.total_service_seconds,
        links=len(machine.links),
        sessions=office.get("sessions", 0),
        arriving=len(machine.receiving.slots) if isinstance(machine, Edge) else 0,
        outcomes=office.get("outcomes", {}),
        process=machine.process,
        quota_holds=publishers.times_held if publishers else 0,
        refusals={**refusals, "role": refusals.get("role", 0) + roles_refused},
        rounds=rounds.copy(),
    )
