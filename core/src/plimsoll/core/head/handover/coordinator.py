"""The head of the source: it alone decides whether a subscriber is cut over or stays, and the first decision holds.

A session moves a batch, but state and outcome are each member's own. Before its cut a member can be undone: by the
mediator, by the head's own deadline, or by the loss of source or target. After it, the member can only go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from plimsoll.core.head.handover.admission import ReachableEdges, SessionAdmission
from plimsoll.core.head.handover.cut_decision import CutDecision, RevokeSender
from plimsoll.core.head.handover.outcomes import ABORTING, CUT, OPEN
from plimsoll.core.head.handover.session import Handover
from plimsoll.core.head.handover.table import EdgeSender, HandoverTable, TableContext
from plimsoll.core.head.part import HeadPart
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.departures import AWAY, LEFT, departure
from plimsoll.core.protocol.wire import OwnerEpoch


class CoordinatorLinks(EdgeSender, RevokeSender, ReachableEdges, Protocol):
    """The ways to the edges of a session."""


class Coordinator(HeadPart):
    """The commands, messages, losses and deadlines of all sessions that this head decides.

    `table` knows how each session stands; `cut_decision` makes the one step that cannot be undone.
    """

    def __init__(
        self,
        host: TableContext,
        links: CoordinatorLinks,
        broadcast: Callable[[msg.Outcome], None],
        revoke_seconds: float,
    ) -> None:
        self.host = host
        self.table = HandoverTable(host, links, broadcast)
        self.sessions = self.table.sessions
        self.cut_decision = CutDecision(host, links, self.table, revoke_seconds)
        self.admission = SessionAdmission(
            host, links, self.sessions, self.table.archive, self.table.is_busy, self.table.is_leaving
        )

    # -- commands

    def prepare(self, session_id: str, plan: msg.HandoverPlan) -> msg.Outcome:
        """Begin a session. Repeated, it only returns how the session stands: the answer to the first may be lost."""
        if (known := self.table.outcome(session_id)).state != "unknown":
            return known
        if (why := self.admission.refusal(session_id, plan)) != "":
            return self.table.empty(session_id, "failed", why)
        members = {x: self.admission.member(x, plan) for x in dict.fromkeys(plan.members)}
        is_across, decides_at = plan.target_head != self.host.name, self.host.now + plan.prepare_seconds
        session = Handover(session_id, plan, members, is_across, decides_at)
        self.table.add(session)
        if going := session.of("preparing"):
            identities = [members[x].owner.identity for x in going]
            prepare = msg.Prepare(
                session_id, going, plan.prepare_seconds, plan.replay, identities if any(identities) else []
            )
            self.table.to_target(session, prepare)
        self.table.settle(session, members)
        return self.table.outcome(session_id)

    def cut(self, session_id: str) -> msg.Outcome:
        """Cut over the members that are attached; the others stay."""
        session = self.sessions.get(session_id)
        if session is not None and session.state == "ready":
            self.table.refuse(session, session.of("preparing"), "was not attached at the target in time")
            going = session.of("attached")
            if session.plan.replay:
                self.cut_decision.revoke(session, going)
            elif going:
                session.state = "cutting"
                self.table.put(session, going, "cutting")
                self.table.to_target(session, msg.Install(session_id, going))
        return self.table.outcome(session_id)

    def abort(self, session_id: str, why: str = "aborted by the mediator") -> msg.Outcome:
        """Undo all members that are not cut. An unknown session leaves a tombstone: its PREPARE may still come.

        One that is forgotten leaves none: it may have ended otherwise, and its PREPARE is refused anyway.
        """
        session = self.sessions.get(session_id)
        if session is not None:
            self.table.refuse(session, session.of(*OPEN), why)
        elif refusal := self.admission.forgotten(session_id):
            return self.table.empty(session_id, "failed", refusal)
        elif self.table.outcome(session_id).state == "unknown":
            self.table.archive.add(session_id, self.table.empty(session_id, "aborted", why))
        return self.table.outcome(session_id)

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
            target = session.plan.target
            move = msg.StartMove(session.id, session.items(going), target, slot.endpoint, slot.public_key)
            self.table.to_source(session, move)

    def on_attached(self, attached: msg.TargetAttached) -> None:
        if (session := self.sessions.get(attached.session)) is not None:
            self._attached(
                session,
                [x for x in attached.members if x in session.members and session.members[x].state == "preparing"],
            )

    def _attached(self, session: Handover, members: list[str]) -> None:
        if members:
            self.table.put(session, members, "attached")
            if session.state == "preparing":
                session.state = "ready"

    def on_rejected(self, nak: msg.HandoverRejected) -> None:
        """Members before their cut are undone. Members behind it have resumed, but at another edge than the target.

        The source speaks of members before their cut only; its word may cross with the cut. Of those that were undone
        it says how they ended.
        """
        if (session := self.sessions.get(nak.session)) is not None:
            members = [x for x in nak.members if x in session.members]
            self.table.refuse(session, members, nak.reason)
            if session.is_across and not departure(nak.reason).is_coded:
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
            if session.is_across:
                # docs/handover.md, Across clusters: A stays in the cover until H1's RELEASE, sent at DONE.
                incarnation, n = member.epoch
                self.table.to_source(session, msg.Release(x, (incarnation, n + 1)))
                if self.table.is_owner(member, x):
                    self.host.owners.forget(x, self.host.now)
            self.table.finish(session, x, outcome)

    # -- what happens meanwhile

    def resumed(self, subscriber: str, named: str | None, edge: str) -> None:
        """A subscriber has resumed at this head: that voids an open session of it, and closes a cut one."""
        session = self.table.busy.get(subscriber)
        if session is None:
            return
        member, mine = session.members[subscriber], session.id == named
        if member.state in OPEN or member.state == ABORTING:
            self.table.undo(session, [subscriber], "returned", "has resumed meanwhile")
        elif member.state == CUT or member.is_draining:
            if session.is_across:  # it reads this head's stream again: the target forgets
                self.table.to_target(session, msg.Abort(session.id, session.items([subscriber])))
            self.table.finish(session, subscriber, "moved" if mine and edge == session.plan.target else "returned")

    def lapsed(self, subscriber: str, epoch: OwnerEpoch) -> None:
        """The lease of a subscriber has ended here, so it cannot come back to the source."""
        session = self.table.busy.get(subscriber)
        if session is not None and session.members[subscriber].epoch == epoch:
            self._end_draining(session, [subscriber])
            self.table.refuse(session, [subscriber], f"{LEFT}: is gone from the source")

    def _end_draining(self, session: Handover, members: Iterable[str]) -> None:
        ended = [x for x in members if session.members[x].is_draining]
        for x in ended:
            session.set_draining(x, False)
        self.table.settle(session, ended)

    def expire(self) -> None:
        """A member drains as long as the source's owner entry stands: without it there is nothing to come back to."""
        for session in [session for session in self.sessions.values() if session.draining]:
            draining = [(x, member) for x, member in session.members.items() if member.is_draining]
            self._end_draining(session, [x for x, member in draining if not self.table.is_owner(member, x)])

    def edge_lost(self, edge: str) -> None:
        for session in [s for s in self.sessions.values() if edge in (s.plan.source, s.plan.target)]:
            code, waits = (f"{AWAY}: ", (ABORTING,)) if edge == session.plan.source else ("", ())
            self.table.refuse(session, session.of(*OPEN, *waits), f"{code}{edge} was lost")

    def heads_lost(self, is_behind: Iterable[str]) -> None:
        """These heads can no longer be reached."""
        lost = set(is_behind)
        for session in [s for s in self.sessions.values() if s.plan.target_head in lost]:
            self.table.refuse(session, session.of(*OPEN), f"{session.plan.target_head} was lost")

    def tick(self) -> None:
        """Act on deadlines, repeat revocations, and report changes to mediators."""
        now = self.host.now
        for session in list(self.sessions.values()):
            self.table.free(session)
            if now >= session.decides_at and session.is_open:
                self.table.refuse(session, session.of(*OPEN), "its time to prepare is over")
            self.table.end_waiting(session)
            if now >= session.drains_until:
                self._force_detach(session)
            if now >= session.revoke_at and session.counts[CUT]:
                self.cut_decision.send_revoke(session)
            if self.table.reports.is_due(session):
                self.table.reports.report(session)
        self.table.delivery_audit.tick()
        self.table.reports.report_audits()

    def status(self) -> dict[str, Any]:
        return {"sessions": len(self.sessions), "outcomes": dict(sorted(self.table.outcomes.items()))}

    def _force_detach(self, session: Handover) -> None:
        """docs/handover.md, Time: `drain_seconds` after the cut, members that are not done are detached."""
        late = session.of(CUT)
        session.drains_until = float("inf")
        if not late:
            return
        self.table.put(session, late, "detached", "had not had everything in time")
        for x in late:
            session.set_draining(x, session.is_across and self.table.is_owner(session.members[x], x))
        part = msg.ForceDetach(session.id, session.items(late))
        self.table.to_target(session, part)
        self.table.to_source(session, part)
        self.table.settle(session, late)

    def wake_at(self) -> float:
        at = min(self.table.delivery_audit.wake_at(), self.table.reports.audits_at())
        for s in self.sessions.values():
            at = min(at, s.drains_until, s.revoke_at, self.table.reports.wake_at(s))
            if s.is_open:
                at = min(at, s.decides_at)
            if s.asked:
                at = min(at, s.asked[0][0])
        return at
