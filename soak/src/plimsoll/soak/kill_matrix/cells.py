"""The kill matrix: which process is hit, with which signal, at which step of a hand-over, and how a step is held.

A step lasts while the process whose answer it waits for is frozen, so hitting it does not depend on luck.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, get_args

import msgspec

Mode = Literal["drain", "replay", "across"]
"""By drain or by replay within a cluster, or by drain across clusters."""
Step = Literal["prepare sent", "slots taken", "attached", "cut sent", "cut done", "draining", "done"]
Victim = Literal["mediator", "subscribers", "source", "target", "head", "far head"]
"""Head: that of the source. Far head: that of the target, across clusters."""
Signal = Literal["KILL", "STOP", "HANG"]
"""SIGKILL; SIGSTOP for a moment; SIGSTOP for longer than others wait for an answer, so that it is given up."""

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
VICTIMS: Final[tuple[Victim, ...]] = get_args(Victim)[:-1]
SIGNALS: Final[tuple[Signal, ...]] = get_args(Signal)
STOP_SECONDS: Final[dict[Signal, float]] = {"STOP": 3.0, "HANG": 13.0}
"""A silent client or broker is given up by brokers after 10 s, a silent edge by its clients after 5 s."""

MEANINGS: Final[dict[Mode, dict[Step, str]]] = {
    "drain": {
        "prepare sent": "the head knows of the session, the target has not answered",
        "slots taken": "the target has places for all members, none of them has been heard of",
        "attached": "all members have a second attachment, at the target; the cut has not been asked for",
        "cut sent": "the head has said INSTALL, the target has not asked for the cut",
        "cut done": "the target owns all members, none of them has answered to END",
        "draining": "half of the members are served by the target, the others have not answered to END",
        "done": "all members are served by the target",
    },
    "across": {
        "prepare sent": "the source's head knows of the session, the target has not answered",
        "slots taken": "the target has places for all members, none of them has been heard of",
        "attached": "all members have a second attachment, at the target; the cut has not been asked for",
        "cut sent": "the source's head has said INSTALL, the target has not asked for the cut",
        "cut done": "the marker has come to the source's head, none of the members has answered to END",
        "draining": "half of the members are served by the target, the others have not answered to END",
        "done": "all members are served by the target",
    },
    "replay": {
        "prepare sent": "the head knows of the session, the target has not answered",
        "attached": "the target has places for all members; the cut has not been asked for",
        "cut sent": "the cut is decided, the source has not taken the REVOKE",
        "cut done": "the source has revoked all members, none of them has resumed",
        "draining": "half of the members have resumed at the target, the others have not",
        "done": "all members are served by the target",
    },
}


class KillMatrixCell(msgspec.Struct, frozen=True):
    """One run. The one without a victim is the baseline for the others."""

    mode: Mode
    step: Step
    victim: Victim | None
    signal: Signal

    def __str__(self) -> str:
        return f"{self.mode}, {self.step}: " + (
            f"{signal_name(self.signal)} {self.victim}" if self.victim else "nothing"
        )

    @property
    def may_gap(self) -> bool:
        """Only state that a head alone held is lost with it, and this is reported."""
        return self.victim in ("head", "far head") and self.signal == "KILL"


class KillMatrixResult(msgspec.Struct, kw_only=True):
    """The result of a cell.

    `at`: the state that the head had reported when the signal was sent. `homes`: where the members were served in the
    end. `silence_seconds`: the longest time in which a member had no delivery, from just before the signal on;
    publications come much more often. `broken`: broken promises, in words.
    """

    cell: KillMatrixCell
    at: str
    state: str
    reason: str
    outcomes: dict[str, int]
    homes: dict[str, int]
    silence_seconds: float
    session_seconds: float
    delivered: int
    lost: int
    duplicated: int
    reordered: int
    gaps: int
    excused: int
    orphaned: int
    settle_seconds: float
    broken: list[str] = []

    @property
    def is_passed(self) -> bool:
        return not self.broken


def signal_name(signal: Signal) -> str:
    """The name in reports."""
    return f"SIGSTOP for {STOP_SECONDS[signal]:g} s" if signal in STOP_SECONDS else f"SIG{signal}"


def victims_of(mode: Mode) -> tuple[Victim, ...]:
    """All possible victims of a cell."""
    return (*VICTIMS, "far head") if mode == "across" else VICTIMS


def all_cells() -> Iterator[KillMatrixCell]:
    """Every cell, after one of each mode without a victim."""
    for mode in MODES:
        yield KillMatrixCell(mode, "done", None, "KILL")
        for step in MEANINGS[mode]:
            for signal in SIGNALS:
                for victim in victims_of(mode):
                    yield KillMatrixCell(mode, step, victim, signal)
