"""The balance of a cluster, the reason if nothing is done about it, and a summary of its load: pure functions.

The policy's detection is applied to the last load reports of the edges, without the edges' own memory of sessions: the
stored sessions are taken into account here instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plimsoll.core.policies.detection import DetectionResult, Detector, DetectorState
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.rebalancer import FleetLook
from plimsoll.core.policies.registry import parameters_of_spec, rebalancer_of_spec
from plimsoll.core.session.status import rfc3339
from plimsoll.core.spec import Resources, maintenance
from plimsoll.core.spec.broker_config import policy_of
from plimsoll.core.spec.brokers import scaled_group
from plimsoll.core.spec.status.conditions import Condition
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.mediator.resource_status import ObservedBroker, load_summary
from plimsoll.mediator.session_objects import is_over


@dataclass(frozen=True)
class SessionOutline:
    """Summary of a session: its brokers, and how it ended, if it has. `source`: whose session it is."""

    name: str
    parties: frozenset[str]
    over: bool
    phase: str = ""
    reason: str = ""
    message: str = ""
    moved: int = 0
    ended_at: str = ""
    source: str = ""


def session_outline(item: Mapping[str, Any]) -> SessionOutline:
    """The part of a session's object that the status of a cluster depends on."""
    spec, status = item.get("spec", {}), item.get("status", {})
    return SessionOutline(
        name=item["metadata"]["name"],
        parties=frozenset(str(spec[key]["name"]) for key in ("source", "target") if spec.get(key)),
        source=str((spec.get("source") or {}).get("name", "")),
        over=is_over(item),
        phase=str(status.get("phase", "")),
        reason=str(status.get("reason", "")),
        message=str(status.get("message", "")),
        moved=int(status.get("progress", {}).get("moved", 0)),
        ended_at=str(status.get("endedAt", "")),
    )


def balanced_condition(
    resources: Resources, cluster: str, edges: Sequence[ObservedBroker], sessions: Iterable[SessionOutline], now: float
) -> Condition:
    """The `Balanced` condition of a cluster."""
    mine = _sessions_of(cluster, edges, sessions)
    going_on = [each.name for each in mine if not each.over]
    policy = policy_of(resources, cluster) if cluster in resources.clusters else None
    if going_on:
        return Condition("Balanced", "False", "Balancing", f"session {going_on[0]} is open")
    if policy is None:
        return Condition("Balanced", "Unknown", "NoPolicy", "no policy says how this cluster is balanced")
    if len(edges) < 2:
        return Condition("Balanced", "True", "OneEdge", "there is no other edge to move subscribers to")
    factor = resources.fleet.spec.time_scale_percent / 100
    fresh_seconds = parameters_of_spec(policy, factor).fresh_seconds
    loads = {edge.name: load for edge in edges if (load := _broker_load(edge, fresh_seconds)) is not None}
    if len(loads) < len(edges):
        silent = next(edge.name for edge in edges if edge.name not in loads)
        return Condition("Balanced", "Unknown", "NoReports", f"no load report from {silent} for {fresh_seconds:g} s")
    own = _own_sessions(cluster, edges, mine)
    return _verdict_condition(resources, cluster, _wanting(policy, factor, cluster, loads), own, now)


def _sessions_of(
    cluster: str, edges: Sequence[ObservedBroker], sessions: Iterable[SessionOutline]
) -> list[SessionOutline]:
    names = {cluster, *(edge.name for edge in edges)}
    return sorted((each for each in sessions if each.parties & names), key=lambda each: (each.ended_at, each.name))


def _own_sessions(
    cluster: str, edges: Sequence[ObservedBroker], sessions: Sequence[SessionOutline]
) -> list[SessionOutline]:
    """Those that move something away from this cluster: how others fare, of which it is a target, is not its fault."""
    names = {cluster, *(edge.name for edge in edges)}
    return [each for each in sessions if each.source in names]


def _broker_load(edge: ObservedBroker, fresh_seconds: float) -> BrokerLoad | None:
    """The load of an edge; None if its last report is too old for a decision, as for the policy."""
    if not edge.report or edge.report_age is None or edge.report_age > fresh_seconds:
        return None
    try:
        load = BrokerLoad.from_report({"broker": edge.name, **edge.report})
    except (TypeError, ValueError):  # an invalid report counts as none
        return None
    return replace(load, state="OK", time=0.0)  # its own memory of sessions must not count here


