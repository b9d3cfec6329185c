"""Profiles that sessions wait for: queried until they are complete.

The head of an edge knows the covering sets of its other edges. Those of edges behind other heads are queried from
these heads first, and sent with the query; a set that does not come in time is left out, and the input of its edge
is overestimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.profiling.profile_codec import PARTS_AT_MOST, PROFILE_BYTES, ProfileAssembly, decode_profile
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.session.context.command_outbox import CommandOutbox
from plimsoll.core.session.inputs import FleetView

COVER_ATTEMPTS = 4
"""Queries for a covering set; then the profile is queried without it."""


@dataclass(slots=True)
class PendingCoverQuery:
    """The covering set of one edge, from the parts so far."""

    id: int
    head: str
    parts: dict[int, list[str]] = field(default_factory=dict)
    count: int = 0

    @property
    def is_complete(self) -> bool:
        return 0 < self.count == len(self.parts)

    def receive_part(self, reply: msg.CoverReply) -> None:
        """Take a part. Another number of parts means another covering set, which replaces this one."""
        if not 0 < reply.parts <= PARTS_AT_MOST or reply.part >= reply.parts or self.is_complete:
            return
        if reply.parts != self.count:
            self.count, self.parts = reply.parts, {}
        known = sum(len(text) for texts in self.parts.values() for text in texts)
        if known <= 2 * PROFILE_BYTES:
            self.parts[reply.part] = reply.texts

    def texts_by_part(self) -> list[list[str]]:
        """The parts in order; one empty part while the set is not complete."""
        return [self.parts[part] for part in range(self.count)] if self.is_complete else [[]]


@dataclass(slots=True)
class PendingProfileQuery:
    """The query of one session: the input of the subscribers of `edge`, and the part that `target` takes in already.

    With `targets`, each of them is meant; with `each`, what each subscription alone matches is wanted as well.
    `covers`: their covering sets, if one of them is behind another head; the edges of one session share what is known
    of a target. `fault`: why the last profile could not be read.
    """

    edge: str
    target: str
    id: int
    targets: list[str]
    each: bool
    since: float
    covers: dict[str, PendingCoverQuery] = field(default_factory=dict)
    assembly: ProfileAssembly = field(default_factory=ProfileAssembly)
    profile: SubscriptionProfile | None = None
    fault: str = ""


class ProfileQueries:
    """Pending and answered queries, by the uid of the session and by edge."""

    def __init__(self, outbox: CommandOutbox) -> None:
        self._outbox = outbox
        self._pending: dict[tuple[str, str], PendingProfileQuery] = {}
        self._covers: dict[str, dict[str, PendingCoverQuery]] = {}

    def profile_of(
        self, fleet: FleetView, uid: str, edge: str, target: str, targets: Sequence[str] = (), *, each: bool = False
    ) -> SubscriptionProfile | None:
        """The profile of an edge; None until it is complete. It is queried meanwhile."""
        query = self._pending.get((uid, edge))
        head = fleet.edges[edge].head
        if query is None or (query.target, query.targets, query.each) != (target, list(targets), each):
            number, now = self._outbox.next_query_id(), self._outbox.now
            query = PendingProfileQuery(edge, target, number, list(targets), each, now)
            query.covers = self._cover_queries(fleet, uid, query, head)
            self._pending[uid, edge] = query
        if query.profile is not None or self._awaits_covers(query):
            return query.profile
        if self._outbox.is_due(f"profile/{query.id}", self._outbox.timings.ask):
            for message in _messages(query):
                self._outbox.send(head, message)
        return None

    def receive_profile(self, reply: msg.ProfileReply) -> None:
        """Take a piece. A profile that cannot be read is queried again, under another number."""
        for query in self._pending.values():
            if query.id != reply.id or query.edge != reply.edge or query.profile is not None:
                continue
            whole = query.assembly.take(reply)
            if whole is None:
                return
            try:
                query.profile = decode_profile(whole)
            except WireError as error:
                query.fault = f"{query.edge}: {error}"
                query.id, query.assembly = self._outbox.next_query_id(), ProfileAssembly()
            return

    def fault_of(self, uid: str) -> str:
        """Why the last profile of an edge of this session could not be read; empty if none came, or all can be."""
        pending = (query for key, query in self._pending.items() if key[0] == uid and query.profile is None)
        return next((query.fault for query in pending if query.fault), "")

    def receive_cover(self, reply: msg.CoverReply) -> None:
        """Take a part of the covering set of an edge."""
        for covers in self._covers.values():
            query = covers.get(reply.edge)
            if query is not None and query.id == reply.id:
                query.receive_part(reply)

    def forget_session(self, uid: str) -> None:
        """Drop all queries of a session."""
        self._pending = {key: query for key, query in self._pending.items() if key[0] != uid}
        self._covers.pop(uid, None)

    def _cover_queries(
        self, fleet: FleetView, uid: str, query: PendingProfileQuery, head: str
    ) -> dict[str, PendingCoverQuery]:
        """The covering sets that go with a query: of all targets, if one of them is behind another head."""
        names = query.targets or [query.target]
        heads = {name: fleet.edges[name].head for name in names if name in fleet.edges}
        if all(other == head for other in heads.values()):
            return {}
        known = self._covers.setdefault(uid, {})
        for name, other in heads.items():
            if name not in known or known[name].head != other:
                known[name] = PendingCoverQuery(self._outbox.next_query_id(), other)
        return {name: known[name] for name in heads}

    def _awaits_covers(self, query: PendingProfileQuery) -> bool:
        missing = {name: one for name, one in query.covers.items() if not one.is_complete}
        outbox = self._outbox
        if not missing or outbox.now >= query.since + COVER_ATTEMPTS * outbox.timings.ask:
            return False
        for name, one in missing.items():
            if outbox.is_due(f"cover/{one.id}", outbox.timings.ask):
                outbox.send(one.head, msg.CoverQuery(one.id, name))
        return True


def _messages(query: PendingProfileQuery) -> Iterator[msg.ProfileQuery]:
    if not query.covers:
        yield msg.ProfileQuery(query.id, query.edge, query.target, targets=query.targets, each=query.each)
        return
    parts = [(name, texts) for name, cover in query.covers.items() for texts in cover.texts_by_part()]
    for part, (name, texts) in enumerate(parts):
        yield msg.ProfileQuery(query.id, query.edge, name, part, len(parts), texts, query.targets, query.each)
