"""The hand-overs that a head decides: how each stands, which subscribers take part, and how those that are over ended.

What changes a member's state goes through here, so that sums, outcomes and reports agree with it. Which change is due
is for the coordinator, and for the cut decision, to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from typing import Protocol

from msgspec.structs import replace

from plimsoll.core.head.handover.delivery_audit import DeliveryAudit
from plimsoll.core.head.handover.outcomes import ABORTING, ANSWER_SECONDS, CUT, OPEN, OUTCOMES, OutcomeHistory
from plimsoll.core.head.handover.reports import OutcomeReports
from plimsoll.core.head.handover.session import Handover, HandoverMember
from plimsoll.core.head.log import Log
from plimsoll.core.head.ownership import OwnerEntry, OwnershipTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.departures import UNKNOWN, departure


class SourcePlaces(Protocol):
    """Places that sources keep behind a cut."""

    @property
    def are_needed(self) -> bool: ...
    def swapped(self, subscriber: str, old: OwnerEntry | None) -> None: ...


class TableContext(Protocol):
    """What the table needs of a head. `remote_members`: who is on the way here in sessions of other heads."""

    now: float
    name: str
    epoch: int
    log: Log
    owners: OwnershipTable

    @property
    def held_places(self) -> SourcePlaces: ...
    @property
    def remote_members(self) -> Container[str]: ...


class EdgeSender(Protocol):
    def send_to_edge(self, head: str, edge: str, message: msg.ToEdge) -> None:
        """Send in the stream of an edge, of this head or of another."""


class HandoverTable:
    """`sessions`: by id, until they are over; `busy`: the session of each subscriber that has no outcome yet."""

    def __init__(self, host: TableContext, links: EdgeSender, broadcast: Callable[[msg.Outcome], None]) -> None:
        self.host, self.links = host, links
        self.sessions: dict[str, Handover] = {}
        self.busy: dict[str, Handover] = {}
        self.archive = OutcomeHistory()
        self.outcomes: Counter[str] = Counter()
        self.reports = OutcomeReports(host, self.outcome, broadcast)
        self.delivery_audit = DeliveryAudit(host, links, self.reports.audit_changed)

    # -- how they stand

    def outcome(self, session_id: str) -> msg.Outcome:
        """How a session stands, here or in the history of outcomes."""
        session, audit = self.sessions.get(session_id), self.delivery_audit.audit(session_id)
        if session is None:
            known = self.archive.get(session_id) or self.empty(session_id, "unknown", "")
            return known if audit is None else replace(known, audit=audit)
        members = [(x, member.state) for x, member in session.members.items()]
        return msg.Outcome(session_id, 0, self.host.epoch, session.state, members, session.reason, audit)  # type: ignore[arg-type]  # its states are words of the protocol

    def empty(self, session_id: str, state: str, reason: str) -> msg.Outcome:
        """The outcome of a session that has no members here."""
        return msg.Outcome(session_id, 0, self.host.epoch, state, [], reason)  # type: ignore[arg-type]  # its states are words of the protocol

    def moved(self, session_id: str) -> list[str]:
        """The members known to have moved."""
        return [x for x, state in self.outcome(session_id).members if state == "moved"]

    def is_busy(self, subscriber: str) -> bool:
        """Whether a subscriber is in a session of this head or of another: one at a time, until it is done."""
        return subscriber in self.busy or subscriber in self.host.remote_members

    def is_leaving(self, subscriber: str) -> bool:
        """Whether a subscriber has been cut in a session of this head, and is not done."""
        session = self.busy.get(subscriber)
        return session is not None and session.members[subscriber].state not in (*OPEN, ABORTING)

    def is_owner(self, member: HandoverMember, x: str) -> bool:
        """Whether the source still owns this member, under the epoch that it had at PREPARE."""
        entry = self.host.owners.entries.get(x)
        return entry is not None and (entry.key, entry.epoch) == (member.owner.key, member.owner.epoch)

    # -- what is sent to both ends

    def to_source(self, session: Handover, message: msg.ToEdge) -> None:
        self.links.send_to_edge(self.host.name, session.plan.source, message)

    def to_target(self, session: Handover, message: msg.ToEdge) -> None:
        self.links.send_to_edge(session.plan.target_head, session.plan.target, message)

    # -- changes

    def add(self, session: Handover) -> None:
        self.sessions[session.id] = session
        self.outcomes.update(member.state for member in session.members.values() if member.state in OUTCOMES)
        for x in session.of("preparing"):
            self.busy[x] = session
        if undone := session.of(ABORTING):
            self._ask_source(session, undone)

    def put(self, session: Handover, members: Iterable[str], state: str, why: str = "") -> None:
        session.is_changed = True
        for x in members:
            session.put(x, state, why)
            if state in OUTCOMES:
                self.outcomes[state] += 1
        if why and not session.reason:
            session.reason = why

    def refuse(self, session: Handover, members: list[str], reason: str) -> None:
        """Undo the members among these that are not cut yet; the code of the reason decides their outcome.

        Without a code the source decides it: only the edge that serves a subscriber knows that it does.
        """
        outcome, why = departure(reason)
        self.undo(session, members, outcome or ABORTING, why)

    def undo(self, session: Handover, members: list[str], state: str, why: str) -> None:
        """Undo the members among these that are not cut yet: with this outcome, or asking the source for theirs."""
        open_ones = [x for x in members if session.members[x].state in OPEN]
        asked = [] if state == ABORTING else [x for x in members if session.members[x].state == ABORTING]
        if not open_ones and not asked:
            return
        self.put(session, asked, state)  # why it was undone is known already
        if open_ones:
            self.put(session, open_ones, state, why)
            self._send_abort(session, open_ones, ask=state == ABORTING)
        self.settle(session, [*open_ones, *asked])

    def _send_abort(self, session: Handover, members: list[str], *, ask: bool) -> None:
        if ask:
            self._ask_source(session, members)
        else:
            self.to_source(session, msg.Abort(session.id, session.items(members)))
        self.to_target(session, msg.Abort(session.id, session.items(members)))

    def _ask_source(self, session: Handover, members: list[str]) -> None:
        session.asked.append((self.host.now + ANSWER_SECONDS, members))
        self.to_source(session, msg.Abort(session.id, session.items(members), ask=True))

    def end_waiting(self, session: Handover) -> None:
        """End members whose source has not answered in time: it may be dead, and where they are is not known."""
        while session.asked and self.host.now >= session.asked[0][0]:
            members = [x for x in session.asked.popleft()[1] if session.members[x].state == ABORTING]
            if members:
                self.put(session, members, UNKNOWN, f"{session.plan.source} has not said whether it serves them")
                self.settle(session, members)

    def finish(self, session: Handover, x: str, outcome: str) -> None:
        """End a member behind its cut."""
        session.set_draining(x, False)
        if session.members[x].state == CUT:
            self.put(session, [x], outcome)
        if session.plan.replay:
            session.freed.append(x)
        self.settle(session, [x])

    def free(self, session: Handover) -> None:
        """Free slots at the target: once a round, in one message, for a batch that resumes member by member."""
        if session.freed:
            self.to_target(session, msg.Abort(session.id, session.items(session.freed)))
            session.freed = []

    def settle(self, session: Handover, changed: Iterable[str]) -> None:
        """End the session if every member has its outcome. `changed`: members that may have theirs now."""
        if session.state not in ("done", "aborted") and session.is_settled:
            session.state = "done" if session.state == CUT else "aborted"
            session.is_changed = True
            if not session.reason and session.state == "aborted":
                session.reason = next(
                    (m.why for m in session.members.values() if m.why), "no subscriber could be moved"
                )
        for x in changed:
            member = session.members[x]
            if member.state in OUTCOMES and not member.is_draining and self.busy.get(x) is session:
                del self.busy[x]
        if session.over and session.id in self.sessions:
            self.free(session)
            self.reports.report(session)
            self.archive.add(session.id, self.outcome(session.id))
            del self.sessions[session.id]
