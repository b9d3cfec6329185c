"""Whether a cluster is balanced, why nothing is done about it where it is not, and its load in brief.

Judged as the detection of its policy judges, at the last load reports of its edges, without what they remember of
sessions: those are looked at here. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plimsoll.core.detector import Detector, Finding, Memory
from plimsoll.core.policies.fleet import BrokerLoad
from plimsoll.core.policies.registry import parameters
from plimsoll.core.session.status import rfc3339
from plimsoll.core.spec import Resources, windows
from plimsoll.core.spec.brokers import scaled
from plimsoll.core.spec.conditions import Condition
from plimsoll.core.spec.planning import policy_of
from plimsoll.core.spec.policy import PolicySpec
from plimsoll.mediator.reports import Seen, load_summary
from plimsoll.mediator.sessions import is_over


@dataclass(frozen=True)
class Brief:
    """A session in brief: whom it concerns, and how it ended, if it has."""

    name: str
    parties: frozenset[str]
    over: bool
    phase: str = ""
    reason: str = ""
    message: str = ""
    moved: int = 0
    ended_at: str = ""


def brief(item: Mapping[str, Any]) -> Brief:
    """What the status of a cluster says of a session's object."""
    spec, status = item.get("spec", {}), item.get("status", {})
    return Brief(
        name=item["metadata"]["name"],
        parties=frozenset(str(spec[key]["name"]) for key in ("source", "target") if spec.get(key)),
        over=is_over(item),
        phase=str(status.get("phase", "")),
        reason=str(status.get("reason", "")),
        message=str(status.get("message", "")),
        moved=int(status.get("progress", {}).get("moved", 0)),
        ended_at=str(status.get("endedAt", "")),
    )


def balanced(
    resources: Resources, cluster: str, edges: Sequence[Seen], sessions: Iterable[Brief], now: float
) -> Condition:
    """The `Balanced` condition of a cluster."""
    mine = _of(cluster, edges, sessions)
    going_on = [each.name for each in mine if not each.over]
    policy = policy_of(resources, cluster) if cluster in resources.clusters else None
    if going_on:
        return Condition("Balanced", "False", "Balancing", f"session {going_on[0]} is going on")
    if policy is None:
        return Condition("Balanced", "Unknown", "NoPolicy", "no policy says how this cluster is balanced")
    if len(edges) < 2:
        return Condition("Balanced", "True", "OneEdge", "there is no edge to move anybody to")
    loads = {edge.name: load for edge in edges if (load := _load(edge)) is not None}
    if len(loads) < len(edges):
        silent = next(edge.name for edge in edges if edge.name not in loads)
        return Condition("Balanced", "Unknown", "NoReports", f"no load report from {silent}")
    factor = resources.fleet.spec.time_scale_percent / 100
    return _judged(resources, cluster, _findings(policy, factor, loads), mine, now)


def _of(cluster: str, edges: Sequence[Seen], sessions: Iterable[Brief]) -> list[Brief]:
    names = {cluster, *(edge.name for edge in edges)}
    return sorted((each for each in sessions if each.parties & names), key=lambda each: (each.ended_at, each.name))


def _load(edge: Seen) -> BrokerLoad | None:
    if not edge.report:
        return None
    try:
        load = BrokerLoad.of({"broker": edge.name, **edge.report})
    except (TypeError, ValueError):  # it is as good as none
        return None
    return replace(load, state="OK", time=0.0)  # what it says of sessions does not count here


def _findings(policy: PolicySpec, factor: float, loads: Mapping[str, BrokerLoad]) -> dict[str, Finding]:
    detector = Detector(parameters(policy, factor), "Local")
    return {name: detector.run(own, loads.values(), Memory(), 0.0)[1] for name, own in loads.items()}


def _judged(
    resources: Resources, cluster: str, findings: Mapping[str, Finding], sessions: Sequence[Brief], now: float
) -> Condition:
    wanting = {name: found for name, found in findings.items() if found.actions or found.state == "N/A"}
    if not wanting:
        return Condition("Balanced", "True", "NoTrigger", "no edge differs from another by more than the trigger")
    overloaded = [name for name, found in wanting.items() if found.state == "N/A"]
    first = overloaded[0] if overloaded else next(iter(wanting))
    message, reason = f"{first}: {wanting[first].reason}", "Overloaded" if overloaded else "Unbalanced"
    own = resources.clusters[cluster].spec.maintenance_windows
    if not windows.is_open(own, now):
        opens = rfc3339(windows.opens_at(own, now))
        return Condition("Balanced", "False", "OutsideWindow", f"{message}; the next window opens at {opens}")
    last = sessions[-1] if sessions else None
    if last is None or last.phase in ("Succeeded", "Planned") or not last.reason:
        return Condition("Balanced", "False", reason, message)
    return Condition(
        "Balanced", "False", last.reason, f"{message}; session {last.name} ended as {last.phase}: {last.message}"
    )


def summary(
    resources: Resources, cluster: str, edges: Sequence[Seen], sessions: Iterable[Brief], now: float
) -> dict[str, Any]:
    """What the status of a cluster says of its edges together; what is not known is left out."""
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
    ended = [each for each in _of(cluster, edges, sessions) if each.over]
    if ended:
        found["lastSession"] = _last(ended[-1])
    own = resources.clusters[cluster].spec.maintenance_windows if cluster in resources.clusters else ()
    if not windows.is_open(own, now):
        found["nextWindow"] = rfc3339(windows.opens_at(own, now))
    return found


def _last(session: Brief) -> dict[str, Any]:
    found = {"name": session.name, "phase": session.phase, "reason": session.reason, "moved": session.moved}
    return {**found, "endedAt": session.ended_at}


def _replicas(resources: Resources, cluster: str, edges: Sequence[Seen]) -> int:
    """Edges of the group that scaling means; all, where it means none."""
    group = scaled(resources.clusters[cluster].spec) if cluster in resources.clusters else None
    if group is None:
        return len(edges)
    return sum(name == group.name and number.isdigit() for name, _, number in (e.name.rpartition("-") for e in edges))
