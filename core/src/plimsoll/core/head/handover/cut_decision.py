"""The decision that makes a hand-over final: which members are cut, each by one compare-and-swap of its owner.

A drain within the cluster is decided here at CUT_REQUEST. Across clusters the head of the target has swapped the owner
by the time that its MARKER arrives, and here only the source's side is compared. By replay nothing is swapped: the
owner changes when the subscriber resumes (docs/handover.md, Local, Across clusters, Replay).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from plimsoll.core.head.handover.outcomes import CUT
from plimsoll.core.head.handover.session import Handover
from plimsoll.core.head.handover.table import HandoverTable, SourcePlaces
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.departures import LEFT
from plimsoll.core.protocol.wire import Token

ELSEWHERE = f"{LEFT}: is served elsewhere by now"
NOT_ASKED = "was not asked for at its owner epoch"


class CutContext(Protocol):
    """What a cut needs of a head."""

    now: float
    epoch: int
    owners: OwnershipTable

    @property
    def held_places(self) -> SourcePlaces: ...


class RevokeSender(Protocol):
    def revoke(self, edge: str, message: msg.Revoke) -> None:
        """Send on the control socket of an edge here; it may be lost."""


class CutDecision:
    """`revoke_seconds`: between two REVOKEs of one session."""

    def __init__(self, host: CutContext, links: RevokeSender, table: HandoverTable, revoke_seconds: float) -> None:
        self.host, self.links, self.table, self.revoke_seconds = host, links, table, revoke_seconds

    # -- by drain

    def cut_members(self, session_id: str, items: list[msg.MemberItem], key: str, token: Token) -> list[str]:
        """The local cut, one compare-and-swap per member; returns the members that the target owns from now on."""
        session = self.table.sessions.get(session_id)
        if session is None:
            return []
        good = [item.subscriber for item in items if self._may_cut(session, item)]
        for x in good:
            incarnation, n = session.members[x].epoch
            old = self.host.owners.swap(x, key, (incarnation, n + 1), (token[1], token[2]))
            if self.host.held_places.are_needed:
                self.host.held_places.swapped(x, old)
        if good:
            self._send_cut(session, good, token, across=False)
        self._refuse_uncut(session, [item.subscriber for item in items])
        return good

    def _may_cut(self, session: Handover, item: msg.MemberItem) -> bool:
        """Compare: the member is still waiting for its cut, and nothing has changed its owner since PREPARE."""
        member = session.members.get(item.subscriber)
        if member is None or member.state != "cutting" or not self.table.is_owner(member, item.subscriber):
            return False
        return item.epoch == (member.epoch[0], member.epoch[1] + 1)

    def on_marker(self, marker: msg.Marker) -> None:
        """The cut across clusters: publications behind the MARKER follow the cover that it travelled behind."""
        session = self.table.sessions.get(marker.session)
        if session is None or not session.is_across:
            return
        members = session.members
        good = [
            x for x in marker.members
            if x in members and members[x].state == "cutting" and self.table.is_owner(members[x], x)
        ]  # fmt: skip
        if good:
            self._send_cut(session, good, marker.token, across=True)
        self._refuse_uncut(session, marker.members)

    def _send_cut(self, session: Handover, members: list[str], token: Token, *, across: bool) -> None:
        # Decided before it is sent: every reaction to the message must find the members cut.
        self._decided(session, members)
        keeps_place = self.host.held_places.are_needed
        self.table.to_source(session, msg.Cut(session.id, session.items(members), token, across, keeps_place))

    def _refuse_uncut(self, session: Handover, asked: Iterable[str]) -> None:
        """Undo members that were asked for but not cut: a session asks for the cut once."""
        left = [x for x in asked if x in session.members and session.members[x].state == "cutting"]
        self._refuse_by_owner(session, left)

    def _refuse_by_owner(self, session: Handover, members: Iterable[str]) -> None:
        """Undo members that are not cut: those that the source owns no more, and those that it still owns."""
        found: dict[bool, list[str]] = {False: [], True: []}
        for x in members:
            found[self.table.is_owner(session.members[x], x)].append(x)
        self.table.refuse(session, found[False], ELSEWHERE)
        self.table.refuse(session, found[True], NOT_ASKED)

    def _decided(self, session: Handover, members: list[str]) -> None:
        session.state = CUT
        session.drains_until = min(session.drains_until, self.host.now + session.plan.drain_seconds)
        self.table.put(session, members, CUT)

    # -- by replay

    def revoke(self, session: Handover, members: list[str]) -> None:
        """docs/handover.md, Replay: the decision is made here, but the owner changes when the subscriber resumes."""
        good = [x for x in members if self.table.is_owner(session.members[x], x)]
        if good:
            self._decided(session, good)
            self.send_revoke(session)
        self._refuse_by_owner(session, members)

    def send_revoke(self, session: Handover) -> None:
        """Send REVOKE, and again until the subscriber has resumed: the control socket may lose it."""
        session.revoke_at, plan = self.host.now + self.revoke_seconds, session.plan
        left = session.items(session.of(CUT))
        said = msg.Revoke(session.id, self.host.epoch, left, plan.target, session.endpoint, session.public_key)
        self.links.revoke(plan.source, said)
