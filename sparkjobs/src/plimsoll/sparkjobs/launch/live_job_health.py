"""Whether the live job works, told by the age of its snapshot; and when to start it anew, told by how often that was.

Restarting costs a minute of state to read and a session to make, so it is done seldom, and ever more seldom: whoever
waits longer than the last resort has the collectors' fold, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from plimsoll.telemetry.snapshot import MAX_AGE_SECONDS, MIN_COVERAGE, SnapshotSummary, TelemetrySnapshot

START_SECONDS: Final = 180.0
"""A driver that has just been started may say nothing for so long."""
DEAD_SECONDS: Final = 90.0
"""A snapshot that is older than that is not about to be followed by another."""
FIRST_BACK_OFF_SECONDS: Final = 30.0
RESTARTS_PER_HOUR: Final = 3
HOUR_SECONDS: Final = 3600.0

LiveJobState = Literal["Starting", "Fresh", "Incomplete", "Late", "Dead"]

STATE_MESSAGES: Final[dict[LiveJobState, str]] = {
    "Fresh": "the snapshot of the live job is recent and complete",
    "Starting": "the live job has been started, and has not written a snapshot yet",
    "Incomplete": "the snapshot of the live job lacks brokers",
    "Late": "the snapshot of the live job is too old to be used",
    "Dead": "the live job has written nothing for so long that it is started anew",
}
"""Each state in a sentence that stays while it lasts."""


@dataclass(frozen=True, slots=True)
class LiveJobHealth:
    """`Late` ones are not used any more; `Dead` ones ask for a restart. Age is None before the first snapshot."""

    state: LiveJobState
    age_seconds: float | None
    coverage: float
    message: str

    @property
    def wants_restart(self) -> bool:
        return self.state == "Dead"


def assess_live_job(
    now_us: int, snapshot: TelemetrySnapshot | SnapshotSummary | None, started_us: int
) -> LiveJobHealth:
    """Of a driver that was started at `started_us`, by its last snapshot. `now_us`: whole microseconds since 1970."""
    up_seconds = (now_us - started_us) / 1e6
    if snapshot is None:
        if up_seconds <= START_SECONDS:
            return LiveJobHealth("Starting", None, 0.0, f"started {up_seconds:.0f} s ago, no snapshot yet")
        return LiveJobHealth("Dead", None, 0.0, f"started {up_seconds:.0f} s ago and has never written a snapshot")
    age, coverage = snapshot.age_seconds(now_us), snapshot.coverage
    told = f"its window ended {age:.0f} s ago, {snapshot.seen} of {snapshot.expected} brokers seen"
    if age > DEAD_SECONDS:
        state: LiveJobState = "Starting" if up_seconds <= START_SECONDS else "Dead"
    elif age > MAX_AGE_SECONDS:
        state = "Late"
    else:
        state = "Fresh" if coverage >= MIN_COVERAGE else "Incomplete"
    return LiveJobHealth(state, age, coverage, told)


def next_restart(restarts: Sequence[float], now: float) -> float:
    """When a dead driver may be started anew, after the restarts at these times (seconds); never before `now`.

    The first waits 30 s after the one before it, the next twice as long, and no hour has more than three.
    """
    lately = sorted(at for at in restarts if at > now - HOUR_SECONDS)
    if not lately:
        return now
    if len(lately) >= RESTARTS_PER_HOUR:
        return max(now, lately[-RESTARTS_PER_HOUR] + HOUR_SECONDS)
    return max(now, lately[-1] + FIRST_BACK_OFF_SECONDS * float(2 ** (len(lately) - 1)))
