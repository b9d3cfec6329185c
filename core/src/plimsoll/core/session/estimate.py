"""By drain or by replay: how long the source would take to deliver what it has, and whether the log waits so long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.core.session.values import EdgeView, HeadView, Settings


@dataclass(frozen=True)
class Choice:
    """How a batch goes, and why. `refused`: what was asked for cannot be had."""

    replay: bool
    drain_seconds: float
    why: str
    refused: bool = False


def drain_seconds(edge: EdgeView) -> float:
    """How long what has come to an edge takes to leave it: input delay, matching, and what lies in its queues.

    Zero where nothing has been reported.
    """
    report = edge.report
    delay = _number(report, "input_queue_delay_seconds") + _number(report, "match_delay_seconds")
    queued, bandwidth = _number(report, "output_queue_bytes"), _bandwidth(edge)
    sending = queued / bandwidth if bandwidth else 0.0
    return delay + max(_number(report, "output_queue_delay_seconds"), sending)


def _bandwidth(edge: EdgeView) -> float:
    """Bytes per second that leave the edge at most; what leaves it now, if it is not limited."""
    return edge.output_bytes_per_second or _number(edge.report, "output_bytes_per_second")


def log_seconds(head: HeadView) -> float:
    """How long a publication stays in a head's log at the rate of now."""
    limit, rate = _number(head.report, "log_limit_bytes"), _number(head.report, "log_bytes_per_second")
    return limit / rate if rate > 0 else float("inf")


def choose(handover: str, source: EdgeView, head: HeadView, settings: Settings, *, across: bool) -> Choice:
    """Drain or replay. `handover` is `Auto`, `Drain` or `Replay`, as in the specification.

    What a source has to deliver now says little of a source to which more comes than it can take in.
    """
    takes = drain_seconds(source)
    limit = settings.drain_limit_seconds * settings.time_factor
    falls_behind = _number(source.report, "input_utilization") >= 1.0
    if handover == "Drain" or (handover == "Auto" and (across or (takes <= limit and not falls_behind))):
        why = "as asked for" if handover == "Drain" else f"{source.name} needs {takes:.1f} s"
        return Choice(False, takes, "between clusters" if across and handover == "Auto" else why)
    if across:
        return Choice(True, takes, "replay works within a cluster only", refused=True)
    lasts, needed = log_seconds(head), catchup_seconds(takes, settings) * settings.log_margin
    if lasts < needed:
        why = f"the log of {head.name} lasts {lasts:.1f} s, replay wants {needed:.1f} s"
        return Choice(handover == "Replay", takes, why, refused=handover == "Replay")
    why = f"{source.name} would need {takes:.1f} s"
    if handover == "Replay":
        why = "as asked for"
    elif falls_behind:
        why = f"more comes to {source.name} than it can take in, so it would need longer and longer"
    return Choice(True, takes, why)


def catchup_seconds(behind: float, settings: Settings) -> float:
    """From the cut until all is delivered: to resume, and to read at twice the speed what the source had not sent."""
    return settings.scaled.gather + 2.0 * behind


def _number(report: Mapping[str, Any], name: str) -> float:
    value = report.get(name)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < float("inf")
    return float(value) if usable and value is not None else 0.0
