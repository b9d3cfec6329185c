"""The health of the live job from the age of its snapshot, and the time of its next restart.

A restart costs a minute, for a Spark session and the state that it reads. So restarts back off, and are limited per
hour; meanwhile the fleet uses the collectors' fold and reports that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from plimsoll.telemetry.snapshot import MAX_AGE_SECONDS, MIN_COVERAGE, SnapshotSummary, TelemetrySnapshot

START_SECONDS: Final = 180.0
"""The time that a new driver has for its first snapshot."""
DEAD_SECONDS: Final = 90.0
"""When the newest snapshot is older than this, the job is considered dead."""
FIRST_BACK_OFF_SECONDS: Final = 30.0
RESTARTS_PER_HOUR: Final = 3
HOUR_SECONDS: Final = 3600.0

LiveJobState = Literal["Starting", "Fresh", "Incomplete", "Late", "Dead"]

STATE_MESSAGES: Final[dict[LiveJobState, str]] = {
    "Fresh": "the snapshot of the live job is recent and complete",
    "Starting": "the live job has been started, and has not written a snapshot yet",
    "Incomplete": "the snapshot of the live job lacks brokers",
    "Late": "the snapshot of the live job is too old to be used",
    "Dead": "the live job has stopped writing snapshots and is restarted",
}
"""A message for each state, without figures: it stays the same while the state lasts."""


@dataclass(frozen=True, slots=True)
class LiveJobHealth:
    """A `Late` snapshot is not used; a `Dead` job must be restarted. `age_seconds`: None before the first snapshot."""

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
    """The health of a driver started at `started_us`, by its last snapshot. Times are microseconds since 1970."""
    up_seconds = (now_us - started_us) / 1e6
    if snapshot is None:
        if up_seconds <= START_SECONDS:
            return LiveJobHealth("Starting", None, 0.0, f"started {up_seconds:.0f} s ago, no snapshot yet")
        return LiveJobHealth("Dead", None, 0.0, f"started {up_seconds:.0f} s ago, has never written a snapshot")
    age, coverage = snapshot.age_seconds(now_us), snapshot.coverage
    message = f"its window ended {age:.0f} s ago, {snapshot.seen} of {snapshot.expected} brokers seen"
    if age > DEAD_SECONDS:
        state: LiveJobState = "Starting" if up_seconds <= START_SECONDS else "Dead"
    elif age > MAX_AGE_SECONDS:
        state = "Late"
    else:
        state = "Fresh" if coverage >= MIN_COVERAGE else "Incomplete"
    return LiveJobHealth(state, age, coverage, message)


def next_restart(restarts: Sequence[float], now: float) -> float:
    """When a dead driver may be restarted, given the times of earlier restarts in seconds; never before `now`.

    A restart waits 30 s after the one before it, the next twice as long, and there are at most three in an hour.
    """
    lately = sorted(at for at in restarts if at > now - HOUR_SECONDS)
    if not lately:
        return now
    if len(lately) >= RESTARTS_PER_HOUR:
        return max(now, lately[-RESTARTS_PER_HOUR] + HOUR_SECONDS)
    return max(now, lately[-1] + FIRST_BACK_OFF_SECONDS * float(2 ** (len(lately) - 1)))
