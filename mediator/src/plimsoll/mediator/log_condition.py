"""The condition `LogSafe` of a cluster: what the disk of its head's log does or has lost, or that there is none.

When what a disk does changes there is an event as well, with the reason and the message of the condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from plimsoll.core.spec.status.conditions import Condition
from plimsoll.mediator.resource_status import ObservedBroker

SLOW_SYNC_SECONDS: Final = 2.0
"""Of one sync that is going on: deliveries and answers wait for it."""

DISK_EXITS: Final = ("exited with 4", "exited with code 4")
"""How a broker ends whose log cannot be read or written (its exit code 4), as pods and as processes say it."""


class LogEvent(NamedTuple):
    """An event about the disk of the log of head `broker`."""

    broker: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class LogEvents:
    """What was last seen of the disks of the heads of a fleet."""

    def __init__(self) -> None:
        self._last: dict[str, ObservedBroker] = {}

    def since_last_look(self, heads: Iterable[ObservedBroker]) -> Iterator[LogEvent]:
        """What has changed since the last look."""
        for head in heads:
            yield from log_events(self._last.get(head.name), head)
            self._last[head.name] = head


def log_events(before: ObservedBroker | None, after: ObservedBroker) -> Iterator[LogEvent]:
    """The event about a change from one look to the next: at most one. A log that is found to be good says nothing."""
    old = {each.reason: each.message for each in _disk_conditions(before)} if before is not None else {}
    for now in _disk_conditions(after):
        is_safe = now.status == "True"
        has_more_damage = now.reason == "LogDamaged" and old.get(now.reason) != now.message
        if (now.reason not in old or has_more_damage) and (old or not is_safe):
            yield LogEvent(after.name, "Normal" if is_safe else "Warning", now.reason, now.message)


def log_conditions(head: ObservedBroker, *, has_standby: bool) -> list[Condition]:
    """The condition, by the last report of the head; none of a head that has reported nothing yet."""
    if "log_bytes" in head.report and "log_sync" not in head.report:
        return [_unsafe("LogInMemory", _lost_with_memory(head.name, has_standby=has_standby))]
    return _disk_conditions(head)


def _lost_with_memory(name: str, *, has_standby: bool) -> str:
    lost = "publications that are accepted and not yet delivered are lost, as gaps,"
    if has_standby:
        return f"{name} and its standby keep the log in memory only: {lost} if both end, or one while it is alone"
    return f"{name} keeps its log in memory only: {lost} when it ends or restarts"


def _disk_conditions(head: ObservedBroker) -> list[Condition]:
    """The condition of a log on a disk; none of a head that keeps it in memory."""
    report = head.report or {}
    if not report and head.last_end in DISK_EXITS:
        return [_unsafe("LogFailed", f"{head.name} {head.last_end}: its log could not be read or written")]
    if "log_sync" not in report:
        return []
    damages = int(_number(report.get("log_damages")) + _number(report.get("log_read_faults")))
    damaged = f"{damages} parts of the log of {head.name} were damaged, and have become gaps; its output names them"
    also = f"; {damaged}" if damages else ""  # a head that ends before the graver thing is over says it no more
    if fault := str(report.get("log_fault", "")):
        return [_unsafe("LogFull", f"{fault}; publications are refused until there is room{also}")]
    waiting = _number(report.get("log_sync_waiting_seconds"))
    if waiting > SLOW_SYNC_SECONDS:
        text = f"a sync of the log of {head.name} has been going on for {waiting:.0f} s; what it accepts waits for it"
        return [_unsafe("LogSlow", text + also)]
    if damages:
        return [_unsafe("LogDamaged", damaged)]
    return [Condition("LogSafe", "True", "LogWritten", f"{head.name} keeps its log on its disk")]


def _unsafe(reason: str, text: str) -> Condition:
    return Condition("LogSafe", "False", reason, text)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
