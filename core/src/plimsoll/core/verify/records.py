"""What an audit keeps of the journal: numbers in arrays, since a demonstration has millions of deliveries."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.core.verify.observations import Fleet, GapTold, Identity, Logged, Origin, Published, Value

FOREVER = float("inf")


@dataclass(slots=True)
class Publication:
    """One publication, as far as the journal tells of it."""

    identity: Identity
    published_at: float = FOREVER
    attributes: Mapping[str, Value] | None = None
    answer: str = ""
    answers: int = 0
    other_origins: set[Origin] = field(default_factory=set)
    origin: Origin | None = None
    logged_at: float = FOREVER
    answered_at: float = FOREVER
    positions: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def counts_from(self) -> float:
        """A subscription acknowledged by this time must have it: when it was logged or, if not seen, published."""
        return self.logged_at if self.logged_at < FOREVER else self.published_at

    @property
    def is_accepted(self) -> bool:
        return self.answer in ("accepted", "unconfirmed")

    def __str__(self) -> str:
        return "{}/{}/{}".format(*self.identity) + (" of {} {} {}".format(*self.origin) if self.origin else "")


@dataclass(slots=True)
class Life:
    """One subscription from its request to its end, with the times in which it was acknowledged."""

    filter: int
    requested_at: float
    acknowledged: list[tuple[float, str, tuple[str, ...]]] = field(default_factory=list)
    void_at: list[float] = field(default_factory=list)
    withdrawn_at: float = FOREVER
    forgotten_at: float = FOREVER

    def holding(self, at: float) -> tuple[str, tuple[str, ...], float] | None:
        """Head and unreached heads of the acknowledgement in force at a time, and when it ended; None if none is."""
        held = [ack for ack in self.acknowledged if ack[0] <= at]
        if not held or at >= self.withdrawn_at:
            return None
        began, head, unreached = held[-1]
        end = min([self.withdrawn_at, *(void for void in self.void_at if void >= began)])
        return (head, unreached, end) if at < end else None

    def could_match(self, delivered_at: float, logged_at: float) -> bool:
        """Whether a delivery at that time may be due to this subscription.

        What was logged before the withdrawal had arrived may have waited in the queue of a subscriber that paused.
        """
        return self.requested_at <= delivered_at and min(delivered_at, logged_at) <= self.forgotten_at


@dataclass(slots=True)
class Told:
    """A gap with its place in the subscriber's stream: behind the first `after` deliveries."""

    gap: GapTold
    after: int


class Reader:
    """One incarnation of a subscriber: its subscriptions, and its stream in the order in which it had it."""

    __slots__ = ("ended_at", "gaps", "heads", "incarnation", "items", "lives", "name", "positions", "streams", "times")

    def __init__(self, name: str, incarnation: int) -> None:
        self.name, self.incarnation = name, incarnation
        self.lives: dict[int, list[Life]] = {}
        self.items = array("l")
        self.times = array("d")
        self.streams, self.positions = array("i"), array("q")
        self.gaps: list[Told] = []
        self.heads: set[str] = set()
        self.ended_at = FOREVER

    @property
    def subject(self) -> str:
        return f"subscriber {self.name}/{self.incarnation}"


class Tree:
    """The heads as neighbours, to say which of them lie behind one that was not reached."""

    def __init__(self) -> None:
        self._neighbors: dict[str, set[str]] = {}

    def take(self, fleet: Fleet) -> None:
        for one, other in fleet.links:
            self._neighbors.setdefault(one, set()).add(other)
            self._neighbors.setdefault(other, set()).add(one)

    def path(self, here: str, there: str, without: tuple[str, ...] = ()) -> list[str]:
        """The heads from one to another, both included; empty if there is no way or none is known."""
        ways = {here: [here]}
        todo = [here] if here not in without else []
        while todo:
            at = todo.pop()
            for head in sorted(self._neighbors.get(at, ())):
                if head not in ways and head not in without:
                    ways[head] = [*ways[at], head]
                    todo.append(head)
        return ways.get(there, [])

    def reaches(self, here: str, there: str, unreached: tuple[str, ...]) -> bool:
        """Whether the path between two heads is free of the unreached. In an unknown tree it is not."""
        return here == there or not unreached or bool(self.path(here, there, unreached))


class Streams:
    """Logs that deliveries came from, numbered; -1 is a delivery that does not say."""

    def __init__(self) -> None:
        self.all: list[tuple[str, int]] = []
        self._numbers: dict[tuple[str, int], int] = {}

    def number(self, place: Origin | None) -> int:
        if place is None:
            return -1
        if place[:2] not in self._numbers:
            self._numbers[place[:2]] = len(self.all)
            self.all.append(place[:2])
        return self._numbers[place[:2]]


class Publications:
    """All publications, numbered in the order in which the journal first names them."""

    def __init__(self) -> None:
        self.numbers: dict[Identity, int] = {}
        self.all: list[Publication] = []

    def number(self, identity: Identity) -> int:
        found = self.numbers.get(identity)
        if found is None:
            found = self.numbers[identity] = len(self.all)
            self.all.append(Publication(identity))
        return found

    def of(self, identity: Identity) -> Publication:
        return self.all[self.number(identity)]

    def published(self, seen: Published) -> Publication:
        one = self.of((seen.publisher, seen.incarnation, seen.seq))
        one.published_at, one.attributes = min(one.published_at, seen.at), seen.attributes
        return one

    def logged(self, seen: Logged) -> Publication:
        one = self.of(seen.publication)
        one.positions[seen.head, seen.epoch] = seen.position
        if seen.head == seen.origin[0]:
            one.logged_at = min(one.logged_at, seen.at)
        return one