def _findings(policy: PolicySpec, factor: float, loads: Mapping[str, BrokerLoad]) -> dict[str, DetectionResult]:
    detector = Detector(parameters_of_spec(policy, factor), "Local")
    return {name: detector.run(own, loads.values(), DetectorState(), 0.0)[1] for name, own in loads.items()}


def _wanting(
    policy: PolicySpec, factor: float, cluster: str, loads: Mapping[str, BrokerLoad]
) -> dict[str, DetectionResult]:
    """The edges that want balance, or the cluster if its policy plans for all of it; none if all is balanced."""
    rebalancer = rebalancer_of_spec(policy, factor)
    if rebalancer is None:
        findings = _findings(policy, factor, loads)
        return {name: found for name, found in findings.items() if found.actions or found.state == "N/A"}
    uneven = rebalancer.imbalance(FleetLook(tuple(loads.values())))
    return {cluster: DetectionResult("OK", (), uneven)} if uneven else {}


def _verdict_condition(
    resources: Resources,
    cluster: str,
    wanting: Mapping[str, DetectionResult],
    sessions: Sequence[SessionOutline],
    now: float,
) -> Condition:
    if not wanting:
        return Condition("Balanced", "True", "NoTrigger", "no edge differs from another by more than the trigger")
    overloaded = [name for name, found in wanting.items() if found.state == "N/A"]
    first = overloaded[0] if overloaded else next(iter(wanting))
    message, reason = f"{first}: {wanting[first].reason}", "Overloaded" if overloaded else "Unbalanced"
    own = resources.clusters[cluster].spec.maintenance_windows
    if not maintenance.is_window_open(own, now):
        opens = rfc3339(maintenance.next_window_at(own, now))
        return Condition("Balanced", "False", "OutsideWindow", f"{message}; the next window opens at {opens}")
    last = sessions[-1] if sessions else None
    if last is None or last.phase in ("Succeeded", "Planned") or not last.reason:
        return Condition("Balanced", "False", reason, message)
    return Condition(
        "Balanced", "False", last.reason, f"{message}; session {last.name} ended as {last.phase}: {last.message}"
    )


def cluster_summary(
    resources: Resources, cluster: str, edges: Sequence[ObservedBroker], sessions: Iterable[SessionOutline], now: float
) -> dict[str, Any]:
    """Summary of a cluster's edges for its status; unknown fields are left out."""
    found: dict[str, Any] = {"replicas": _replicas(resources, cluster, edges)}
    loads = [load_summary(edge.report) for edge in edges if edge.report]
    if loads:
        keys = [key for key in loads[0] if all(key in load for load in loads)]
        found["load"] = {key: round(sum(load[key] for load in loads) / len(loads)) for key in keys}
    if len(loads) > 1:
        found["imbalancePercent"] = max(
            max(load.get(key, 0) for load in loads) - min(load.get(key, 0) for load in loads)
            for key in ("inputUtilizationPercent", "outputUtilizationPercent")
        )
    mine = _sessions_of(cluster, edges, sessions)
    ended = [each for each in _own_sessions(cluster, edges, mine) if each.over]
    if ended:
        found["lastSession"] = _last_session(ended[-1])
    own = resources.clusters[cluster].spec.maintenance_windows if cluster in resources.clusters else ()
    if not maintenance.is_window_open(own, now):
        found["nextWindow"] = rfc3339(maintenance.next_window_at(own, now))
    return found


def _last_session(session: SessionOutline) -> dict[str, Any]:
    found = {"name": session.name, "phase": session.phase, "reason": session.reason, "moved": session.moved}
    return {**found, "endedAt": session.ended_at}


def _replicas(resources: Resources, cluster: str, edges: Sequence[ObservedBroker]) -> int:
    """The edges of the group that is scaled; all edges if none is."""
    group = scaled_group(resources.clusters[cluster].spec) if cluster in resources.clusters else None
    if group is None:
        return len(edges)
    return sum(name == group.name and number.isdigit() for name, _, number in (e.name.rpartition("-") for e in edges))
