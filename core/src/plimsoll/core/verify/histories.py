"""The histories that an audit keeps of a journal, as numbers in arrays: a demonstration has millions of deliveries."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.core.verify.observations import (
    GapObserved,
    HeadTreeObserved,
    LogEntryObserved,
    LogPosition,
    PublicationIdentity,
    PublicationObserved,
    Value,
)

FOREVER = float("inf")


@dataclass(slots=True)
class PublicationHistory:
    """One publication, as far as the journal shows it."""

    identity: PublicationIdentity
    published_at: float = FOREVER
    attributes: Mapping[str, Value] | None = None
    answer: str = ""
    answers: int = 0
    other_origins: set[LogPosition] = field(default_factory=set)
    origin: LogPosition | None = None
    logged_at: float = FOREVER
    answered_at: float = FOREVER
    positions: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def counts_from(self) -> float:
        """A subscription acknowledged by this time must get it: when it was logged or, if not observed, published."""
        return self.logged_at if self.logged_at < FOREVER else self.published_at

    @property
    def is_accepted(self) -> bool:
        return self.answer in ("accepted", "unconfirmed")

    def __str__(self) -> str:
        return "{}/{}/{}".format(*self.identity) + (" of {} {} {}".format(*self.origin) if self.origin else "")


@dataclass(slots=True)
class SubscriptionHistory:
    """One subscription from its request to its end, with the periods in which it was acknowledged."""

    filter: int
    requested_at: float
    acknowledged: list[tuple[float, str, tuple[str, ...]]] = field(default_factory=list)
    void_at: list[float] = field(default_factory=list)
    withdrawn_at: float = FOREVER
    forgotten_at: float = FOREVER

    def acknowledgement_at(self, at: float) -> tuple[str, tuple[str, ...], float] | None:
        """Head and unreached heads of the acknowledgement in force at a time, and when it ended; None if none is."""
        held = [ack for ack in self.acknowledged if ack[0] <= at]
        if not held or at >= self.withdrawn_at:
            return None
        began, head, unreached = held[-1]
        end = min([self.withdrawn_at, *(void for void in self.void_at if void >= began)])
        return (head, unreached, end) if at < end else None

    def could_match(self, delivered_at: float, logged_at: float) -> bool:
        """Whether a delivery at that time may be due to this subscription.

        A publication logged before the withdrawal arrived may have waited in the queue of a paused subscriber.
        """
        return self.requested_at <= delivered_at and min(delivered_at, logged_at) <= self.forgotten_at


@dataclass(slots=True)
class GapPlace:
    """A gap with its place in the subscriber's stream: after the first `after` deliveries."""

    gap: GapObserved
    after: int


class SubscriberHistory:
    """One incarnation of a subscriber: its subscriptions, and its stream in order of arrival."""

    __slots__ = ("ended_at", "gaps", "heads", "incarnation", "items", "lives", "name", "positions", "streams", "times")

    def __init__(self, name: str, incarnation: int) -> None:
        self.name, self.incarnation = name, incarnation
        self.lives: dict[int, list[SubscriptionHistory]] = {}
        self.items = array("l")
        self.times = array("d")
        self.streams, self.positions = array("i"), array("q")
        self.gaps: list[GapPlace] = []
        self.heads: set[str] = set()
        self.ended_at = FOREVER

    @property
    def subject(self) -> str:
        return f"subscriber {self.name}/{self.incarnation}"


class ObservedHeadTree:
    """The tree of heads, which shows the heads that lie behind an unreached one."""

    def __init__(self) -> None:
        self._neighbors: dict[str, set[str]] = {}

    def add_links(self, fleet: HeadTreeObserved) -> None:
        for one, other in fleet.links:
            self._neighbors.setdefault(one, set()).add(other)
            self._neighbors.setdefault(other, set()).add(one)

    def path(self, here: str, there: str, without: tuple[str, ...] = ()) -> list[str]:
        """The heads from one to another, both included; empty if there is no known path."""
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
        """Whether the path between two heads avoids the unreached ones. In an unknown tree it does not."""
        return here == there or not unreached or bool(self.path(here, there, unreached))


class StreamNumbers:
    """Numbers for the logs that deliveries came from; -1 if a delivery does not name its log."""

    def __init__(self) -> None:
        self.all: list[tuple[str, int]] = []
        self._numbers: dict[tuple[str, int], int] = {}

    def number(self, place: LogPosition | None) -> int:
        if place is None:
            return -1
        if place[:2] not in self._numbers:
            self._numbers[place[:2]] = len(self.all)
            self.all.append(place[:2])
        return self._numbers[place[:2]]


class PublicationHistories:
    """All publications, numbered in the order in which the journal first names them."""

    def __init__(self) -> None:
        self.numbers: dict[PublicationIdentity, int] = {}
        self.all: list[PublicationHistory] = []

    def number(self, identity: PublicationIdentity) -> int:
        found = self.numbers.get(identity)
        if found is None:
            found = self.numbers[identity] = len(self.all)
            self.all.append(PublicationHistory(identity))
        return found

    def of(self, identity: PublicationIdentity) -> PublicationHistory:
        return self.all[self.number(identity)]

    def published(self, seen: PublicationObserved) -> PublicationHistory:
        one = self.of((seen.publisher, seen.incarnation, seen.seq))
        one.published_at, one.attributes = min(one.published_at, seen.at), seen.attributes
        return one

    def logged(self, seen: LogEntryObserved) -> PublicationHistory:
        one = self.of(seen.publication)
        one.positions[seen.head, seen.epoch] = seen.position
        if seen.head == seen.origin[0]:
            one.logged_at = min(one.logged_at, seen.at)
        return one
