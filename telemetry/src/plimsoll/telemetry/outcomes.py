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
    input_percent: int
    output_percent: int
    match_microseconds: int


class _Predicted(Struct, frozen=True, rename="camel"):
    name: str
    utilization_before_percent: int
    utilization_after_percent: int
    after: _Loads | None = None


class _Measured(Struct, frozen=True, rename="camel"):
    name: str
    utilization_percent: int
    after: _Loads | None = None


class _Promise(Struct, frozen=True, rename="camel"):
    drain_milliseconds: int | None = None
    edges: list[_Predicted] = []


class _Result(Struct, frozen=True, rename="camel"):
    drain_milliseconds_max: int | None = None
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


def brief(item: Mapping[str, Any]) -> dict[str, Any]:
    """What `row` needs of a session, without the rest, which may be large."""
    status = item.get("status") or {}
    return {
        "metadata": {name: item["metadata"].get(name, "") for name in ("name", "uid")},
        "spec": {name: item["spec"][name] for name in ("scope", "mode") if name in item.get("spec", {})},
        "status": {name: status[name] for name in _READ if name in status},
    }


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
        "drain_predicted_seconds": _of(status.predicted.drain_milliseconds, 1000),
        "drain_measured_seconds": _of(status.measured.drain_milliseconds_max, 1000),
        "edges": [_edge(one, status.measured.edges) for one in status.predicted.edges],
    }  # fmt: skip


def _edge(promised: _Predicted, measured: Iterable[_Measured]) -> dict[str, Any]:
    came = next((one for one in measured if one.name == promised.name), None)
    loads, then = promised.after, came.after if came is not None else None
    return {
        "broker": promised.name,
        "utilization_before": promised.utilization_before_percent / 100,
        "utilization_predicted": promised.utilization_after_percent / 100,
        "utilization_measured": _of(came.utilization_percent if came is not None else None, 100),
        **_loads("predicted", loads),
        **_loads("measured", then),
    }


def _loads(which: str, loads: _Loads | None) -> dict[str, float | None]:
    return {
        f"input_{which}": _of(loads.input_percent if loads is not None else None, 100),
        f"output_{which}": _of(loads.output_percent if loads is not None else None, 100),
        f"match_{which}_seconds": _of(loads.match_microseconds if loads is not None else None, 1_000_000),
    }


def _of(whole: int | None, parts: int) -> float | None:
    """From a whole number of parts, as statuses have them, to the unit of the column."""
    return None if whole is None else whole / parts


def _microseconds(at: datetime) -> int:
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6)


_READ: Final = tuple(field.encode_name for field in msgspec.structs.fields(_Status))


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
