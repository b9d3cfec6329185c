"""The status of a channel, from what its driver says and from what is known of the driver's process or pod."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from plimsoll.channels.config import ChannelFigures, DriverFigures
from plimsoll.core.spec.status.conditions import Condition
from plimsoll.feeds.status import ProgramState

RUNNING: Final = "Running"


def running_condition(name: str, figures: DriverFigures | None, state: ProgramState, lack: str = "") -> Condition:
    """Whether a channel runs. `figures`: the driver's fresh ones; None if it has said nothing of late.

    `lack`: what keeps every driver from running here.
    """
    if lack:
        return Condition(RUNNING, "False", "ChannelNoSpark", lack)
    if not state.is_running:
        if state.last_end:
            why = f"the driver has {state.last_end}; its log says why"
            return Condition(RUNNING, "False", "ChannelDriverExited", why)
        return Condition(RUNNING, "False", "ChannelStarting", state.trouble or "the driver is about to be started")
    if figures is None:
        return Condition(RUNNING, "False", "ChannelStarting", "the driver has been started, and has not reported yet")
    own = figures.channels.get(name)
    if own is None:
        return Condition(RUNNING, "False", "ChannelStarting", "the driver has not started this channel yet")
    return Condition(RUNNING, "True" if own.state == "ChannelRunning" else "False", own.state, own.message)


def figures_status(own: ChannelFigures) -> dict[str, Any]:
    """What figures say, as fields of a status."""
    at = datetime.fromtimestamp(own.batch_us // 1_000_000, UTC)
    late = {"lateMilliseconds": own.late_milliseconds} if own.period_seconds else {}
    return {
        "subscriptions": own.subscriptions, "openSubscriptions": own.open_subscriptions,
        "invalidSubscriptions": own.invalid_subscriptions, "batch": own.batch,
        "batchAt": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "batchMilliseconds": own.batch_milliseconds, **late,
        "rowsIn": own.rows_in, "rowsUsed": own.rows_used, "lateRows": own.late_rows, "invalidRows": own.invalid_rows,
        "results": own.results, "acceptedResults": own.accepted_results, "unknownResults": own.unknown_results,
        "refusedResults": own.refused_results, "unaskedResults": own.unasked_results,
        "invalidResults": own.invalid_results,
    }  # fmt: skip
