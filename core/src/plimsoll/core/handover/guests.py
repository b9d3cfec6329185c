"""The head of the target, in sessions that another head decides: who is on the way here, and from where.

A guest is known from the PREPARE that passes through until it is done, undone, or its time is over. Cut requests of
guests are answered here; the decision follows the MARKER to the head of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from plimsoll.core import records as r
from plimsoll.core.owners import Owners
from plimsoll.core.wire import OwnerEpoch, Token

KEPT_SECONDS = 60.0
"""A guest that is not cut is known for so long after its time to prepare."""

GUESTS_AT_MOST = 65_536


class Guest(NamedTuple):
    """`owned`: the owner epoch that its cut gave it here. As long as that stands its DONE must find the way home."""

    edge: str
    coordinator: str
    until: float
    owned: OwnerEpoch | None = None


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

    def prepared(self, prepare: r.Prepare, edge: str, coordinator: str) -> bool:
        """Whether there is room for them."""
        if len(self._guests) + len(prepare.members) > GUESTS_AT_MOST:
            return False
        until = self.host.now + prepare.seconds + self.kept_seconds
        for x in prepare.members:
            self._guests.setdefault((prepare.session, x), Guest(edge, coordinator, until))
            self._sessions_of.setdefault(x, set()).add(prepare.session)
        return True

    def parted(self, part: r.Part, edge: str, coordinator: str) -> None:
        """Who has gone live there says DONE again: it was lost on its way home, so the way is shown anew."""
        until = self.host.now + self.kept_seconds
        for item in part.members:
            x, (incarnation, n) = item.subscriber, item.epoch
            entry = self.host.owners.entries.get(x)
            if entry is not None and entry.epoch == (incarnation, n + 1):
                self._guests.setdefault((part.session, x), Guest(edge, coordinator, until))
                self._sessions_of.setdefault(x, set()).add(part.session)

    def refused(self, session: str, members: Iterable[str]) -> None:
        """The edge will not have them."""
        for x in members:
            guest = self._guests.get((session, x))
            if guest is not None and guest.owned is None:
                self.drop(session, x)

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
        fresh = self._fresh(request)
        good: list[str] = []
        for head, members in sorted(self.by_coordinator(request.session, fresh).items()):
            for x in members:
                self.host.owners.swap(x, key, fresh[x], (token[1], token[2]))
                self._guests[request.session, x] = self._guests[request.session, x]._replace(owned=fresh[x])
            self.host.to_head(head, r.Marker(request.session, members, token))
            good += members
        return good

    def _fresh(self, request: r.CutRequest) -> dict[str, OwnerEpoch]:
        """Those that have not resumed here since. The epoch of a cut that was undone is used again by the next."""
        newest = self.host.owners.newest
        return {item.subscriber: item.epoch for item in request.members if newest(item.subscriber) <= item.epoch}

    # -- ends

    def done(self, done: r.Done) -> None:
        for head, members in sorted(self.by_coordinator(done.session, done.members).items()):
            checks = [check for check in done.checks if check.subscriber in members]
            self.host.to_head(head, r.Done(done.session, members, done.edge, checks))
            for x in members:
                self.drop(done.session, x)

    def resumed(self, subscriber: str, named: str | None, edge: str) -> None:
        """It has resumed here: if it names the session, that is the DONE, else there is nothing to cut any more.

        Who has lost the target after its END may name the session at another edge: it has left the source, too.
        """
        for session in sorted(self._sessions_of.get(subscriber, ())):
            guest = self._guests[session, subscriber]
            if session == named and edge == guest.edge:
                self.host.to_head(guest.coordinator, r.Done(session, [subscriber]))
            elif session == named or guest.owned is None:
                text = f"has resumed at {self.host.name} meanwhile"
                self.host.to_head(guest.coordinator, r.Nak(session, [subscriber], text))
            self.drop(session, subscriber)

    def lapsed(self, subscriber: str, epoch: OwnerEpoch) -> None:
        """An owner entry has gone: with it the guest that it was made for, not one that has still to come."""
        for session in sorted(self._sessions_of.get(subscriber, ())):
            if self._guests[session, subscriber].owned == epoch:
                self.drop(session, subscriber)

    def edge_lost(self, edge: str) -> None:
        """Those that are cut may still resume at another edge, and name the session."""
        for (session, _, coordinator), members in self._grouped(lambda guest: guest.edge == edge).items():
            if uncut := [x for x in members if self._guests[session, x].owned is None]:
                self.host.to_head(coordinator, r.Nak(session, uncut, f"{edge} was lost"))
                self.refused(session, uncut)

    def heads_lost(self, lost: Iterable[str]) -> None:
        """Who decides on them cannot be reached, or has forgotten: their edges let them go."""
        gone = set(lost)
        for (session, edge, _), members in self._grouped(lambda guest: guest.coordinator in gone).items():
            self.host.to_edge(self.host.name, edge, r.Orphan(session, members))
            self.refused(session, members)

    def _grouped(self, wanted: Callable[[Guest], bool]) -> dict[tuple[str, str, str], list[str]]:
        """The members of each session, edge and coordinator."""
        found: dict[tuple[str, str, str], list[str]] = {}
        for (session, x), guest in self._guests.items():
            if wanted(guest):
                found.setdefault((session, guest.edge, guest.coordinator), []).append(x)
        return found

    def expire(self) -> None:
        for session, x in [key for key, guest in self._guests.items() if self._is_over(key[1], guest)]:
            self.drop(session, x)

    def _is_over(self, x: str, guest: Guest) -> bool:
        if guest.owned is None:
            return guest.until <= self.host.now
        entry = self.host.owners.entries.get(x)
        return entry is None or entry.epoch != guest.owned
