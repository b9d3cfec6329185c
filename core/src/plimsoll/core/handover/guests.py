"""The head of the target, in sessions that another head decides: who is on the way here, and from where.

A guest is known from the PREPARE that passes through until it is done, undone, or its time is over. Cut requests of
guests are answered here; the decision follows the MARKER to the head of the source.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from plimsoll.core import records as r
from plimsoll.core.owners import Owners
from plimsoll.core.wire import Token

KEPT_SECONDS = 60.0
"""A guest is known for so long after its time to prepare, so that its DONE finds the way home."""


class Guest(NamedTuple):
    edge: str
    coordinator: str
    until: float


class Host(Protocol):
    """What the guests need of their head."""

    @property
    def now(self) -> float: ...
    @property
    def owners(self) -> Owners: ...
    def to_edge(self, head: str, edge: str, record: object) -> None: ...
    def to_head(self, head: str, record: object) -> None: ...
    @property
    def name(self) -> str: ...


class Guests:
    """Guests by session and subscriber."""

    def __init__(self, host: Host, kept_seconds: float) -> None:
        self.host, self.kept_seconds = host, kept_seconds
        self._guests: dict[tuple[str, str], Guest] = {}
        self._sessions_of: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._sessions_of

    def coordinator(self, session: str, subscriber: str) -> str | None:
        guest = self._guests.get((session, subscriber))
        return guest.coordinator if guest is not None else None

    def by_coordinator(self, session: str, members: Iterable[str]) -> dict[str, list[str]]:
        """Who decides on these: coordinators, with the members that each has."""
        found: dict[str, list[str]] = {}
        for x in members:
            if (head := self.coordinator(session, x)) is not None:
                found.setdefault(head, []).append(x)
        return found

    def coordinators(self) -> list[str]:
        """The heads that decide on them."""
        return sorted({guest.coordinator for guest in self._guests.values()})

    # -- what passes through

    def prepared(self, prepare: r.Prepare, edge: str, coordinator: str) -> None:
        until = self.host.now + prepare.seconds + self.kept_seconds
        for x in prepare.members:
            self._guests[prepare.session, x] = Guest(edge, coordinator, until)
            self._sessions_of.setdefault(x, set()).add(prepare.session)

    def aborted(self, abort: r.Abort) -> None:
        """Undone, or taken back: the owner entry that the cut made here goes, too."""
        for item in abort.members:
            x, (incarnation, n) = item.subscriber, item.epoch
            self.drop(abort.session, x)
            entry = self.host.owners.entries.get(x)
            if entry is not None and entry.epoch == (incarnation, n + 1):
                self.host.owners.forget(x)

    def drop(self, session: str, subscriber: str) -> None:
        if self._guests.pop((session, subscriber), None) is not None:
            sessions = self._sessions_of[subscriber]
            sessions.discard(session)
            if not sessions:
                del self._sessions_of[subscriber]

    # -- the cut

    def cut_request(self, request: r.CutRequest, key: str, token: Token) -> list[str]:
        """Own these from here on, and send the marker to who decides; returns them."""
        good: list[str] = []
        for head, members in sorted(self.by_coordinator(request.session, self._fresh(request)).items()):
            for item in request.members:
                if item.subscriber in members:
                    self.host.owners.swap(item.subscriber, key, item.epoch, (token[1], token[2]))
            self.host.to_head(head, r.Marker(request.session, members, token))
            good += members
        return good

    def _fresh(self, request: r.CutRequest) -> list[str]:
        owners = self.host.owners
        return [item.subscriber for item in request.members if owners.newest(item.subscriber) < item.epoch]

    # -- ends

    def done(self, done: r.Done) -> None:
        for head, members in sorted(self.by_coordinator(done.session, done.members).items()):
            self.host.to_head(head, r.Done(done.session, members))
            for x in members:
                self.drop(done.session, x)

    def resumed(self, subscriber: str, named: str | None) -> None:
        """It has resumed here: if it names the session, that is the DONE."""
        for session in sorted(self._sessions_of.get(subscriber, ())):
            guest = self._guests[session, subscriber]
            if session == named:
                self.host.to_head(guest.coordinator, r.Done(session, [subscriber]))
            self.drop(session, subscriber)

    def lapsed(self, subscriber: str) -> None:
        for session in sorted(self._sessions_of.get(subscriber, ())):
            self.drop(session, subscriber)

    def edge_lost(self, edge: str) -> None:
        for (session, x), guest in [item for item in self._guests.items() if item[1].edge == edge]:
            self.host.to_head(guest.coordinator, r.Nak(session, [x], f"{edge} was lost"))
            self.drop(session, x)

    def heads_lost(self, lost: Iterable[str]) -> None:
        """Who decides on them cannot be reached, or has forgotten: their edges let them go."""
        gone = set(lost)
        for (session, x), guest in [item for item in self._guests.items() if item[1].coordinator in gone]:
            self.host.to_edge(self.host.name, guest.edge, r.Orphan(session, [x]))
            self.drop(session, x)

    def expire(self) -> None:
        for session, x in [key for key, guest in self._guests.items() if guest.until <= self.host.now]:
            self.drop(session, x)
