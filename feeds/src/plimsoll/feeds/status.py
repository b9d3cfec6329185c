"""The status of a feed, from what its recorder says and from what is known of the recorder's process or pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from plimsoll.core.spec.status.conditions import Condition
from plimsoll.feeds.config import RecorderFigures

RECORDING: Final = "Recording"
FIGURES_FRESH_SECONDS: Final = 15.0
"""A recorder writes its figures each second; with older ones it does not record."""


@dataclass(frozen=True)
class ProgramState:
    """What is known of a recorder or a driver from outside.

    `last_end`: how it last ended, as a predicate. `trouble`: why it does not start, as a sentence.
    """

    is_running: bool
    last_end: str = ""
    trouble: str = ""

    @classmethod
    def of_process(cls, kept: Mapping[str, Any]) -> ProgramState:
        """From the status of a process that is kept running."""
        return cls("pid" in kept, str(kept.get("lastEnd", "")))


def is_fresh(figures: tuple[int, int], kept: Mapping[str, Any], now_us: int) -> bool:
    """Whether figures, with the process and the time that they are of, are those of the process that runs."""
    pid, at_us = figures
    return pid == kept.get("pid") and now_us - at_us <= FIGURES_FRESH_SECONDS * 1e6


def recording_condition(figures: RecorderFigures | None, state: ProgramState) -> Condition:
    """Whether a recorder records. `figures`: its fresh ones; None if it has said nothing of late."""
    if not state.is_running:
        if state.last_end:
            why = f"the recorder has {state.last_end}; its log says why"
            return Condition(RECORDING, "False", "RecorderExited", why)
        return Condition(RECORDING, "False", "RecorderStarting", state.trouble or "the recorder is about to be started")
    if figures is None:
        return Condition(RECORDING, "False", "RecorderStarting", "the recorder runs and is not attached yet")
    return Condition(
        RECORDING, "True", "RecorderAttached", f"{figures.rows} rows and {figures.dead_letters} dead letters"
    )


def figures_status(figures: RecorderFigures) -> dict[str, Any]:
    """What figures say, as fields of a status."""
    served = {"endpoint": figures.endpoint} if figures.endpoint else {}
    at = datetime.fromtimestamp(figures.committed_us // 1_000_000, UTC)
    return {
        "path": figures.path, "received": figures.received, "rows": figures.rows, "deadLetters": figures.dead_letters,
        "expiredRows": figures.expired_rows, "gaps": figures.gaps, "files": figures.files,
        "sizeBytes": figures.size_bytes, "commits": figures.commits,
        "committedAt": at.strftime("%Y-%m-%dT%H:%M:%SZ"), **served,
    }  # fmt: skip
