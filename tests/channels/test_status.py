"""The condition of a channel."""

from __future__ import annotations

import pytest

from plimsoll.channels.config import ChannelFigures, DriverFigures
from plimsoll.channels.status import figures_status, running_condition
from plimsoll.feeds.status import ProgramState

FRESH = DriverFigures(7, 1_000_000, {"kinds": ChannelFigures("ChannelRunning", "m"), "b": ChannelFigures("X", "why")})
RUNNING = ProgramState(is_running=True)


@pytest.mark.parametrize(
    ("name", "figures", "state", "is_true", "why"),
    [
        ("kinds", None, ProgramState(is_running=False), "False", "ChannelStarting"),
        ("kinds", None, ProgramState(is_running=False, last_end="exited with 2"), "False", "ChannelDriverExited"),
        ("kinds", None, RUNNING, "False", "ChannelStarting"),
        ("kinds", FRESH, RUNNING, "True", "ChannelRunning"),
        ("other", FRESH, RUNNING, "False", "ChannelStarting"),
        ("b", FRESH, RUNNING, "False", "X"),
    ],
)
def test_the_condition_of_a_channel(
    name: str, figures: DriverFigures | None, state: ProgramState, is_true: str, why: str
) -> None:
    found = running_condition(name, figures, state)
    assert (found.status, found.reason) == (is_true, why)
    assert running_condition(name, figures, state, "there is no Java").reason == "ChannelNoSpark"


def test_fields_of_a_status() -> None:
    continuous = figures_status(ChannelFigures("X", "m", rows_in=3))
    assert (continuous["rowsIn"], "lateMilliseconds" in continuous) == (3, False)
    assert figures_status(ChannelFigures("X", "m", late_milliseconds=40, period_seconds=2.0))["lateMilliseconds"] == 40
