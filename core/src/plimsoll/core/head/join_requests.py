"""Answers to JOIN: an edge of this head, or of the head whose stream the subscriber has been reading.

A question for another head travels through the tree. The link that waits for its answer is remembered for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.placement import EdgeCandidate, Placement
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.unit_owners import UnitOwners
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import hash_of_unit
from plimsoll.core.transport.link import Link

AnyOwners = UnitOwners[Any]
"""Of bundles or of topics; what a key stands for does not matter here."""

ANSWER_SECONDS = 2.0
"""How long another head has to answer; then the subscriber is told to ask again."""

RETRY_SECONDS = 0.5
WAITING_AT_MOST = 10_000
WAITING_FOR_ONE_NAME = 100


class JoinContext(Protocol):
    """What answering a JOIN needs of a head."""

    now: float
    name: str

    @property
    def is_starting(self) -> bool: ...
    def say(self, link: Link, record: msg.Placed | msg.Unplaced) -> None: ...
    def knows(self, link: Link) -> bool: ...


class JoinRouter(Protocol):
    def send(self, to: str, message: msg.JoinFor | msg.PlacedFor) -> bool:
        """Send to another head; False if none can be reached."""


def edge_for(join: msg.Join, placement: Placement, *owners: AnyOwners) -> EdgeCandidate | None:
    """The edge for a subscriber: for a unit that of its bundle or topic, else the one that the placer draws.

    `owners`: of units, of which a policy uses one kind at most.
    """
    used = next((each for each in owners if each.is_used), None)
    unit = hash_of_unit(join.subscriber) if used is not None else None
    if used is None or unit is None:
        return placement.place(join.exclude, join.prefer, join.location)
    return used.place(unit, placement, join.exclude, join.prefer)


class JoinRequests(HeadPart):
    """Answers to JOIN."""

    def __init__(
        self,
        host: JoinContext,
        placement: Placement,
        owners: Sequence[AnyOwners],
        router: JoinRouter,
        time_factor: float,
    ) -> None:
        self.host, self.placement, self.owners = host, placement, owners
        self.router, self.time_factor = router, time_factor
        self._waiting: dict[str, dict[Link, float]] = {}

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_clients.add_costly(msg.Join, self.on_join, 14)
        handlers.of_heads.add(msg.JoinFor, lambda head, _, asked: self.receive_routed(head, asked))
        handlers.of_heads.add(msg.PlacedFor, lambda head, _, placed: self.receive_routed(head, placed))

    def __len__(self) -> int:
        return len(self._waiting)

    def on_join(self, link: Link, join: msg.Join) -> None:
        if self.host.is_starting:
            self._later(link, join.subscriber, f"{self.host.name} is starting", 0.2)
        elif join.head and join.head != self.host.name:
            self._ask(link, join)
        else:
            self._answer(link, self._placed(join))

    def _ask(self, link: Link, join: msg.Join) -> None:
        if len(self) >= WAITING_AT_MOST or not self.router.send(join.head, msg.JoinFor(join)):
            self._later(link, join.subscriber, f"{join.head} cannot be reached from {self.host.name}")
        else:
            # Several links may ask for one name: whose it is is decided when it attaches.
            waiting = self._waiting.setdefault(join.subscriber, {})
            waiting[link] = self.host.now + ANSWER_SECONDS * self.time_factor
            if len(waiting) > WAITING_FOR_ONE_NAME:
                del waiting[next(iter(waiting))]

    def receive_routed(self, source: str, record: msg.JoinFor | msg.PlacedFor) -> None:
        """A question of another head, or its answer to one of ours."""
        if isinstance(record, msg.JoinFor):
            placed = msg.PlacedFor(record.join.subscriber, "", "", "")
            self.router.send(source, placed if self.host.is_starting else self._placed(record.join))
        elif record.subscriber in self._waiting:
            waiting = self._waiting[record.subscriber]
            link = next(iter(waiting))
            del waiting[link]
            if not waiting:
                del self._waiting[record.subscriber]
            if self.host.knows(link):
                self._answer(link, record)

    def _placed(self, join: msg.Join) -> msg.PlacedFor:
        candidate = edge_for(join, self.placement, *self.owners)
        if candidate is None:
            return msg.PlacedFor(join.subscriber, "", "", "")
        attribute = next((each.attribute for each in self.owners if each.is_used), "")
        return msg.PlacedFor(join.subscriber, candidate.name, candidate.endpoint, candidate.public_key, attribute)

    def _answer(self, link: Link, placed: msg.PlacedFor) -> None:
        if placed.edge:
            name, attribute = placed.subscriber, placed.topic_attribute
            self.host.say(link, msg.Placed(name, placed.edge, placed.endpoint, placed.public_key, attribute))
        else:
            self._later(link, placed.subscriber, "no edge can take a subscriber now")

    def _later(self, link: Link, subscriber: str, text: str, seconds: float = RETRY_SECONDS) -> None:
        self.host.say(link, msg.Unplaced(subscriber, text, seconds * self.time_factor))

    def expire(self) -> None:
        """Answer subscribers that have waited for another head for too long."""
        for x, waiting in list(self._waiting.items()):
            late = [link for link, until in waiting.items() if until <= self.host.now]
            for link in late:
                del waiting[link]
            if not waiting:
                del self._waiting[x]
            for link in late:
                if self.host.knows(link):
                    self._later(link, x, "the head whose stream it reads does not answer")
