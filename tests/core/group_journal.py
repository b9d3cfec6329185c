"""What a fleet, its publishers and its applications saw of a consumer group, written down as it happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Scalars = Mapping[str, Any]
Item = tuple[str, int]
"""The publisher of a publication, and its number there."""


@dataclass(frozen=True, slots=True)
class Published:
    """`answered`: when the head has accepted it; None if it has not, as far as its publisher knows."""

    at: float
    item: Item
    attributes: Scalars
    answered: float | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """An application was told of slices that came or went."""

    at: float
    who: str
    came: tuple[int, ...]
    went: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Took:
    """An application has taken an item, or a gap if `item` is None."""

    at: float
    who: str
    slice: int
    item: Item | None
    is_marked: bool


@dataclass(frozen=True, slots=True)
class Finished:
    """An application has acknowledged an item. `in_turn`: it acknowledges each before it takes the next."""

    at: float
    who: str
    slice: int
    item: Item
    in_turn: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """A process has ended: `how` is left, or crashed."""

    at: float
    who: str
    how: str


@dataclass(frozen=True, slots=True)
class Fault:
    """`kind`: cut, frozen, edge, head or partition; `what` is hit from `at` to `until`."""

    at: float
    kind: str
    what: str
    until: float


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """A session as its object shows it. `outcomes`: of each slice; `audit`: lost, duplicated, reordered."""

    name: str
    asked: float
    at: float
    taker: str
    outcomes: Mapping[int, str]
    audit: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Rest:
    """The end of a run, after quiet: what live applications, by life, say that they have, and what status shows.

    `unsure`: consumers that a session may have emptied, so that they get no share.
    """

    at: float
    has: Mapping[str, tuple[int, ...]]
    unsure: frozenset[str]
    lag: int
    without_consumer: int
    newcomers: frozenset[str]


Event = Told | Took | Finished | Ended | Fault


@dataclass
class Journal:
    """`gone_seconds`: after which a silent consumer counts as gone; `beat_seconds`: between two beats."""

    function: str
    count: int
    by: str
    low: float
    high: float
    unassigned: str
    balancing: str
    gone_seconds: float
    beat_seconds: float
    published: dict[Item, Published] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    sessions: list[SessionEnd] = field(default_factory=list)
    rest: Rest | None = None
