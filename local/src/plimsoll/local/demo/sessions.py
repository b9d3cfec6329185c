"""Sessions of a run for its report: what each promised of both edges, what was measured, and how far apart that is.

Everything comes from the objects in the fleet's store, as `plimsoll get` would show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.local.demo.convergence import Stopped

Object = Mapping[str, Any]
METRICS: Final = (("input_utilization", "input"), ("output_utilization", "output"),
                  ("match_delay_seconds", "matchSeconds"))  # fmt: skip
STABILITY: Final = "Stability"


@dataclass(frozen=True)
class Row:
    """One session. `at_seconds` is when it was asked for, in seconds of the traffic; `policy` empty where people asked.

    `predicted` and `measured`: by edge, by metric; empty where nothing was moved or nothing is known.
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
    predicted: Mapping[str, Mapping[str, float]]
    measured: Mapping[str, Mapping[str, float]]
    before: Mapping[str, Mapping[str, float]]

    def plain(self) -> dict[str, Any]:
        """As it stands in `report.json`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def rows(objects: Iterable[Object], began_at: float) -> list[Row]:
    """The sessions that have a status, in the order in which they were asked for. `began_at`: of the traffic, Unix."""
    found = [_row(item, began_at) for item in objects if item.get("status", {}).get("record")]
    return sorted(found, key=lambda row: (row.at_seconds, row.name))


def _row(item: Object, began_at: float) -> Row:
    spec, status = item["spec"], item["status"]
    record, plan = status["record"], status.get("plan", {})
    asked, ended = float(record["requestedAt"]), record.get("endedAt")
    edges = status.get("predicted", {}).get("edges", ())
    return Row(
        uid=item["metadata"]["uid"],
        name=item["metadata"]["name"],
        source=status["source"],
        target=status["target"],
        action=str(spec.get("action", "Rebalance")),
        mode=str(spec.get("mode", "DryRun")),
        subscribers=int(status["progress"]["moved"]),
        state=status["phase"],
        reason=status["reason"],
        message=status["message"],
        at_seconds=round(asked - began_at, 3),
        duration_seconds=None if ended is None else round(float(ended) - float(record.get("startedAt", asked)), 3),
        policy=plan.get("policy", ""),
        metric=plan.get("metric", ""),
        stopped=plan.get("stopped", ""),
        by_replay=int(status.get("batches", {}).get("byReplay", 0)),
        predicted=_loads(edges, "after"),
        measured=_loads(status.get("measured", {}).get("edges", ()), "after"),
        before=_loads(edges, "before"),
    )


def _loads(edges: Iterable[Mapping[str, Any]], which: str) -> dict[str, dict[str, float]]:
    return {edge["name"]: {name: edge[which][key] for name, key in METRICS} for edge in edges if edge.get(which)}


def stopped_by_stability(sessions: Iterable[Row]) -> list[Stopped]:
    """Sessions about output that ended by the stability rule. PADRES 2006, 5.3."""
    return [
        Stopped(row.source, row.target, row.at_seconds + (row.duration_seconds or 0.0))
        for row in sessions
        if row.metric == "output" and row.stopped.startswith(STABILITY)
    ]


def accuracy(sessions: Sequence[Row]) -> dict[str, Any]:
    """How near predictions came, by metric: 1 - |predicted - measured| / measured, averaged over edges of sessions.

    PADRES 2006, 6.2 has at least 91 %, for input utilisation. What measured nothing has no accuracy, and counts below
    0 as 0. Edges of newcomers are told apart: a prediction knows nothing of who comes meanwhile.
    """
    found: dict[str, Any] = {"sessions": sum(bool(row.measured) for row in sessions)}
    for name, _ in METRICS:
        errors = [
            abs(row.predicted[edge][name] - loads[name]) / loads[name]
            for row in sessions
            for edge, loads in row.measured.items()
            if loads[name] > 0 and edge in row.predicted
        ]
        found[name] = round(sum(max(0.0, 1.0 - error) for error in errors) / len(errors), 4) if errors else None
    return found
