"""The kill matrix of heads whose logs outlast them: its cells, what is killed and when, and what a cell has shown.

A step is a message of a hand-over. A head is killed *before*: when the message has been sent and has not arrived; what
the head had on its way is lost. Or *behind*: when it has been dealt with, and what follows from it is on its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, get_args

import msgspec

Mode = Literal["drain", "replay", "across"]
"""By drain or by replay within a cluster, or by drain across clusters."""
Keeps = Literal["disk", "standby", "standby and disk", "standby, node lost"]
"""What outlasts a head: its disk, its standby, or both. With its node it is lost silently: no connection ends."""
Victim = Literal["head", "far head"]
"""The head of the source; across clusters, that of the target."""
When = Literal["before", "behind"]

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
KEEPS: Final[tuple[Keeps, ...]] = get_args(Keeps)
TIMES: Final[tuple[When, ...]] = get_args(When)
VICTIMS: Final[dict[Mode, tuple[Victim, ...]]] = {
    "drain": ("head",),
    "replay": ("head",),
    "across": ("head", "far head"),
}
MEMBERS: Final = 4

STEPS: Final[dict[Mode, dict[str, tuple[str, int]]]] = {
    "drain": {
        "prepare sent": ("Prepare", 0),
        "slots taken": ("Slot", 0),
        "attached": ("TargetAttached", 0),
        "cut sent": ("Install", 0),
        "cut asked": ("CutRequest", 0),
        "cut done": ("Cut", 0),
        "draining": ("Done", 0),
        "done": ("Done", 0),
    },
    "replay": {
        "prepare sent": ("Prepare", 0),
        "attached": ("Slot", 0),
        "cut sent": ("Revoke", 0),
        "cut done": ("Moved", 0),
        "draining": ("ResumeUp", 0),
        "done": ("Done", 0),
    },
    "across": {
        "prepare sent": ("Prepare", 0),
        "slots taken": ("Slot", 0),
        "attached": ("TargetAttached", 1),
        "cut sent": ("Install", 0),
        "cut asked": ("CutRequest", 0),
        "cut done": ("Marker", 0),
        "draining": ("Done", 1),
        "done": ("Done", 1),
    },
}
"""Of each mode the steps in order: the kind of the message, and which of its kind it is, from 0.

Across clusters a message that goes from edge to edge by both heads counts on each of its links.
"""

MEANINGS: Final = {
    "prepare sent": "the head tells the target, or the target's head, what is to come",
    "slots taken": "the target has slots for all members",
    "attached": "all members have a second attachment at the target; by replay, the target has slots for all",
    "cut sent": "the head of the source has the cut begin: INSTALL to the target, or REVOKE to the source",
    "cut asked": "the target asks its head for the cut",
    "cut done": "the head of the source cuts; by replay, the source tells the members that they have moved",
    "draining": "half of the members are served by the target; the others are frozen and have not had END, or MOVED",
    "done": "all members are served by the target",
}


class HeadKillCell(msgspec.Struct, frozen=True):
    """One run. A cell without a victim is the baseline of its mode, with `keeps`."""

    mode: Mode
    step: str
    when: When
    victim: Victim | None
    keeps: Keeps

    @property
    def words(self) -> frozenset[str]:
        """What it is selected by."""
        return frozenset((self.mode, self.step, self.when, self.victim or "nothing", self.keeps))

    def __str__(self) -> str:
        what = f"SIGKILL {self.victim}" if self.victim else "nothing"
        return f"{self.mode}, {self.when} {self.step}: {what} ({self.keeps})"


class HeadKillResult(msgspec.Struct, kw_only=True):
    """What a cell has shown.

    `outcomes`: of the members, as the head has told them; empty if the session was lost with the head. `homes`: where
    the members were served at the end. `pause_seconds`: from the kill on, the longest without an answer of that head.
    `unknown`: publications whose publisher could not know whether they were accepted. `broken`: why the cell failed.
    """

    cell: HeadKillCell
    outcomes: dict[str, int]
    homes: dict[str, int]
    pause_seconds: float
    delivered: int
    lost: int
    repeated: int
    reordered: int
    gaps: int
    unknown: int
    broken: list[str] = []

    @property
    def is_passed(self) -> bool:
        return not self.broken


def all_cells() -> Iterator[HeadKillCell]:
    """Every cell; those of a mode follow its baseline."""
    for mode in MODES:
        yield HeadKillCell(mode, next(iter(STEPS[mode])), "before", None, "disk")
        for step in STEPS[mode]:
            for when in TIMES:
                for victim in VICTIMS[mode]:
                    for keeps in KEEPS:
                        yield HeadKillCell(mode, step, when, victim, keeps)
