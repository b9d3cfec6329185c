"""The kill matrix of slices that move between consumers: its cells, what is killed and when, and what a cell has shown.

A step is a message of the move. Its process is killed *before*: when the message is sent and has not arrived; what the
killed one had on its way is lost. Or *behind*: when it has been dealt with, and what follows from it is on its way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, get_args

import msgspec

InSession = Literal["Deliver", "Cache"]
Victim = Literal["giver", "taker", "giver's edge", "other edge", "head", "mediator"]
When = Literal["before", "behind"]

WAYS: Final[tuple[InSession, ...]] = get_args(InSession)
VICTIMS: Final[tuple[Victim, ...]] = get_args(Victim)
TIMES: Final[tuple[When, ...]] = get_args(When)

STEPS: Final[dict[InSession, dict[str, tuple[str, int]]]] = {
    "Deliver": {
        "asked": ("SliceRevoked", 0),
        "released": ("SliceReleased", 0),
        "assigned": ("SliceAssigned", 0),
        "attaches": ("Resume", 0),
        "attached": ("Resumed", 0),
    },
    "Cache": {
        "asked": ("SliceRevoked", 0),
        "giver caches": ("SliceCaching", 0),
        "added": ("SliceAssigned", 0),
        "attaches": ("Resume", 0),
        "taker caches": ("SliceCaching", 1),
        "cache asked": ("SliceRevoked", 1),
        "cache sent": ("SliceCache", 0),
        "passed on": ("SliceCache", 1),
        "merged": ("SliceCache", 2),
    },
}
"""Of each way the steps in order: the kind of the message, and which of its kind it is, from 0."""

MEANINGS: Final = {
    "asked": "the head asks the giver to let go, or to cache",
    "released": "the giver lets go",
    "assigned": "the head assigns the slice to the taker",
    "attaches": "the taker attaches the slice at an edge",
    "attached": "the edge serves it",
    "giver caches": "the giver says that it caches",
    "added": "the head asks the taker to cache as well",
    "taker caches": "the taker says that it caches",
    "cache asked": "the head asks the giver for its cache",
    "cache sent": "the giver sends its cache",
    "passed on": "the head passes it on",
    "merged": "the head tells the taker that this was all: it has the slice",
}


class SliceKillCell(msgspec.Struct, frozen=True):
    """One run. A cell without a victim is the baseline of its way."""

    in_session: InSession
    step: str
    when: When
    victim: Victim | None

    @property
    def words(self) -> frozenset[str]:
        """What it is selected by."""
        return frozenset((self.in_session, self.step, self.when, self.victim or "nothing"))

    def __str__(self) -> str:
        what = f"SIGKILL {self.victim}" if self.victim else "nothing"
        return f"{self.in_session}, {self.when} {self.step}: {what}"


class SliceKillResult(msgspec.Struct, kw_only=True):
    """What a cell has shown.

    `way`: how the slice has left its giver. `at`: who has it at the end. `pause_seconds`: from the kill until the next
    item of the slice was given to an application. `cached`: bytes of the giver's cache. `broken`: why the cell failed.
    """

    cell: SliceKillCell
    way: str
    at: str
    pause_seconds: float
    processed_once: int
    redelivered: int
    lost: int
    repeated: int
    reordered: int
    gaps: int
    cached: int
    broken: list[str] = []

    @property
    def is_passed(self) -> bool:
        return not self.broken


def all_cells() -> Iterator[SliceKillCell]:
    """Every cell; those of a way follow its baseline."""
    for way in WAYS:
        yield SliceKillCell(way, next(iter(STEPS[way])), "before", None)
        for step in STEPS[way]:
            for when in TIMES:
                for victim in VICTIMS:
                    yield SliceKillCell(way, step, when, victim)
