"""A finished session as a row: predictions beside measurements, read from the object that the mediator stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from plimsoll.telemetry.schema import MAJOR

FINAL_PHASES: Final = ("Succeeded", "Planned", "Failed", "RolledBack", "Rejected")


class _ReportedLoads(Struct, frozen=True, rename="camel"):
    input_percent: int
    output_percent: int
    match_microseconds: int


class _PredictedEdge(Struct, frozen=True, rename="camel"):
    name: str
    utilization_before_percent: int
    utilization_after_percent: int
    after: _ReportedLoads | None = None


class _MeasuredEdge(Struct, frozen=True, rename="camel"):
    name: str
    utilization_percent: int
    after: _ReportedLoads | None = None


class _PredictedResult(Struct, frozen=True, rename="camel"):
    drain_milliseconds: int | None = None
    edges: list[_PredictedEdge] = []


class _MeasuredResult(Struct, frozen=True, rename="camel"):
    drain_milliseconds_max: int | None = None
    edges: list[_MeasuredEdge] = []


class _PlanSummary(Struct, frozen=True, rename="camel"):
    handover: str = ""
    policy: str = ""
    metric: str = ""
    estimator: str = ""


class _ProgressSummary(Struct, frozen=True, rename="camel"):
    planned: int = 0
    moved: int = 0
    stayed: int = 0
    away: int = 0
    gone: int = 0
    returned: int = 0
    detached: int = 0
    unknown: int = 0


class _SessionSummary(Struct, frozen=True, rename="camel"):
    phase: str
    requested_at: datetime
    reason: str = ""
    ended_at: datetime | None = None
    source: str = ""
    target: str = ""
    attempt: int = 1
    plan: _PlanSummary = _PlanSummary()
    predicted: _PredictedResult = _PredictedResult()
    measured: _MeasuredResult = _MeasuredResult()
    progress: _ProgressSummary = _ProgressSummary()


class _SessionSpec(Struct, frozen=True, rename="camel"):
    scope: str = "Local"
    mode: str = "DryRun"


class _SessionMetadata(Struct, frozen=True, rename="camel"):
    name: str
    uid: str = ""


class _SessionObject(Struct, frozen=True, rename="camel"):
    metadata: _SessionMetadata
    spec: _SessionSpec
    status: _SessionSummary


def is_over(item: Mapping[str, Any]) -> bool:
    """Whether a LoadBalancingSession has ended."""
    status = item.get("status") or {}
    return status.get("phase") in FINAL_PHASES and "endedAt" in status


def session_brief(item: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a session that its row needs; the rest may be large."""
    status = item.get("status") or {}
    return {
        "metadata": {name: item["metadata"].get(name, "") for name in ("name", "uid")},
        "spec": {name: item["spec"][name] for name in ("scope", "mode") if name in item.get("spec", {})},
        "status": {name: status[name] for name in _STATUS_FIELDS if name in status},
    }


def session_row(item: Mapping[str, Any], fleet: str, collector: str, received_us: int) -> dict[str, Any]:
    """The row of an ended LoadBalancingSession.

    Raises:
        ValueError: it has not ended, or is not such an object; says where.

    """
    session = msgspec.convert(item, _SessionObject, strict=False)
    status = session.status
    if status.ended_at is None or status.phase not in FINAL_PHASES:
        raise ValueError(f"session {session.metadata.name} is {status.phase}; only sessions that are over are kept")
    progress, plan = status.progress, status.plan
    return {
        "schema": MAJOR, "collector": collector, "received_us": received_us, "fleet": fleet,
        "uid": session.metadata.uid or session.metadata.name, "name": session.metadata.name,
        "scope": session.spec.scope, "mode": session.spec.mode, "phase": status.phase, "reason": status.reason,
        "source": status.source, "target": status.target, "policy": plan.policy, "metric": plan.metric,
        "estimator": plan.estimator, "handover": plan.handover, "attempts": status.attempt,
        "requested_us": _microseconds(status.requested_at), "ended_us": _microseconds(status.ended_at),
        "planned": progress.planned, "moved": progress.moved, "stayed": progress.stayed,
        "returned": progress.returned, "detached": progress.detached,
        "unknown": progress.unknown,
        "drain_predicted_seconds": _scaled(status.predicted.drain_milliseconds, 1000),
        "drain_measured_seconds": _scaled(status.measured.drain_milliseconds_max, 1000),
        "edges": [_edge(one, status.measured.edges) for one in status.predicted.edges],
        "away": progress.away, "gone": progress.gone,
    }  # fmt: skip


def _edge(promised: _PredictedEdge, measured: Iterable[_MeasuredEdge]) -> dict[str, Any]:
    came = next((one for one in measured if one.name == promised.name), None)
    loads, then = promised.after, came.after if came is not None else None
    return {
        "broker": promised.name,
        "utilization_before": promised.utilization_before_percent / 100,
        "utilization_predicted": promised.utilization_after_percent / 100,
        "utilization_measured": _scaled(came.utilization_percent if came is not None else None, 100),
        **_loads("predicted", loads),
        **_loads("measured", then),
    }


def _loads(which: str, loads: _ReportedLoads | None) -> dict[str, float | None]:
    return {
        f"input_{which}": _scaled(loads.input_percent if loads is not None else None, 100),
        f"output_{which}": _scaled(loads.output_percent if loads is not None else None, 100),
        f"match_{which}_seconds": _scaled(loads.match_microseconds if loads is not None else None, 1_000_000),
    }


def _scaled(whole: int | None, parts: int) -> float | None:
    """Convert a status's whole number, such as per mille, to the unit of the column."""
    return None if whole is None else whole / parts


def _microseconds(at: datetime) -> int:
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6)


_STATUS_FIELDS: Final = tuple(field.encode_name for field in msgspec.structs.fields(_SessionSummary))
