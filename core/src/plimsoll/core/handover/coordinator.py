"""The head of the source: it alone decides whether a subscriber is cut over or stays, and the first decision holds.

A session moves a batch; state and outcome are each member's own. Before its cut a member can be undone, by the
mediator, by the head's own deadline, or by whatever takes the source or the target away; after it, it only goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite
from typing import Protocol

from msgspec.structs import replace

from plimsoll.core import records as r
from plimsoll.core.handover.judging import Judging
from plimsoll.core.handover.outcomes import CUT, OPEN, OUTCOMES, Archive
from plimsoll.core.log import Log
from plimsoll.core.owners import Owner, Owners
from plimsoll.core.wire import OwnerEpoch, Token

TOLD_SECONDS = 0.2
"""A mediator is told of members one by one, but not more often than this; of the state of a session at once."""

SESSIONS_AT_MOST = 1024
MEMBERS_AT_MOST = 1024
MEMBERS_IN_ALL = 65_536
"""So many sessions are open at one head, with so many members each and together; more are refused."""

ELSEWHERE = "is served elsewhere by now"


class Host(Protocol):
    """What the coordinator needs of its head."""

    @property
    def now(self) -> float: ...
    @property
    def epoch(self) -> int: ...
    @property
    def owners(self) -> Owners: ...
    @property
    def log(self) -> Log: ...
    @property
    def name(self) -> str: ...
    def owner_edge(self, owner: Owner) -> str:
        """The edge that an owner entry names, as long as its link is up; else an empty string."""

    def to_edge(self, head: str, edge: str, record: object) -> None:
        """Say something in the stream of an edge, here or under another head."""

    def revoke(self, edge: str, record: r.Revoke) -> None:
        """On the control socket; it may be lost."""

    def has_edge(self, edge: str) -> bool: ...
    def reaches(self, head: str) -> bool: ...
    def is_guest(self, subscriber: str) -> bool:
        """Whether a session of another head brings this subscriber here."""

    def told(self, outcome: r.Outcome) -> None:
        """Tell the mediators."""


@dataclass(slots=True)
class Member:
    """`tail`: detached, but the other cluster may still come back with it."""

    state: str
    owner: Owner
    tail: bool = False
    why: str = ""

    @property
    def epoch(self) -> OwnerEpoch:
        return self.owner.epoch


@dataclass(slots=True)
class Session:
    """One hand-over. `decides_at`: until then there may be a cut; `drains_until`: after one."""

    id: str
    plan: r.HandoverPlan
    members: dict[str, Member]
    decides_at: float
    state: str = "preparing"
    drains_until: float = float("inf")
    endpoint: str = ""
    public_key: str = ""
    reason: str = ""
    told_at: float = float("-inf")
    told_state: str = ""
    dirty: bool = True
    revoke_at: float = float("inf")
    counts: Counter[str] = field(default_factory=Counter)
    freed: list[str] = field(default_factory=list)
    tails: int = 0
    """How many members are in each state, and have a tail: looked at in every round."""

    def __post_init__(self) -> None:
        self.counts.update(member.state for member in self.members.values())

    @property
    def is_open(self) -> bool:
        """Whether some member can still be undone."""
        return any(self.counts[state] for state in OPEN)

    @property
    def is_settled(self) -> bool:
        return not self.is_open and not self.counts[CUT]

    @property
    def over(self) -> bool:
        return self.state in ("done", "aborted") and not self.tails

    def put(self, x: str, state: str, why: str) -> None:
        member = self.members[x]
        self.counts[member.state] -= 1
        self.counts[state] += 1
        member.state, member.why = state, why

    def put_tail(self, x: str, tail: bool) -> None:
        self.tails += tail - self.members[x].tail
        self.members[x].tail = tail

    def of(self, *states: str) -> list[str]:
        return [x for x, member in self.members.items() if member.state in states]

    def items(self, members: Iterable[str]) -> list[r.MemberItem]:
        return [r.MemberItem(x, self.members[x].epoch) for x in members]


class Coordinator:
    """All sessions that this head decides, by id."""

    def __init__(self, host: Host, revoke_seconds: float) -> None:
        self.host, self.revoke_seconds = host, revoke_seconds
        self.sessions: dict[str, Session] = {}
        self.archive = Archive()
        self.outcomes: Counter[str] = Counter()
        self._of: dict[str, Session] = {}
        self.judging = Judging(host, self._told_more)
        self._untold: dict[str, None] = {}
        self._tell_at = float("inf")

    # -- commands

    def prepare(self, session_id: str, plan: r.HandoverPlan) -> r.Outcome:
        """Begin a session, or say how it stands."""
        if (known := self.outcome(session_id)).state != "unknown":
            return known
        if (why := self._refusal(session_id, plan)) != "":
            return self._says(session_id, "failed", why)
        members = {x: self._member(x, plan) for x in dict.fromkeys(plan.members)}
        session = Session(session_id, plan, members, self.host.now + plan.prepare_seconds)
        self.sessions[session_id] = session
        self.outcomes.update(session.counts["stayed"] * ["stayed"])
        going = session.of("preparing")
        for x in going:
            self._of[x] = session
        if going:
            prepare = r.Prepare(session_id, going, plan.prepare_seconds, plan.replay)
            self.host.to_edge(plan.target_head, plan.target, prepare)
        self._settle(session, members)
        return self.outcome(session_id)

    def _refusal(self, session_id: str, plan: r.HandoverPlan) -> str:
        host, here = self.host, plan.target_head == self.host.name
        if self.archive.has_forgotten(session_id):
            return "forgotten: its number is older than what this head remembers; begin a new one"
        if len(plan.members) > MEMBERS_AT_MOST:
            return (
                f"large: {len(plan.members)} members, of at most {MEMBERS_AT_MOST} in one session; move them in parts"
            )
        if not all(isfinite(s) and s > 0 for s in (plan.prepare_seconds, plan.drain_seconds)):
            return "seconds: prepare_seconds and drain_seconds are positive numbers"
        if len(self.sessions) >= SESSIONS_AT_MOST:
            return f"full: {SESSIONS_AT_MOST} sessions are under way here"
        if sum(len(session.members) for session in self.sessions.values()) + len(plan.members) > MEMBERS_IN_ALL:
            return f"full: sessions with {MEMBERS_IN_ALL} members are under way here"
        if plan.replay and not here:
            return "replay: only within a cluster; another head has another log"
        if not host.has_edge(plan.source):
            return f"source: {plan.source} is not an edge of {host.name}, or is down"
        if not (host.has_edge(plan.target) if here else host.reaches(plan.target_head)):
            return f"target: {plan.target} of {plan.target_head} cannot be reached from {host.name}"
        return "same: source and target are one edge" if plan.source == plan.target else ""

    def _member(self, x: str, plan: r.HandoverPlan) -> Member:
        owner = self.host.owners.entries.get(x)
        if owner is None or self.host.owner_edge(owner) != plan.source:
            return Member("stayed", owner or Owner("", (0, 0), (0, 0)), why="is not served by the source")
        if self.is_busy(x):
            return Member("stayed", owner, why="is in another session")
        return Member("preparing", owner)

    def cut(self, session_id: str) -> r.Outcome:
        """Cut over all that are attached; the others stay."""
        session = self.sessions.get(session_id)
        if session is not None and session.state == "ready":
            self.refuse(session, session.of("preparing"), why="was not attached at the target in time")
            going = session.of("attached")
            if session.plan.replay:
                self._revoke(session, going)
            elif going:
                session.state = "cutting"
                self._put(session, going, "cutting")
                self._to_target(session, r.Install(session_id, going))
        return self.outcome(session_id)

    def abort(self, session_id: str, why: str = "aborted by the mediator") -> r.Outcome:
        """Undo what can be undone. Of a session that is not known a tombstone stays: its PREPARE may still come."""
        session = self.sessions.get(session_id)
        if session is not None:
            self.refuse(session, session.of(*OPEN), why=why)
        elif self.outcome(session_id).state == "unknown":
            self.archive.add(session_id, self._says(session_id, "aborted", why))
        return self.outcome(session_id)

    def outcome(self, session_id: str) -> r.Outcome:
        """How a session stands."""
        session, audit = self.sessions.get(session_id), self.judging.audit(session_id)
        if session is None:
            known = self.archive.get(session_id) or self._says(session_id, "unknown", "")
            return known if audit is None else replace(known, audit=audit)
        members = [(x, member.state) for x, member in session.members.items()]
        return r.Outcome(session_id, 0, self.host.epoch, session.state, members, session.reason, audit)  # type: ignore[arg-type]

    def moved(self, session_id: str) -> list[str]:
        """Who has moved in a session, as far as it is known."""
        return [x for x, state in self.outcome(session_id).members if state == "moved"]

    def _says(self, session_id: str, state: str, reason: str) -> r.Outcome:
        return r.Outcome(session_id, 0, self.host.epoch, state, [], reason)  # type: ignore[arg-type]

    # -- from the target

    def on_slot(self, slot: r.Slot) -> None:
        session = self.sessions.get(slot.session)
        if session is None:
            return
        session.endpoint, session.public_key = slot.endpoint, slot.public_key
        going = [x for x in slot.members if x in session.members and session.members[x].state == "preparing"]
        if session.plan.replay:
            self._attached(session, going)
        elif going:
            plan = session.plan
            move = r.Move(session.id, session.items(going), plan.target, slot.endpoint, slot.public_key)
            self.host.to_edge(self.host.name, plan.source, move)

    def on_attached(self, attached: r.Attached) -> None:
        if (session := self.sessions.get(attached.session)) is not None:
            self._attached(
                session,
                [x for x in attached.members if x in session.members and session.members[x].state == "preparing"],
            )

    def _attached(self, session: Session, members: list[str]) -> None:
        if members:
            self._put(session, members, "attached")
            if session.state == "preparing":
                session.state = "ready"

    def on_nak(self, nak: r.Nak) -> None:
        """Before their cut these are undone. Behind it they have arrived, but at another edge than the target."""
        if (session := self.sessions.get(nak.session)) is not None:
            members = [x for x in nak.members if x in session.members]
            self.refuse(session, members, why=nak.reason)
            if self._across(session):
                self._arrived(session, members, "returned")

    def on_done(self, done: r.Done) -> None:
        if (session := self.sessions.get(done.session)) is not None:
            self._arrived(session, [x for x in done.members if x in session.members], "moved")

    def _arrived(self, session: Session, members: list[str], outcome: str) -> None:
        """Those of these that are cut have left the source for good."""
        for x in members:
            member = session.members[x]
            if not (member.state == CUT or member.tail):
                continue
            if self._across(session):
                # handover.md, Across clusters: A stays in the cover until H1's RELEASE, sent at DONE.
                incarnation, n = member.epoch
                self.host.to_edge(self.host.name, session.plan.source, r.Release(x, (incarnation, n + 1)))
                if self._is_owner(member, x):
                    self.host.owners.forget(x)
            self._finish(session, x, outcome)

    # -- the cut

    def cut_members(self, session_id: str, items: list[r.MemberItem], key: str, token: Token) -> list[str]:
        """The local cut, one compare and swap for each: returns those that are the target's from here on."""
        session = self.sessions.get(session_id)
        if session is None:
            return []
        good = [item.subscriber for item in items if self._may_cut(session, item)]
        for x in good:
            incarnation, n = session.members[x].epoch
            self.host.owners.swap(x, key, (incarnation, n + 1), (token[1], token[2]))
        if good:
            self._is_cut(session, good, token, across=False)
        self._refuse_uncut(session, [item.subscriber for item in items])
        return good

    def _refuse_uncut(self, session: Session, asked: Iterable[str]) -> None:
        """The cut has been made without these: they will not get another."""
        left = [x for x in asked if x in session.members and session.members[x].state == "cutting"]
        self.refuse(session, left, why=ELSEWHERE)

    def _may_cut(self, session: Session, item: r.MemberItem) -> bool:
        member = session.members.get(item.subscriber)
        if member is None or member.state != "cutting" or not self._is_owner(member, item.subscriber):
            return False
        return item.epoch == (member.epoch[0], member.epoch[1] + 1)

    def on_marker(self, marker: r.Marker) -> None:
        """The cut across clusters: everything behind this in our log goes the new way."""
        session = self.sessions.get(marker.session)
        if session is None or not self._across(session):
            return
        members = session.members
        good = [
            x for x in marker.members
            if x in members and members[x].state == "cutting" and self._is_owner(members[x], x)
        ]  # fmt: skip
        if good:
            self._is_cut(session, good, marker.token, across=True)
        self._refuse_uncut(session, marker.members)

    def _is_owner(self, member: Member, x: str) -> bool:
        entry = self.host.owners.entries.get(x)
        return entry is not None and (entry.key, entry.epoch) == (member.owner.key, member.owner.epoch)

    def _is_cut(self, session: Session, members: list[str], token: Token, *, across: bool) -> None:
        self._decided(session, members)
        cut = r.Cut(session.id, session.items(members), token, across)
        self.host.to_edge(self.host.name, session.plan.source, cut)

    def _decided(self, session: Session, members: list[str]) -> None:
        session.state = CUT
        session.drains_until = min(session.drains_until, self.host.now + session.plan.drain_seconds)
        self._put(session, members, CUT)

    def _revoke(self, session: Session, members: list[str]) -> None:
        """handover.md, Replay: the cut is the decision; the owner changes when the subscriber resumes."""
        good = [x for x in members if self._is_owner(session.members[x], x)]
        if good:
            self._decided(session, good)
            self._say_revoke(session)
        self.refuse(session, members, why=ELSEWHERE)

    def _say_revoke(self, session: Session) -> None:
        """On a socket that may lose it, so it is repeated until the subscriber has resumed."""
        session.revoke_at, plan = self.host.now + self.revoke_seconds, session.plan
        left = session.items(session.of(CUT))
        said = r.Revoke(session.id, self.host.epoch, left, plan.target, session.endpoint, session.public_key)
        self.host.revoke(plan.source, said)

    # -- ends

    def refuse(self, session: Session, members: list[str], outcome: str = "stayed", why: str = "") -> None:
        """Undo those of these that are not cut yet."""
        open_ones = [x for x in members if session.members[x].state in OPEN]
        if not open_ones:
            return
        self._put(session, open_ones, outcome, why)
        abort = r.Abort(session.id, session.items(open_ones))
        self.host.to_edge(self.host.name, session.plan.source, abort)
        self._to_target(session, abort)
        self._settle(session, open_ones)

    def _finish(self, session: Session, x: str, outcome: str) -> None:
        session.put_tail(x, False)
        if session.members[x].state == CUT:
            self._put(session, [x], outcome)
        if session.plan.replay:
            session.freed.append(x)
        self._settle(session, [x])

    def _free(self, session: Session) -> None:
        """Tell the target whose slots are free again: at the end of the round, all of it in one record."""
        if session.freed:
            self._to_target(session, r.Abort(session.id, session.items(session.freed)))
            session.freed = []

    def _put(self, session: Session, members: Iterable[str], state: str, why: str = "") -> None:
        session.dirty = True
        for x in members:
            session.put(x, state, why)
            if state in OUTCOMES:
                self.outcomes[state] += 1
        if why and not session.reason:
            session.reason = why

    def _settle(self, session: Session, changed: Iterable[str]) -> None:
        """A session is over when every member has its outcome; `changed`: who may have theirs now."""
        if session.state not in ("done", "aborted") and session.is_settled:
            session.state = "done" if session.state == CUT else "aborted"
            session.dirty = True
            if not session.reason and session.state == "aborted":
                session.reason = next((m.why for m in session.members.values() if m.why), "nobody could be moved")
        for x in changed:
            member = session.members[x]
            if member.state in OUTCOMES and not member.tail and self._of.get(x) is session:
                del self._of[x]
        if session.over and session.id in self.sessions:
            self._free(session)
            self._tell(session)
            self.archive.add(session.id, self.outcome(session.id))
            del self.sessions[session.id]

    # -- what happens meanwhile

    def is_busy(self, subscriber: str) -> bool:
        """One session per subscriber, until it is done."""
        return subscriber in self._of or self.host.is_guest(subscriber)

    def resumed(self, subscriber: str, named: str | None, edge: str) -> None:
        """A subscriber has resumed at this head: that voids an open session of it, and closes a cut one."""
        session = self._of.get(subscriber)
        if session is None:
            return
        member, mine = session.members[subscriber], session.id == named
        if member.state in OPEN:
            self.refuse(session, [subscriber], "returned", "has resumed meanwhile")
        elif member.state == CUT or member.tail:
            if self._across(session):  # it reads this head's stream again: the target forgets
                self._to_target(session, r.Abort(session.id, session.items([subscriber])))
            self._finish(session, subscriber, "moved" if mine and edge == session.plan.target else "returned")

    def lapsed(self, subscriber: str, epoch: OwnerEpoch) -> None:
        """The lease of a subscriber has ended here: nobody will come back for it."""
        session = self._of.get(subscriber)
        if session is not None and session.members[subscriber].epoch == epoch:
            self._end_tails(session, [subscriber])
            self.refuse(session, [subscriber], why="is gone from the source")

    def _end_tails(self, session: Session, members: Iterable[str]) -> None:
        ended = [x for x in members if session.members[x].tail]
        for x in ended:
            session.put_tail(x, False)
        self._settle(session, ended)

    def expire(self) -> None:
        """A tail is what the source's owner entry still stands for: without that there is nothing to come back to."""
        for session in [session for session in self.sessions.values() if session.tails]:
            tails = [(x, member) for x, member in session.members.items() if member.tail]
            self._end_tails(session, [x for x, member in tails if not self._is_owner(member, x)])

    def edge_lost(self, edge: str) -> None:
        for session in [s for s in self.sessions.values() if edge in (s.plan.source, s.plan.target)]:
            self.refuse(session, session.of(*OPEN), why=f"{edge} was lost")

    def head_lost(self, is_behind: Iterable[str]) -> None:
        """These heads cannot be reached any more."""
        lost = set(is_behind)
        for session in [s for s in self.sessions.values() if s.plan.target_head in lost]:
            self.refuse(session, session.of(*OPEN), why=f"{session.plan.target_head} was lost")

    def tick(self) -> None:
        """Deadlines, revocations that are due, and what the mediators have not been told."""
        now = self.host.now
        for session in list(self.sessions.values()):
            self._free(session)
            if now >= session.decides_at and session.is_open:
                self.refuse(session, session.of(*OPEN), why="its time to prepare is over")
            if now >= session.drains_until:
                self._part(session)
            if now >= session.revoke_at and session.counts[CUT]:
                self._say_revoke(session)
            if session.dirty and (session.state != session.told_state or now >= session.told_at + TOLD_SECONDS):
                self._tell(session)
        self.judging.tick()
        if now >= self._tell_at:
            self._tell_sums()

    def _part(self, session: Session) -> None:
        """handover.md, Time: `drain_seconds` after the cut those that are not done are detached."""
        late = session.of(CUT)
        session.drains_until = float("inf")
        if not late:
            return
        self._put(session, late, "detached", "had not had everything in time")
        for x in late:
            session.put_tail(x, self._across(session) and self._is_owner(session.members[x], x))
        part = r.Part(session.id, session.items(late))
        self._to_target(session, part)
        self.host.to_edge(self.host.name, session.plan.source, part)
        self._settle(session, late)

    def _told_more(self, session_id: str) -> None:
        """Members have counted: mediators are told of the sums, but not more often than of anything else."""
        if not self._untold:
            self._tell_at = self.host.now + TOLD_SECONDS
        self._untold[session_id] = None

    def _tell_sums(self) -> None:
        untold, self._untold, self._tell_at = self._untold, {}, float("inf")
        for session_id in untold:
            self.host.told(self.outcome(session_id))

    def _tell(self, session: Session) -> None:
        session.dirty, session.told_at, session.told_state = False, self.host.now, session.state
        self.host.told(self.outcome(session.id))

    def wake_at(self) -> float:
        at = min(self.judging.wake_at(), self._tell_at)
        for s in self.sessions.values():
            at = min(at, s.drains_until, s.revoke_at, s.told_at + TOLD_SECONDS if s.dirty else at)
            if s.is_open:
                at = min(at, s.decides_at)
        return at

    def _across(self, session: Session) -> bool:
        return session.plan.target_head != self.host.name

    def _to_target(self, session: Session, record: object) -> None:
        self.host.to_edge(session.plan.target_head, session.plan.target, record)
