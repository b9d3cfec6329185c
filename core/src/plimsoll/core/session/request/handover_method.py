"""Drain or replay: how long a source needs to deliver its queues, and whether the log of its head lasts that long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.core.session.inputs import EdgeView, EngineSettings, HeadView


@dataclass(frozen=True)
class HandoverMethod:
    """The method of a batch and the reason for it. `refused`: the requested method is not possible."""

    replay: bool
    drain_seconds: float
    why: str
    refused: bool = False


def predicted_drain_seconds(edge: EdgeView) -> float:
    """Seconds until an edge has delivered what it has received: input delay, matching, and its output queues.

    Zero without a report.
    """
    report = edge.report
    delay = _report_number(report, "input_queue_delay_seconds") + _report_number(report, "match_delay_seconds")
    queued, bandwidth = _report_number(report, "output_queue_bytes"), _bandwidth(edge)
    sending = queued / bandwidth if bandwidth else 0.0
    return delay + max(_report_number(report, "output_queue_delay_seconds"), sending)


def _bandwidth(edge: EdgeView) -> float:
    """The most bytes per second that leave the edge; the present rate if it is not limited."""
    return edge.output_bytes_per_second or _report_number(edge.report, "output_bytes_per_second")


def log_retention_seconds(head: HeadView) -> float:
    """How long a publication stays in the log of a head at the present rate."""
    limit, rate = _report_number(head.report, "log_limit_bytes"), _report_number(head.report, "log_bytes_per_second")
    return limit / rate if rate > 0 else float("inf")


def choose_method(
    handover: str, source: EdgeView, head: HeadView, settings: EngineSettings, *, across: bool
) -> HandoverMethod:
    """Drain or replay. `handover` is `Auto`, `Drain` or `Replay`, as in the specification.

    The queues of a source that receives more than it can take in only grow, so it never drains in time.
    """
    takes = predicted_drain_seconds(source)
    limit = settings.drain_limit_seconds * settings.time_factor
    falls_behind = _report_number(source.report, "input_utilization") >= 1.0
    if handover == "Drain" or (handover == "Auto" and (across or (takes <= limit and not falls_behind))):
        why = "as requested" if handover == "Drain" else f"{source.name} needs {takes:.1f} s"
        return HandoverMethod(False, takes, "between clusters" if across and handover == "Auto" else why)
    if across:
        return HandoverMethod(True, takes, "replay works within a cluster only", refused=True)
    lasts, needed = log_retention_seconds(head), catchup_seconds(takes, settings) * settings.log_margin
    if lasts < needed:
        why = f"the log of {head.name} lasts {lasts:.1f} s, replay wants {needed:.1f} s"
        return HandoverMethod(handover == "Replay", takes, why, refused=handover == "Replay")
    why = f"{source.name} would need {takes:.1f} s"
    if handover == "Replay":
        why = "as requested"
    elif falls_behind:
        why = f"{source.name} receives more than it can take in, so a drain would take longer and longer"
    return HandoverMethod(True, takes, why)


def catchup_seconds(behind: float, settings: EngineSettings) -> float:
    """From the cut until all is delivered: to resume, then twice the seconds that the source is behind."""
    return settings.scaled.gather + 2.0 * behind


def _report_number(report: Mapping[str, Any], name: str) -> float:
    value = report.get(name)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < float("inf")
    return float(value) if usable and value is not None else 0.0
