"""Answers to JOIN: an edge of this head, of the head whose stream the subscriber has been reading, or of any head.

A question for another head travels through the tree. The link that waits for its answer is remembered for a while.

Who names no head takes any edge. If this cluster has had none for a while, all heads are asked at once, about one
subscriber at a time: those with an edge answer, and the one whose answer is the first is asked about all others, until
it has none either. A head answers from its own edges and asks nobody, so questions do not multiply.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.placement import EdgeCandidate, Placement
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.unit_owners import UnitOwners
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_of_name
from plimsoll.core.protocol.topic_units import hash_of_unit
from plimsoll.core.transport.link import NEVER, Link

AnyOwners = UnitOwners[Any]
"""Of bundles or of topics; what a key stands for does not matter here."""

ANSWER_SECONDS = 2.0
"""How long another head has to answer; then the subscriber is told to ask again."""

NO_EDGE = "no edge can take a subscriber now"
PATIENCE_SECONDS = 5.0
"""For how long newcomers wait for an edge here before other heads are asked: one that is restarted is soon back."""

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

    def send_to_all(self, message: msg.JoinFor) -> bool:
        """Send to all other heads; False if none can be reached."""


class AskedHead(NamedTuple):
    """The head whose answer a link waits for, and until when; an empty name stands for any head that has an edge."""

    head: str
    until: float


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
    """Answers to JOIN.

    `_helper`: another head that has had an edge for a subscriber of this cluster, until it has none.
    """

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
        self._waiting: dict[str, dict[Link, AskedHead]] = {}
        self._helper = ""
        self._search_at = self._first_without = 0.0
        self._last_without = -NEVER

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
            placed = self._placed(join)
            if placed.edge or not self._lasts() or not self._may_leave(join):
                self._answer(link, placed)
            else:
                self._ask_any(link, replace(join, head=self._helper))

    def _lasts(self) -> bool:
        """Note that no edge here can take a subscriber; whether that has been so for a while."""
        now, patience = self.host.now, PATIENCE_SECONDS * self.time_factor
        if now - self._last_without > patience:
            self._first_without = now
        self._last_without = now
        return now - self._first_without >= patience

    def _may_leave(self, join: msg.Join) -> bool:
        """Whether an edge of another cluster serves this subscriber as well.

        Slices attach where their group is. Units go where the owner of their key is, which another cluster does not
        know: units of one key would be at edges of two clusters, and would no longer move together.
        """
        is_unit = hash_of_unit(join.subscriber) is not None and any(each.is_used for each in self.owners)
        return not join.head and not is_unit and slice_of_name(join.subscriber) is None

    def _ask_any(self, link: Link, join: msg.Join) -> None:
        """Ask the head that had an edge of late; if there is none, all heads, about one subscriber at a time."""
        if join.head:
            self._ask(link, join)
        elif self.host.now < self._search_at or len(self) >= WAITING_AT_MOST:
            self._later(link, join.subscriber, NO_EDGE)
        else:
            self._search_at = self.host.now + ANSWER_SECONDS * self.time_factor
            if self.router.send_to_all(msg.JoinFor(join)):
                self._wait(link, join)
            else:
                self._later(link, join.subscriber, NO_EDGE)

    def _ask(self, link: Link, join: msg.Join) -> None:
        if len(self) >= WAITING_AT_MOST or not self.router.send(join.head, msg.JoinFor(join)):
            self._later(link, join.subscriber, f"{join.head} cannot be reached from {self.host.name}")
        else:
            self._wait(link, join)

    def _wait(self, link: Link, join: msg.Join) -> None:
        # Several links may ask for one name: whose it is is decided when it attaches.
        waiting = self._waiting.setdefault(join.subscriber, {})
        waiting[link] = AskedHead(join.head, self.host.now + ANSWER_SECONDS * self.time_factor)
        if len(waiting) > WAITING_FOR_ONE_NAME:
            del waiting[next(iter(waiting))]

    def receive_routed(self, source: str, record: msg.JoinFor | msg.PlacedFor) -> None:
        """A question of another head, or its answer to one of ours."""
        if isinstance(record, msg.JoinFor):
            none = msg.PlacedFor(record.join.subscriber, "", "", "")
            placed = none if self.host.is_starting else self._placed(record.join)
            if placed.edge or record.join.head:  # of all heads that are asked at once, those without an edge are silent
                self.router.send(source, placed)
        else:
            self._on_answer(source, record)

    def _on_answer(self, source: str, placed: msg.PlacedFor) -> None:
        if placed.edge:
            self._helper = self._helper or source
        elif source == self._helper:
            self._helper = ""
        waiting = self._waiting.get(placed.subscriber, {})
        fits = (link for link, asked in waiting.items() if asked.head == source or (placed.edge and not asked.head))
        if (link := next(fits, None)) is None:
            return
        del waiting[link]
        if not waiting:
            del self._waiting[placed.subscriber]
        if self.host.knows(link):
            self._answer(link, placed)

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
            self._later(link, placed.subscriber, NO_EDGE)

    def _later(self, link: Link, subscriber: str, text: str, seconds: float = RETRY_SECONDS) -> None:
        self.host.say(link, msg.Unplaced(subscriber, text, seconds * self.time_factor))

    def expire(self) -> None:
        """Answer subscribers that have waited for another head for too long."""
        for x, waiting in list(self._waiting.items()):
            late = {link: asked.head for link, asked in waiting.items() if asked.until <= self.host.now}
            for link in late:
                del waiting[link]
            if not waiting:
                del self._waiting[x]
            if self._helper in late.values():
                self._helper = ""
            for link, head in late.items():
                if self.host.knows(link):
                    self._later(link, x, f"{head} does not answer" if head else NO_EDGE)
