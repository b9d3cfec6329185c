"""Whether a cluster is balanced, and why nothing is done about it where it is not: a pure function."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.core.spec import Resources
from plimsoll.core.spec.conditions import Condition
from plimsoll.core.spec.planning import policy_of
from plimsoll.mediator.reports import Seen
from plimsoll.mediator.sessions import is_over
from plimsoll.operator.names import Object


def balanced(resources: Resources, cluster: str, edges: Sequence[Seen], sessions: Sequence[Object]) -> Condition:
    """The `Balanced` condition of a cluster."""
    names = {edge.name for edge in edges}
    mine = [item for item in sessions if _parties(item) & {*names, cluster}]
    going_on = [item["metadata"]["name"] for item in mine if not is_over(item)]
    policy = policy_of(resources, cluster) if cluster in resources.clusters else None
    if going_on:
        return Condition("Balanced", "False", "Balancing", f"session {going_on[0]} is going on")
    if policy is None:
        return Condition("Balanced", "Unknown", "NoPolicy", "no policy says how this cluster is balanced")
    if len(edges) < 2:
        return Condition("Balanced", "True", "OneEdge", "there is no edge to move anybody to")
    silent = [edge.name for edge in edges if not edge.report]
    if silent:
        return Condition("Balanced", "Unknown", "NoReports", f"no load report from {silent[0]}")
    return _judged(edges, mine)


def _judged(edges: Sequence[Seen], sessions: Sequence[Object]) -> Condition:
    """By what the edges' own detectors say of themselves: each compares itself with the others."""
    busy = [edge.name for edge in edges if edge.report.get("state") == "BUSY"]
    spread = _spread(edges)
    if not busy:
        return Condition("Balanced", "True", "NoTrigger", f"no edge asks for relief; {spread}")
    last = max(sessions, key=lambda item: str(item.get("status", {}).get("endedAt", "")), default=None)
    status = last.get("status", {}) if last is not None else {}
    if last is None or status.get("phase") in ("Succeeded", None):
        return Condition("Balanced", "False", "Overloaded", f"{busy[0]} asks for relief; {spread}")
    why = f"session {last['metadata']['name']} ended as {status['phase']}: {_why(status)}"
    return Condition("Balanced", "False", str(_reason(status) or "Overloaded"), f"{busy[0]} asks for relief; {why}")


def _spread(edges: Sequence[Seen]) -> str:
    loads = [round(100 * float(edge.report.get("input_utilization") or 0.0)) for edge in edges]
    return f"input utilisation is between {min(loads)} and {max(loads)} percent"


def _parties(item: Object) -> set[str]:
    spec = item.get("spec", {})
    return {str(spec[key]["name"]) for key in ("source", "target") if spec.get(key)}


def _succeeded(status: Object) -> Object:
    found = (each for each in status.get("conditions", []) if each.get("type") == "Succeeded")
    return dict(next(found, {}))


def _reason(status: Object) -> str:
    return str(_succeeded(status).get("reason", ""))


def _why(status: Object) -> str:
    return str(_succeeded(status).get("message", "") or _reason(status))
