"""Sessions that are over, as rows: what was promised beside what was measured, from the objects that mediators keep."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from plimsoll.telemetry.schema import MAJOR, OUTCOMES

OVER: Final = ("Succeeded", "Planned", "Failed", "RolledBack", "Rejected")
KNOWN_AT_MOST: Final = 20_000
WAITING_AT_MOST: Final = 10_000


class _Loads(Struct, frozen=True, rename="camel"):
    input: float
    output: float
    match_seconds: float


class _Predicted(Struct, frozen=True, rename="camel"):
    name: str
    utilization_before: float
    utilization_after: float
    after: _Loads | None = None


class _Measured(Struct, frozen=True, rename="camel"):
    name: str
    utilization: float
    after: _Loads | None = None


class _Promise(Struct, frozen=True, rename="camel"):
    drain_seconds: float | None = None
    edges: list[_Predicted] = []


class _Result(Struct, frozen=True, rename="camel"):
    drain_seconds_max: float | None = None
    edges: list[_Measured] = []


class _Plan(Struct, frozen=True, rename="camel"):
    handover: str = ""
    policy: str = ""
    metric: str = ""
    estimator: str = ""


class _Progress(Struct, frozen=True, rename="camel"):
    planned: int = 0
    moved: int = 0
    stayed: int = 0
    returned: int = 0
    detached: int = 0
    unknown: int = 0


class _Status(Struct, frozen=True, rename="camel"):
    phase: str
    requested_at: datetime
    reason: str = ""
    ended_at: datetime | None = None
    source: str = ""
    target: str = ""
    attempt: int = 1
    plan: _Plan = _Plan()
    predicted: _Promise = _Promise()
    measured: _Result = _Result()
    progress: _Progress = _Progress()


class _Spec(Struct, frozen=True, rename="camel"):
    scope: str = "Local"
    mode: str = "DryRun"


class _Metadata(Struct, frozen=True, rename="camel"):
    name: str
    uid: str = ""


class _Session(Struct, frozen=True, rename="camel"):
    metadata: _Metadata
    spec: _Spec
    status: _Status


def is_over(item: Mapping[str, Any]) -> bool:
    """Whether a LoadBalancingSession has come to its end."""
    status = item.get("status") or {}
    return status.get("phase") in OVER and "endedAt" in status


def row(item: Mapping[str, Any], fleet: str, collector: str, received_us: int) -> dict[str, Any]:
    """The row of a LoadBalancingSession that is over.

    Raises:
        ValueError: it is not over, or no such object; says where.

    """
    session = msgspec.convert(item, _Session, strict=False)
    status = session.status
    if status.ended_at is None or status.phase not in OVER:
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
        "drain_predicted_seconds": status.predicted.drain_seconds,
        "drain_measured_seconds": status.measured.drain_seconds_max,
        "edges": [_edge(one, status.measured.edges) for one in status.predicted.edges],
    }  # fmt: skip


def _edge(promised: _Predicted, measured: Iterable[_Measured]) -> dict[str, Any]:
    came = next((one for one in measured if one.name == promised.name), None)
    loads, then = promised.after, came.after if came is not None else None
    return {
        "broker": promised.name,
        "utilization_before": promised.utilization_before,
        "utilization_predicted": promised.utilization_after,
        "utilization_measured": came.utilization if came is not None else None,
        "input_predicted": loads.input if loads is not None else None,
        "input_measured": then.input if then is not None else None,
        "output_predicted": loads.output if loads is not None else None,
        "output_measured": then.output if then is not None else None,
        "match_predicted_seconds": loads.match_seconds if loads is not None else None,
        "match_measured_seconds": then.match_seconds if then is not None else None,
    }


def _microseconds(at: datetime) -> int:
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6)


class Outcomes:
    """Rows of sessions that wait to be written, each session once while it is remembered."""

    def __init__(self, fleet: str, collector: str) -> None:
        self.fleet, self.collector = fleet, collector
        self.counted = self.duplicates = self.refused = self.dropped = 0
        self.waiting: list[tuple[Any, ...]] = []
        self._known: OrderedDict[str, None] = OrderedDict()

    def take(self, item: Mapping[str, Any], received_us: int) -> bool:
        """Take a session that is over; whether it is new.

        Raises:
            ValueError: it cannot be taken; says why.

        """
        try:
            found = row(item, self.fleet, self.collector, received_us)
        except ValueError:
            self.refused += 1
            raise
        if not self.remember(found["uid"]):
            self.duplicates += 1
            return False
        self.counted += 1
        self.waiting.append(tuple(found[name] for name in OUTCOMES.names))
        self.back([])
        return True

    def take_rows(self) -> list[tuple[Any, ...]]:
        """The rows that wait; they are the caller's, who gives them `back` if they could not be written."""
        rows, self.waiting = self.waiting, []
        return rows

    def back(self, rows: list[tuple[Any, ...]]) -> None:
        """Rows that could not be written wait again; the oldest go if they are too many."""
        self.waiting = [*rows, *self.waiting]
        self.dropped += max(0, len(self.waiting) - WAITING_AT_MOST)
        self.waiting = self.waiting[-WAITING_AT_MOST:]

    def remember(self, uid: str) -> bool:
        """Note that a session has been taken; whether that is news."""
        if uid in self._known:
            self._known.move_to_end(uid)
            return False
        self._known[uid] = None
        if len(self._known) > KNOWN_AT_MOST:
            self._known.popitem(last=False)
        return True
