"""Where a subscriber goes that asks for an edge: one of this head's, or of the head whose stream it has been reading.

A question for another head travels through the tree; who waits for an answer is remembered, for a while.
"""

from __future__ import annotations

from typing import Any, Protocol

from plimsoll.core import records as r
from plimsoll.core.link import Link
from plimsoll.core.seats import Seats

ANSWER_SECONDS = 2.0
"""Another head has so long to answer; then the subscriber is told to ask again."""

AGAIN_SECONDS = 0.5
WAITING_AT_MOST = 10_000


class Host(Protocol):
    """What placing needs of its head."""

    now: float
    seats: Seats

    @property
    def name(self) -> str: ...
    @property
    def is_starting(self) -> bool: ...
    def say(self, link: Link, record: Any) -> None: ...
    def knows(self, link: Link) -> bool: ...
    def send_to_head(self, head: str, record: Any) -> bool: ...


class Placing:
    """Answers to JOIN."""

    def __init__(self, host: Host, time_factor: float) -> None:
        self.host, self.time_factor = host, time_factor
        self._waiting: dict[str, tuple[Link, float]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def on_join(self, link: Link, join: r.Join) -> None:
        if self.host.is_starting:
            self._later(link, join.subscriber, f"{self.host.name} is starting", 0.2)
        elif join.head and join.head != self.host.name:
            self._ask(link, join)
        else:
            self._answer(link, self._placed(join))

    def _ask(self, link: Link, join: r.Join) -> None:
        if len(self._waiting) >= WAITING_AT_MOST or not self.host.send_to_head(join.head, r.JoinFor(join)):
            self._later(link, join.subscriber, f"{join.head} cannot be reached from {self.host.name}")
        else:
            self._waiting[join.subscriber] = (link, self.host.now + ANSWER_SECONDS * self.time_factor)

    def arrived(self, source: str, record: r.JoinFor | r.PlacedFor) -> None:
        """A question of another head, or its answer to one of ours."""
        if isinstance(record, r.JoinFor):
            placed = r.PlacedFor(record.join.subscriber, "", "", "")
            self.host.send_to_head(source, placed if self.host.is_starting else self._placed(record.join))
        elif (waiting := self._waiting.pop(record.subscriber, None)) is not None and self.host.knows(waiting[0]):
            self._answer(waiting[0], record)

    def _placed(self, join: r.Join) -> r.PlacedFor:
        seat = self.host.seats.place(join.exclude, join.prefer)
        if seat is None:
            return r.PlacedFor(join.subscriber, "", "", "")
        return r.PlacedFor(join.subscriber, seat.name, seat.endpoint, seat.public_key)

    def _answer(self, link: Link, placed: r.PlacedFor) -> None:
        if placed.edge:
            self.host.say(link, r.Placed(placed.subscriber, placed.edge, placed.endpoint, placed.public_key))
        else:
            self._later(link, placed.subscriber, "no edge can take a subscriber now")

    def _later(self, link: Link, subscriber: str, text: str, seconds: float = AGAIN_SECONDS) -> None:
        self.host.say(link, r.Unplaced(subscriber, text, seconds * self.time_factor))

    def expire(self) -> None:
        """Nobody waits for ever."""
        for x in [x for x, (_, until) in self._waiting.items() if until <= self.host.now]:
            link, _ = self._waiting.pop(x)
            if self.host.knows(link):
                self._later(link, x, "the head whose stream it reads does not answer")
