"""The head of the target, in sessions that another head decides: which subscribers are on the way here.

A remote member is known from the PREPARE that passes through until it is done, undone or expired. Its cut request is
answered here; the decision follows the MARKER to the head of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.head.part import HeadPart
from plimsoll.core.permissions import INCARNATIONS_BELOW
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import OwnerEpoch, Token

KEPT_SECONDS = 20.0
"""How long a member that is not cut is known beyond its time to prepare: twice what makes a silent link dead."""

REMOTE_MEMBERS_AT_MOST = 65_536


class RemoteMember(NamedTuple):
    """`owned`: the owner epoch that its cut gave it here. While that stands, its DONE must find its coordinator."""

    edge: str
    coordinator: str
    until: float
    owned: OwnerEpoch | None = None
    identity: str = ""


class RemoteMembersContext(Protocol):
    """What remote members need of a head."""

    now: float
    name: str
    owners: OwnershipTable


class OrphanSender(Protocol):
    def send_to_edge(self, head: str, edge: str, message: msg.Orphan) -> None: ...


class CoordinatorSender(Protocol):
    def send(self, to: str, message: msg.Marker | msg.Done | msg.HandoverRejected) -> object:
        """Send to the coordinator at another head."""


class RemoteMembers(HeadPart):
    """Remote members by session and subscriber."""

    def __init__(
        self, host: RemoteMembersContext, edges: OrphanSender, coordinators: CoordinatorSender, kept_seconds: float
    ) -> None:
        self.host, self.edges, self.heads, self.kept_seconds = host, edges, coordinators, kept_seconds
        self._members: dict[tuple[str, str], RemoteMember] = {}
        self._sessions_of: dict[str, set[str]] = {}

    def status(self) -> dict[str, Any]:
        return {"guests": len(self)}

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, subscriber: object) -> bool:
        return subscriber in self._sessions_of

    def coordinator(self, session: str, subscriber: str) -> str | None:
        member = self._members.get((session, subscriber))
        return member.coordinator if member is not None else None

    def by_coordinator(self, session: str, members: Iterable[str]) -> dict[str, list[str]]:
        """The heads that decide on these members, each with its own."""
        found: dict[str, list[str]] = {}
        for x in members:
            if (head := self.coordinator(session, x)) is not None:
                found.setdefault(head, []).append(x)
        return found

    def coordinators(self) -> list[str]:
        """All heads that decide on members known here."""
        return sorted({member.coordinator for member in self._members.values()})

    # -- what passes through

    def reserve(self, prepare: msg.Prepare, edge: str, coordinator: str) -> bool:
        """Note the members of a PREPARE for an edge here; False if there are too many, and none is noted."""
        if len(self._members) + len(prepare.members) > REMOTE_MEMBERS_AT_MOST:
            return False
        until = self.host.now + prepare.seconds + self.kept_seconds
        for x, identity in prepare.identified():
            member = RemoteMember(edge, coordinator, until, identity=identity)
            self._members.setdefault((prepare.session, x), member)
            self._sessions_of.setdefault(x, set()).add(prepare.session)
        return True

    def on_force_detach(self, part: msg.ForceDetach, edge: str, coordinator: str) -> None:
        """Note members that have gone live: their DONE was lost on its way, and their edge will repeat it."""
        until = self.host.now + self.kept_seconds
        for item in part.members:
            x, (incarnation, n) = item.subscriber, item.epoch
            entry = self.host.owners.entries.get(x)
            if entry is not None and entry.epoch == (incarnation, n + 1):
                self._members.setdefault((part.session, x), RemoteMember(edge, coordinator, until))
                self._sessions_of.setdefault(x, set()).add(part.session)

    def on_rejected(self, session: str, members: Iterable[str]) -> None:
        """Drop members that their edge has refused, unless they are cut."""
        for x in members:
            member = self._members.get((session, x))
            if member is not None and member.owned is None:
                self.drop(session, x)

    def on_abort(self, abort: msg.Abort) -> None:
        """Drop members that were undone, with the owner entry that their cut made here."""
        for item in abort.members:
            x, (incarnation, n) = item.subscriber, item.epoch
            self.drop(abort.session, x)
            entry = self.host.owners.entries.get(x)
            if entry is not None and entry.epoch == (incarnation, n + 1):
                self.host.owners.forget(x, self.host.now)

    def drop(self, session: str, subscriber: str) -> None:
        if self._members.pop((session, subscriber), None) is not None:
            sessions = self._sessions_of[subscriber]
            sessions.discard(session)
            if not sessions:
                del self._sessions_of[subscriber]

    # -- the cut

    def on_cut_request(self, request: msg.CutRequest, key: str, token: Token) -> list[str]:
        """Make the requesting edge the owner of these members and send MARKERs to their heads; returns the members."""
        fresh = self._fresh(request)
        good: list[str] = []
        for head, members in sorted(self.by_coordinator(request.session, fresh).items()):
            for x in members:
                member = self._members[request.session, x]
                self.host.owners.swap(x, key, fresh[x], (token[1], token[2]), False, member.identity)
                self._members[request.session, x] = member._replace(owned=fresh[x])
            self.heads.send(head, msg.Marker(request.session, members, token))
            good += members
        return good

    def _fresh(self, request: msg.CutRequest) -> dict[str, OwnerEpoch]:
        """Members that have not resumed here since, with their new epoch.

        An equal epoch is allowed: the cut that follows one that was undone uses the same.
        """
        owners, known = self.host.owners, self._members

        def newest(x: str) -> OwnerEpoch:
            member, entry = known.get((request.session, x)), owners.entries.get(x)
            identity = member.identity if member is not None else ""
            # Another identity has the name in this cluster: no epoch of this one is fresh here.
            return owners.newest(x, identity) if entry is None or entry.is_of(identity) else (INCARNATIONS_BELOW, 0)

        return {item.subscriber: item.epoch for item in request.members if newest(item.subscriber) <= item.epoch}

    # -- ends

    def on_done(self, done: msg.Done) -> None:
        for head, members in sorted(self.by_coordinator(done.session, done.members).items()):
            checks = [check for check in done.checks if check.subscriber in members]
            self.heads.send(head, msg.Done(done.session, members, done.edge, checks))
            for x in members:
                self.drop(done.session, x)

    def resumed(self, subscriber: str, named: str | None, edge: str) -> None:
        """A member has resumed here: if it names the session, that counts as its DONE; if not, nothing is left to cut.

        A member that lost the target after its END may name the session at another edge. It has left the source as
        well, so its coordinator must know.
        """
        for session in sorted(self._sessions_of.get(subscriber, ())):
            member = self._members[session, subscriber]
            if session == named and edge == member.edge:
                self.heads.send(member.coordinator, msg.Done(session, [subscriber]))
            elif session == named or member.owned is None:
                text = f"has resumed at {self.host.name} meanwhile"
                self.heads.send(member.coordinator, msg.HandoverRejected(session, [subscriber], text))
            self.drop(session, subscriber)

    def lapsed(self, subscriber: str, epoch: OwnerEpoch) -> None:
        """Drop the member whose owner entry has gone, but not one of a later session that has no entry yet."""
        for session in sorted(self._sessions_of.get(subscriber, ())):
            if self._members[session, subscriber].owned == epoch:
                self.drop(session, subscriber)

    def edge_lost(self, edge: str) -> None:
        """Drop the members of a lost edge, except cut ones: those may resume elsewhere and name the session."""
        for (session, _, coordinator), members in self._grouped(lambda member: member.edge == edge).items():
            if uncut := [x for x in members if self._members[session, x].owned is None]:
                self.heads.send(coordinator, msg.HandoverRejected(session, uncut, f"{edge} was lost"))
                self.on_rejected(session, uncut)

    def heads_lost(self, lost: Iterable[str]) -> None:
        """Orphan the members of heads that cannot be reached or have restarted: their edges drop them."""
        gone = set(lost)
        for (session, edge, _), members in self._grouped(lambda member: member.coordinator in gone).items():
            self.edges.send_to_edge(self.host.name, edge, msg.Orphan(session, members))
            self.on_rejected(session, members)

    def _grouped(self, wanted: Callable[[RemoteMember], bool]) -> dict[tuple[str, str, str], list[str]]:
        """The members of each session, edge and coordinator."""
        found: dict[tuple[str, str, str], list[str]] = {}
        for (session, x), member in self._members.items():
            if wanted(member):
                found.setdefault((session, member.edge, member.coordinator), []).append(x)
        return found

    def expire(self) -> None:
        for session, x in [key for key, member in self._members.items() if self._is_over(key[1], member)]:
            self.drop(session, x)

    def _is_over(self, x: str, member: RemoteMember) -> bool:
        if member.owned is None:
            return member.until <= self.host.now
        entry = self.host.owners.entries.get(x)
        return entry is None or entry.epoch != member.owned
