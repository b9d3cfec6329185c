"""Sessions of a run for its report: what each predicted for both edges, what was measured, and the difference.

Everything comes from the objects in the fleet's store: requests from their specifications, the rest from the records
that mediators resume from, which keep all figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

from msgspec.structs import asdict

from plimsoll.core.session import Session, decode
from plimsoll.core.session.session_plan import LoadFigures
from plimsoll.demo.analysis.convergence import StabilityStop

Object = Mapping[str, Any]
METRICS: Final = (("input_utilization", "input"), ("output_utilization", "output"),
                  ("match_delay_seconds", "match_seconds"))  # fmt: skip
STABILITY_STOP: Final = "Stability"


@dataclass(frozen=True)
class ReportedSession:
    """One session. `at_seconds`: when it was requested, in seconds of the traffic; `policy`: empty if a person asked.

    `audit`: deliveries counted by its moved subscribers, and how many of them have counted. `predicted` and `measured`:
    by edge, by metric; empty where nothing moved or nothing is known.
    """

    uid: str
    name: str
    source: str
    target: str
    action: str
    mode: str
    subscribers: int
    state: str
    reason: str
    message: str
    at_seconds: float
    duration_seconds: float | None
    policy: str
    metric: str
    stopped: str
    by_replay: int
    audit: Mapping[str, int]
    predicted: Mapping[str, Mapping[str, float]]
    measured: Mapping[str, Mapping[str, float]]
    before: Mapping[str, Mapping[str, float]]

    def plain(self) -> dict[str, Any]:
        """The section of `report.json`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def reported_sessions(objects: Iterable[Object], began_at: float) -> list[ReportedSession]:
    """The sessions that a mediator knows, in the order of their requests. `began_at`: of the traffic, Unix.

    Raises:
        ValueError: a record cannot be read as one.

    """
    known = [item for item in objects if item.get("status", {}).get("record")]
    found = [_reported_session(item["spec"], decode(item["status"]["record"]), began_at) for item in known]
    return sorted(found, key=lambda row: (row.at_seconds, row.name))


def _reported_session(spec: Object, session: Session, began_at: float) -> ReportedSession:
    plan, ended = session.plan, session.ended_at
    began = session.requested_at if session.started_at is None else session.started_at
    return ReportedSession(
        uid=session.uid,
        name=session.name,
        source=", ".join(session.sources),
        target=", ".join(session.targets),
        action=str(spec.get("action", "Rebalance")),
        mode=str(spec.get("mode", "DryRun")),
        subscribers=session.counts()["moved"],
        state=session.phase,
        reason=session.reason,
        message=session.message,
        at_seconds=round(session.requested_at - began_at, 3),
        duration_seconds=None if ended is None else round(ended - began, 3),
        policy="" if plan is None else plan.policy,
        metric="" if plan is None else plan.metric,
        stopped="" if plan is None else plan.stop,
        by_replay=sum(batch.replay for batch in session.batches),
        audit=asdict(session.audit()),
        predicted=_loads_by_edge(session, "after"),
        measured=_loads_by_edge(session, "measured"),
        before=_loads_by_edge(session, "before"),
    )


def _loads_by_edge(session: Session, which: str) -> dict[str, dict[str, float]]:
    forecasts = session.plan.forecasts if session.plan is not None else []
    known: dict[str, LoadFigures | None] = {one.edge: getattr(one, which) for one in forecasts}
    return {
        edge: {name: getattr(loads, key) for name, key in METRICS} for edge, loads in known.items() if loads is not None
    }


def stopped_by_stability(sessions: Iterable[ReportedSession]) -> list[StabilityStop]:
    """Sessions about output that ended by the stability rule. PADRES 2006, 5.3."""
    return [
        StabilityStop(row.source, row.target, row.at_seconds + (row.duration_seconds or 0.0))
        for row in sessions
        if row.metric == "output" and row.stopped.startswith(STABILITY_STOP)
    ]


def prediction_accuracy(sessions: Sequence[ReportedSession]) -> dict[str, Any]:
    """Accuracy of predictions by metric: 1 - |predicted - measured| / measured.

    For each metric the mean over the edges of all sessions, as in PADRES 2006, 6.2, which has at least 91 % for input
    utilisation; in `median` that over sessions, each with the mean of its edges. A measurement of 0 has no accuracy,
    and values below 0 count as 0.
    """
    found: dict[str, Any] = {"sessions": sum(bool(row.measured) for row in sessions), "median": {}}
    for name, _ in METRICS:
        each = [right for row in sessions if (right := _accuracies(row, name))]
        whole = [one for right in each for one in right]
        found[name] = round(fmean(whole), 4) if whole else None
        found["median"][name] = round(median(map(fmean, each)), 4) if each else None
    return found


def _accuracies(row: ReportedSession, name: str) -> list[float]:
    """Of one session and metric, for each edge that was predicted and measured."""
    return [
        max(0.0, 1.0 - abs(row.predicted[edge][name] - loads[name]) / loads[name])
        for edge, loads in row.measured.items()
        if loads[name] > 0 and edge in row.predicted
    ]
