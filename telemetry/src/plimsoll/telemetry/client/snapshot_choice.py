"""The choice of a snapshot: Spark's once it has been valid for two windows in a row, else the fold; with the reason.

Pure; each decider has its own. One good snapshot after bad ones is not trusted yet: a job that has just come back may
still be catching up. A single bad one falls back to the fold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from plimsoll.telemetry.snapshot import SnapshotError, SnapshotRequirements, TelemetrySnapshot, decode_usable

PROVING_WINDOWS: Final = 2


class ChosenSnapshot(NamedTuple):
    """`reason`: why it is not Spark's, as `Fault: sentence`; empty if it is."""

    snapshot: TelemetrySnapshot
    reason: str

    @property
    def is_spark(self) -> bool:
        return not self.reason


class SnapshotChooser:
    """The memory of one decider between its choices."""

    def __init__(self, wanted: SnapshotRequirements) -> None:
        self._wanted = wanted
        self._windows = 0
        self._last_end_us = 0

    def choose(self, spark: bytes | SnapshotError | None, fold: TelemetrySnapshot, now_us: int) -> ChosenSnapshot:
        """`spark`: Spark's last snapshot, or why it cannot be used; `fold`: the fallback."""
        try:
            if not isinstance(spark, bytes):
                raise spark or SnapshotError("Missing", "Spark has written none")
            snapshot = decode_usable(spark, self._wanted, now_us)
        except SnapshotError as error:
            self._windows = 0
            return ChosenSnapshot(fold, f"{error.fault}: {error}")
        self._wanted = replace(self._wanted, after=snapshot.order)
        if snapshot.window_end_us > self._last_end_us or not self._windows:
            self._windows += 1
            self._last_end_us = snapshot.window_end_us
        if self._windows < PROVING_WINDOWS:
            return ChosenSnapshot(fold, f"Unproven: right for {self._windows} of {PROVING_WINDOWS} windows")
        return ChosenSnapshot(snapshot, "")
