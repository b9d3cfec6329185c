"""The condition `LogSafe` of a cluster whose head keeps its log on a disk: what that disk does, or has lost."""

from __future__ import annotations

from typing import Final

from plimsoll.core.spec.status.conditions import Condition
from plimsoll.mediator.resource_status import ObservedBroker

SLOW_SYNC_SECONDS: Final = 2.0
"""Of one sync that is going on: deliveries and answers wait for it."""


def log_conditions(head: ObservedBroker) -> list[Condition]:
    """The condition, by the last report of the head; none of a head that keeps its log in memory."""
    report = head.report or {}
    if "log_sync" not in report:
        return []
    if fault := str(report.get("log_fault", "")):
        return [_unsafe("LogFull", f"{fault}; publications are refused until there is room")]
    waiting = _number(report.get("log_sync_waiting_seconds"))
    if waiting > SLOW_SYNC_SECONDS:
        text = f"a sync of the log of {head.name} has been going on for {waiting:.0f} s; what it accepts waits for it"
        return [_unsafe("LogSlow", text)]
    damages = int(_number(report.get("log_damages")) + _number(report.get("log_read_faults")))
    if damages:
        text = f"{damages} parts of the log of {head.name} were damaged, and have become gaps; its output names them"
        return [_unsafe("LogDamaged", text)]
    return [Condition("LogSafe", "True", "LogWritten", f"{head.name} keeps its log on its disk")]


def _unsafe(reason: str, text: str) -> Condition:
    return Condition("LogSafe", "False", reason, text)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
