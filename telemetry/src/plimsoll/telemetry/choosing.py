"""By which snapshot to decide: Spark's once it has been right for two windows running, else the fold; and why.

Pure, and held by whoever decides. One good snapshot after bad ones is not trusted yet: a job that has just come back
may still be catching up. One bad one is enough to go back to the fold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from plimsoll.telemetry.snapshot import Snapshot, SnapshotError, Wanted, verified

IN_A_ROW: Final = 2


class Chosen(NamedTuple):
    """`reason`: why it is not Spark's, as `Fault: sentence`; empty where it is."""

    snapshot: Snapshot
    reason: str

    @property
    def is_spark(self) -> bool:
        return not self.reason


class Choice:
    """What one decider remembers between its looks."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._windows = 0
        self._last_end_us = 0

    def choose(self, spark: bytes | SnapshotError | None, fold: Snapshot, now_us: int) -> Chosen:
        """`spark`: what Spark has written last, or why there is nothing to use; `fold`: what to fall back on."""
        try:
            if not isinstance(spark, bytes):
                raise spark or SnapshotError("Missing", "Spark has written none")
            snapshot = verified(spark, self._wanted, now_us)
        except SnapshotError as error:
            self._windows = 0
            return Chosen(fold, f"{error.fault}: {error}")
        self._wanted = replace(self._wanted, after=snapshot.order)
        if snapshot.window_end_us > self._last_end_us or not self._windows:
            self._windows += 1
            self._last_end_us = snapshot.window_end_us
        if self._windows < IN_A_ROW:
            return Chosen(fold, f"Unproven: right for {self._windows} of {IN_A_ROW} windows")
        return Chosen(snapshot, "")
