"""The cells of the kill matrix: each process that is hit, each signal, each step of a hand-over.

A step is held by freezing the process whose answer it waits for, so that hitting it does not depend on timing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, get_args

import msgspec

Mode = Literal["drain", "replay", "across"]
"""By drain or by replay within a cluster, or by drain across clusters."""
Step = Literal["prepare sent", "slots taken", "attached", "cut sent", "cut done", "draining", "done"]
Victim = Literal[
    "mediator", "subscribers", "source", "target", "head", "far head", "durable head", "durable far head",
    "head with standby", "far head with standby", "durable head with standby", "durable far head with standby",
]  # fmt: skip
"""`head` is that of the source, `far head` that of the target across clusters; a durable one keeps its log on disk, and
one with a standby has it there."""
Signal = Literal["KILL", "STOP", "HANG"]
"""SIGKILL; a short SIGSTOP; a SIGSTOP so long that other processes give the victim up."""

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
VICTIMS: Final[tuple[Victim, ...]] = ("mediator", "subscribers", "source", "target", "head")
SIGNALS: Final[tuple[Signal, ...]] = get_args(Signal)
STOP_SECONDS: Final[dict[Signal, float]] = {"STOP": 3.0, "HANG": 13.0}
"""Brokers give up a silent client or broker after 10 s, clients a silent edge after 5 s."""

MEANINGS: Final[dict[Mode, dict[Step, str]]] = {
    "drain": {
        "prepare sent": "the head has the session, the target has not answered",
        "slots taken": "the target has slots for all members, none of which has attached yet",
        "attached": "all members have a second attachment, at the target; the cut has not been commanded",
        "cut sent": "the head has sent INSTALL, the target has not sent CUT_REQUEST",
        "cut done": "the target owns all members, none of them has answered END",
        "draining": "half of the members are served by the target, the others have not answered END",
        "done": "all members are served by the target",
    },
    "across": {
        "prepare sent": "the source's head has the session, the target has not answered",
        "slots taken": "the target has slots for all members, none of which has attached yet",
        "attached": "all members have a second attachment, at the target; the cut has not been commanded",
        "cut sent": "the source's head has sent INSTALL, the target has not sent CUT_REQUEST",
        "cut done": "the source's head has the MARKER, none of the members has answered END",
        "draining": "half of the members are served by the target, the others have not answered END",
        "done": "all members are served by the target",
    },
    "replay": {
        "prepare sent": "the head has the session, the target has not answered",
        "attached": "the target has slots for all members; the cut has not been commanded",
        "cut sent": "the cut is decided, the source has not received REVOKE",
        "cut done": "the source has revoked all members, none of them has resumed",
        "draining": "half of the members have resumed at the target, the others have not",
        "done": "all members are served by the target",
    },
}


class KillMatrixCell(msgspec.Struct, frozen=True):
    """One run. A cell without a victim is the baseline of its mode."""

    mode: Mode
    step: Step
    victim: Victim | None
    signal: Signal

    def __str__(self) -> str:
        return f"{self.mode}, {self.step}: " + (
            f"{signal_name(self.signal)} {self.victim}" if self.victim else "nothing"
        )

    @property
    def words(self) -> frozenset[str]:
        """What it is selected by."""
        return frozenset((self.mode, self.step, self.victim or "nothing", self.signal))

    @property
    def may_gap(self) -> bool:
        """Whether gaps are allowed: a killed head loses publications that only it held, and reports gaps for them."""
        return self.victim in ("head", "far head") and self.signal == "KILL"

    @property
    def is_durable(self) -> bool:
        """Whether heads keep their log on disk."""
        return self.victim is not None and self.victim.startswith("durable ")

    @property
    def has_standbys(self) -> bool:
        """Whether heads have standbys."""
        return self.victim is not None and self.victim.endswith(" with standby")


class KillMatrixResult(msgspec.Struct, kw_only=True):
    """The result of a cell.

    `at`: the state that the head had reported when the signal was sent. `homes`: where the members were served at the
    end. `silence_seconds`: the longest time without a delivery for a member, from just before the signal on.
    `broken`: why the cell failed.
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
    """The signal as reports show it."""
    return f"SIGSTOP for {STOP_SECONDS[signal]:g} s" if signal in STOP_SECONDS else f"SIG{signal}"


def victims_of(mode: Mode, signal: Signal) -> tuple[Victim, ...]:
    """All victims in this mode. A frozen head is the same with a log on disk."""
    found: tuple[Victim, ...] = (*VICTIMS, "far head") if mode == "across" else VICTIMS
    if signal != "KILL":
        return found
    found = (*found, "durable head", "head with standby", "durable head with standby")
    if mode == "across":
        found = (*found, "durable far head", "far head with standby", "durable far head with standby")
    return found


def all_cells() -> Iterator[KillMatrixCell]:
    """Every cell; those of a mode follow its baseline."""
    for mode in MODES:
        yield KillMatrixCell(mode, "done", None, "KILL")
        for step in MEANINGS[mode]:
            for signal in SIGNALS:
                for victim in victims_of(mode, signal):
                    yield KillMatrixCell(mode, step, victim, signal)
