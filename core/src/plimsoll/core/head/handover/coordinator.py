"""The head of the source: it alone decides whether a subscriber is cut over or stays, and the first decision holds.

A session moves a batch, but state and outcome are each member's own. Before its cut a member can be undone: by the
mediator, by the head's own deadline, or by the loss of source or target. After it, the member can only go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from typing import Protocol

from msgspec.structs import replace

from plimsoll.core.head.handover.admission import SessionAdmission
from plimsoll.core.head.handover.delivery_audit import DeliveryAudit
from plimsoll.core.head.handover.outcomes import CUT, OPEN, OUTCOMES, OutcomeHistory
from plimsoll.core.head.handover.reports import OutcomeReports
from plimsoll.core.head.handover.session import Handover, HandoverMember
from plimsoll.core.head.log import Log
from plimsoll.core.head.ownership import OwnerEntry, OwnershipTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import OwnerEpoch, Token

ELSEWHERE = "is served elsewhere by now"


class CoordinatorContext(Protocol):
    """What the coordinator needs of a head. `remote_members`: who is on the way here in sessions of other heads."""

    now: float
    name: str
    epoch: int
    log: Log
    owners: OwnershipTable

    @property
    def remote_members(self) -> Container[str]: ...


class CoordinatorLinks(Protocol):
    """The ways to the edges of a session."""

    def send_to_edge(self, head: str, edge: str, message: msg.ToEdge) -> None:
        """Send in the stream of an edge, of this head or of another."""

    def revoke(self, edge: str, message: msg.Revoke) -> None:
        """Send on the control socket of an edge here; it may be lost."""

    def has_edge(self, edge: str) -> bool: ...
    def reaches(self, head: str) -> bool: ...
    def edge_of(self, owner: OwnerEntry) -> str:
        """The edge that an owner entry names, as long as its link is up; else an empty string."""


class Coordinator:
    """All sessions that this head decides, by id.

    It has more methods than other classes because it is one state machine: each command, message and loss is a short
    method that reads and writes the same members. Admission, reports and the audit are parts of their own.
    """

    def __init__(
        self,
        host: CoordinatorContext,
        links: CoordinatorLinks,
        broadcast: Callable[[msg.Outcome], None],
        revoke_seconds: float,
    ) -> None:
        self.host, self.links, self.revoke_seconds = host, links, revoke_seconds
        self.sessions: dict[str, Handover] = {}
        self.archive = OutcomeHistory()
        self.outcomes: Counter[str] = Counter()
        self._of: dict[str, Handover] = {}
        self.admission = SessionAdmission(host, links, self.sessions, self.archive, self.is_busy)
        self.reports = OutcomeReports(host, self.outcome, broadcast)
        self.delivery_audit = DeliveryAudit(host, links, self.reports.audit_changed)

    # -- commands

    def prepare(self, session_id: str, plan: msg.HandoverPlan) -> msg.Outcome:
        """Begin a session. Repeated, it only returns how the session stands: the answer to the first may be lost."""
        if (known := self.outcome(session_id)).state != "unknown":
            return known
        if (why := self.admission.refusal(session_id, plan)) != "":
            return self._empty(session_id, "failed", why)
        members = {x: self.admission.member(x, plan) for x in dict.fromkeys(plan.members)}
        session = Handover(session_id, plan, members, self.host.now + plan.prepare_seconds)
        self.sessions[session_id] = session
        self.outcomes.update(session.counts["stayed"] * ["stayed"])
        going = session.of("preparing")
        for x in going:
            self._of[x] = session
        if going:
            identities = [members[x].owner.identity for x in going]
            prepare = msg.Prepare(
                session_id, going, plan.prepare_seconds, plan.replay, identities if any(identities) else []
            )
            self.links.send_to_edge(plan.target_head, plan.target, prepare)
        self._settle(session, members)
        return self.outcome(session_id)

    def cut(self, session_id: str) -> msg.Outcome:
        """Cut over the members that are attached; the others stay."""
        session = self.sessions.get(session_id)
        if session is not None and session.state == "ready":
            self.refuse(session, session.of("preparing"), why="was not attached at the target in time")
            going = session.of("attached")
            if session.plan.replay:
                self._revoke(session, going)
            elif going:
                session.state = "cutting"
                self._put(session, going, "cutting")
                self._to_target(session, msg.Install(session_id, going))
        return self.outcome(session_id)

    def abort(self, session_id: str, why: str = "aborted by the mediator") -> msg.Outcome:
        """Undo all members that are not cut. An unknown session leaves a tombstone: its PREPARE may still come."""
        session = self.sessions.get(session_id)
        if session is not None:
            self.refuse(session, session.of(*OPEN), why=why)
        elif self.outcome(session_id).state == "unknown":
            self.archive.add(session_id, self._empty(session_id, "aborted", why))
        return self.outcome(session_id)

    def outcome(self, session_id: str) -> msg.Outcome:
        """How a session stands, here or in the history of outcomes."""
        session, audit = self.sessions.get(session_id), self.delivery_audit.audit(session_id)
        if session is None:
            known = self.archive.get(session_id) or self._empty(session_id, "unknown", "")
            return known if audit is None else replace(known, audit=audit)
        members = [(x, member.state) for x, member in session.members.items()]
        return msg.Outcome(session_id, 0, self.host.epoch, session.state, members, session.reason, audit)  # type: ignore[arg-type]

    def moved(self, session_id: str) -> list[str]:
        """The members known to have moved."""
        return [x for x, state in self.outcome(session_id).members if state == "moved"]

    def _empty(self, session_id: str, state: str, reason: str) -> msg.Outcome:
        return msg.Outcome(session_id, 0, self.host.epoch, state, [], reason)  # type: ignore[arg-type]

    # -- from the target

    def on_slot(self, slot: msg.Slot) -> None:
        session = self.sessions.get(slot.session)
        if session is None:
            return
        session.endpoint, session.public_key = slot.endpoint, slot.public_key
        going = [x for x in slot.members if x in session.members and session.members[x].state == "preparing"]
        if session.plan.replay:
            # By replay members attach at the target only after their cut: the slot is all that there is to wait for.
            self._attached(session, going)
        elif going:
            plan = session.plan
            move = msg.StartMove(session.id, session.items(going), plan.target, slot.endpoint, slot.public_key)
            self.links.send_to_edge(self.host.name, plan.source, move)

    def on_attached(self, attached: msg.TargetAttached) -> None:
        if (session := self.sessions.get(attached.session)) is not None:
            self._attached(
                session,
                [x for x in attached.members if x in session.members and session.members[x].state == "preparing"],
            )

    def _attached(self, session: Handover, members: list[str]) -> None:
        if members:
            self._put(session, members, "attached")
            if session.state == "preparing":
                session.state = "ready"

    def on_rejected(self, nak: msg.HandoverRejected) -> None:
        """Members before their cut are undone. Members behind it have resumed, but at another edge than the target."""
        if (session := self.sessions.get(nak.session)) is not None:
            members = [x for x in nak.members if x in session.members]
            self.refuse(session, members, why=nak.reason)
            if self._across(session):
                self._arrived(session, members, "returned")

    def on_done(self, done: msg.Done) -> None:
        if (session := self.sessions.get(done.session)) is not None:
            self._arrived(session, [x for x in done.members if x in session.members], "moved")

    def _arrived(self, session: Handover, members: list[str], outcome: str) -> None:
        """Release the source: of these members, those that are cut have left it for good."""
        for x in members:
            member = session.members[x]
            if not (member.state == CUT or member.is_draining):
                continue
            if self._across(session):
                # docs/handover.md, Across clusters: A stays in the cover until H1's RELEASE, sent at DONE.
                incarnation, n = member.epoch
                self.links.send_to_edge(self.host.name, session.plan.source, msg.Release(x, (incarnation, n + 1)))
                if self._is_owner(member, x):
                    self.host.owners.forget(x, self.host.now)
            self._finish(session, x, outcome)

    # -- the cut

    def cut_members(self, session_id: str, items: list[msg.MemberItem], key: str, token: Token) -> list[str]:
        """The local cut, one compare-and-swap per member; returns the members that the target owns from now on."""
        session = self.sessions.get(session_id)
        if session is None:
            return []
        good = [item.subscriber for item in items if self._may_cut(session, item)]
        for x in good:
            incarnation, n = session.members[x].epoch
            self.host.owners.swap(x, key, (incarnation, n + 1), (token[1], token[2]))
        if good:
            self._send_cut(session, good, token, across=False)
        self._refuse_uncut(session, [item.subscriber for item in items])
        return good

    def _refuse_uncut(self, session: Handover, asked: Iterable[str]) -> None:
        """Undo members that were asked for but not cut: a session asks for the cut once."""
        left = [x for x in asked if x in session.members and session.members[x].state == "cutting"]
        self.refuse(session, left, why=ELSEWHERE)

    def _may_cut(self, session: Handover, item: msg.MemberItem) -> bool:
        """Compare: the member is still waiting for its cut, and nothing has changed its owner since PREPARE."""
        member = session.members.get(item.subscriber)
        if member is None or member.state != "cutting" or not self._is_owner(member, item.subscriber):
            return False
        return item.epoch == (member.epoch[0], member.epoch[1] + 1)

    def on_marker(self, marker: msg.Marker) -> None:
        """The cut across clusters: publications behind the MARKER follow the cover that it travelled behind."""
        session = self.sessions.get(marker.session)
        if session is None or not self._across(session):
            return
        members = session.members
        good = [
            x for x in marker.members
            if x in members and members[x].state == "cutting" and self._is_owner(members[x], x)
        ]  # fmt: skip
        if good:
            self._send_cut(session, good, marker.token, across=True)
        self._refuse_uncut(session, marker.members)

    def _is_owner(self, member: HandoverMember, x: str) -> bool:
        """Whether the source still owns this member, under the epoch that it had at PREPARE."""
        entry = self.host.owners.entries.get(x)
        return entry is not None and (entry.key, entry.epoch) == (member.owner.key, member.owner.epoch)

    def _send_cut(self, session: Handover, members: list[str], token: Token, *, across: bool) -> None:
        # Decided before it is sent: whatever sending sets off must find the members cut.
        self._decided(session, members)
        cut = msg.Cut(session.id, session.items(members), token, across)
        self.links.send_to_edge(self.host.name, session.plan.source, cut)

    def _decided(self, session: Handover, members: list[str]) -> None:
        session.state = CUT
        session.drains_until = min(session.drains_until, self.host.now + session.plan.drain_seconds)
        self._put(session, members, CUT)

    def _revoke(self, session: Handover, members: list[str]) -> None:
        """docs/handover.md, Replay: the decision is made here, but the owner changes when the subscriber resumes."""
        good = [x for x in members if self._is_owner(session.members[x], x)]
        if good:
            self._decided(session, good)
            self._send_revoke(session)
        self.refuse(session, members, why=ELSEWHERE)

    def _send_revoke(self, session: Handover) -> None:
        """Send REVOKE, and again until the subscriber has resumed: the control socket may lose it."""
        session.revoke_at, plan = self.host.now + self.revoke_seconds, session.plan
        left = session.items(session.of(CUT))
        said = msg.Revoke(session.id, self.host.epoch, left, plan.target, session.endpoint, session.public_key)
        self.links.revoke(plan.source, said)

    # -- ends

    def refuse(self, session: Handover, members: list[str], outcome: str = "stayed", why: str = "") -> None:
        """Undo the members among these that are not cut yet."""
        open_ones = [x for x in members if session.members[x].state in OPEN]
        if not open_ones:
            return
        self._put(session, open_ones, outcome, why)
        abort = msg.Abort(session.id, session.items(open_ones))
        self.links.send_to_edge(self.host.name, session.plan.source, abort)
        self._to_target(session, abort)
        self._settle(session, open_ones)

    def _finish(self, session: Handover, x: str, outcome: str) -> None:
        session.set_draining(x, False)
        if session.members[x].state == CUT:
            self._put(session, [x], outcome)
        if session.plan.replay:
            session.freed.append(x)
        self._settle(session, [x])

    def _free(self, session: Handover) -> None:
        """Free slots at the target: once a round, in one message, for a batch that resumes member by member."""
        if session.freed:
            self._to_target(session, msg.Abort(session.id, session.items(session.freed)))
            session.freed = []

    def _put(self, session: Handover, members: Iterable[str], state: str, why: str = "") -> None:
        session.is_changed = True
        for x in members:
            session.put(x, state, why)
            if state in OUTCOMES:
                self.outcomes[state] += 1
        if why and not session.reason:
            session.reason = why

    def _settle(self, session: Handover, changed: Iterable[str]) -> None:
        """End the session if every member has its outcome. `changed`: members that may have theirs now."""
        if session.state not in ("done", "aborted") and session.is_settled:
            session.state = "done" if session.state == CUT else "aborted"
            session.is_changed = True
            if not session.reason and session.state == "aborted":
                session.reason = next((m.why for m in session.members.values() if m.why), "nobody could be moved")
        for x in changed:
            member = session.members[x]
            if member.state in OUTCOMES and not member.is_draining and self._of.get(x) is session:
                del self._of[x]
        if session.over and session.id in self.sessions:
            self._free(session)
            self.reports.report(session)
            self.archive.add(session.id, self.outcome(session.id))
            del self.sessions[session.id]

    # -- what happens meanwhile

    def is_busy(self, subscriber: str) -> bool:
        """Whether a subscriber is in a session of this head or of another: one at a time, until it is done."""
        return subscriber in self._of or subscriber in self.host.remote_members

    def resumed(self, subscriber: str, named: str | None, edge: str) -> None:
        """A subscriber has resumed at this head: that voids an open session of it, and closes a cut one."""
        session = self._of.get(subscriber)
        if session is None:
            return
        member, mine = session.members[subscriber], session.id == named
        if member.state in OPEN:
            self.refuse(session, [subscriber], "returned", "has resumed meanwhile")
        elif member.state == CUT or member.is_draining:
            if self._across(session):  # it reads this head's stream again: the target forgets
                self._to_target(session, msg.Abort(session.id, session.items([subscriber])))
            self._finish(session, subscriber, "moved" if mine and edge == session.plan.target else "returned")

    def lapsed(self, subscriber: str, epoch: OwnerEpoch) -> None:
        """The lease of a subscriber has ended here, so it cannot come back to the source."""
        session = self._of.get(subscriber)
        if session is not None and session.members[subscriber].epoch == epoch:
            self._end_draining(session, [subscriber])
            self.refuse(session, [subscriber], why="is gone from the source")

    def _end_draining(self, session: Handover, members: Iterable[str]) -> None:
        ended = [x for x in members if session.members[x].is_draining]
        for x in ended:
            session.set_draining(x, False)
        self._settle(session, ended)

    def expire(self) -> None:
        """A member drains as long as the source's owner entry stands: without it there is nothing to come back to."""
        for session in [session for session in self.sessions.values() if session.draining]:
            draining = [(x, member) for x, member in session.members.items() if member.is_draining]
            self._end_draining(session, [x for x, member in draining if not self._is_owner(member, x)])

    def edge_lost(self, edge: str) -> None:
        for session in [s for s in self.sessions.values() if edge in (s.plan.source, s.plan.target)]:
            self.refuse(session, session.of(*OPEN), why=f"{edge} was lost")

    def heads_lost(self, is_behind: Iterable[str]) -> None:
        """These heads can no longer be reached."""
        lost = set(is_behind)
        for session in [s for s in self.sessions.values() if s.plan.target_head in lost]:
            self.refuse(session, session.of(*OPEN), why=f"{session.plan.target_head} was lost")

    def tick(self) -> None:
        """Act on deadlines, repeat revocations, and report changes to mediators."""
        now = self.host.now
        for session in list(self.sessions.values()):
            self._free(session)
            if now >= session.decides_at and session.is_open:
                self.refuse(session, session.of(*OPEN), why="its time to prepare is over")
            if now >= session.drains_until:
                self._force_detach(session)
            if now >= session.revoke_at and session.counts[CUT]:
                self._send_revoke(session)
            if self.reports.is_due(session):
                self.reports.report(session)
        self.delivery_audit.tick()
        self.reports.report_audits()

    def _force_detach(self, session: Handover) -> None:
        """docs/handover.md, Time: `drain_seconds` after the cut, members that are not done are detached."""
        late = session.of(CUT)
        session.drains_until = float("inf")
        if not late:
            return
        self._put(session, late, "detached", "had not had everything in time")
        for x in late:
            session.set_draining(x, self._across(session) and self._is_owner(session.members[x], x))
        part = msg.ForceDetach(session.id, session.items(late))
        self._to_target(session, part)
        self.links.send_to_edge(self.host.name, session.plan.source, part)
        self._settle(session, late)

    def wake_at(self) -> float:
        at = min(self.delivery_audit.wake_at(), self.reports.audits_at())
        for s in self.sessions.values():
            at = min(at, s.drains_until, s.revoke_at, self.reports.wake_at(s))
            if s.is_open:
                at = min(at, s.decides_at)
        return at

    def _across(self, session: Handover) -> bool:
        return session.plan.target_head != self.host.name

    def _to_target(self, session: Handover, record: msg.ToEdge) -> None:
        self.links.send_to_edge(session.plan.target_head, session.plan.target, record)
