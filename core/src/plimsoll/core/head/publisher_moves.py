"""Publishers that leave this head for another one: this head alone decides each of them, and the first decision holds.

A publisher is asked to open at the other head, on standby. It says PUBLISHER_GO behind its last publication here; then
it is cut: LEFT for the publisher, MARKER for the other head, behind that publication on the one path there. Before the
cut it stays if anything happens: its time is over, its link or the way to the other head is lost. After it, it can only
arrive, or return. docs/handover.md, 13.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from msgspec.structs import replace

from plimsoll.core.head.handover.outcomes import parse_session_id
from plimsoll.core.head.open_publisher import OpenPublisher
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_audit import PublisherAudit
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.router import TreeRouter
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Link

ASKED, CUT = "asked", "cut"
OPEN: Final = (ASKED, CUT)
MOVED, STAYED, AWAY, GONE, RETURNED, UNKNOWN = "moved", "stayed", "away", "gone", "returned", "unknown"
"""Outcomes, in the words of hand-overs."""
ARRIVE_SECONDS: Final = 30.0
"""How long a publisher may take from its cut to the other head; then its outcome is `unknown`."""
REMEMBERED_MOVES = 256
PUBLISHERS_AT_MOST = 10_000
"""Of one command."""


@dataclass(slots=True)
class PublisherMember:
    """`may_go`: it has sent all that it will send here, and waits for the answers to it."""

    publisher: OpenPublisher | None
    state: str
    why: str = ""
    may_go: bool = False

    @property
    def outcome(self) -> str:
        return f"{self.state}: {self.why}" if self.why else self.state


@dataclass(slots=True)
class PublisherSession:
    """One command, and how each of its publishers stands. Until `decides_at` they may be cut, until `arrives_at` those
    that are cut may arrive."""

    id: str
    plan: msg.PublisherPlan
    publishers: dict[str, PublisherMember]
    decides_at: float
    arrives_at: float
    is_changed: bool = True
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.counts.update(each.state for each in self.publishers.values())

    def put(self, name: str, state: str, why: str = "") -> None:
        each = self.publishers[name]
        self.counts[each.state] -= 1
        self.counts[state] += 1
        each.state, each.why, self.is_changed = state, why, True

    def of(self, *states: str) -> list[str]:
        return [name for name, each in self.publishers.items() if each.state in states]

    @property
    def is_over(self) -> bool:
        return not any(self.counts[state] for state in OPEN)


class MoveContext(Protocol):
    """The parts of a head that take part in moves of publishers."""

    now: float
    name: str
    epoch: int
    publishers: PublisherTable
    publisher_audit: PublisherAudit
    router: TreeRouter
    counters: Counter[str]

    def say(self, link: Link, record: msg.ToClient) -> None: ...


class PublisherMoves(HeadPart):
    """The moves of publishers that this head decides. `broadcast`: send every mediator how one stands."""

    def __init__(
        self, host: MoveContext, broadcast: Callable[[msg.PublisherOutcome], None], time_factor: float
    ) -> None:
        self.host, self.broadcast, self.time_factor = host, broadcast, time_factor
        self.sessions: dict[str, PublisherSession] = {}
        self.outcomes: Counter[str] = Counter()
        self._ended: OrderedDict[str, msg.PublisherOutcome] = OrderedDict()
        self._forgotten = (0, 0)

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_clients.add(msg.PublisherGo, self.on_go)
        handlers.of_heads.add(msg.PublisherArrived, lambda _head, _edge, arrived: self.on_arrived(arrived))

    # -- commands

    def move(self, session_id: str, plan: msg.PublisherPlan) -> msg.PublisherOutcome:
        """Begin a move. Repeated, it only returns how the move stands: the answer to the first may be lost."""
        if (known := self.outcome(session_id)).state != "unknown":
            return known
        if why := self._refusal(session_id, plan):
            return self._failed(session_id, why)
        now = self.host.now
        publishers = {name: self._asked(session_id, name, plan) for name in dict.fromkeys(plan.publishers)}
        decides_at = now + plan.seconds
        arrives_at = decides_at + ARRIVE_SECONDS * self.time_factor
        self.sessions[session_id] = session = PublisherSession(session_id, plan, publishers, decides_at, arrives_at)
        if asked := [each.publisher for each in publishers.values() if each.publisher is not None]:
            self.host.publisher_audit.begin(session_id, plan.head, asked)
        return self._outcome_of(session)

    def _refusal(self, session_id: str, plan: msg.PublisherPlan) -> str:
        if parse_session_id(session_id) <= self._forgotten:
            return "session: this move is over, and its outcome is forgotten"
        if plan.head == self.host.name:
            return f"head: the publishers are at {plan.head} already"
        if len(plan.publishers) > PUBLISHERS_AT_MOST:
            return f"size: a move has at most {PUBLISHERS_AT_MOST} publishers"
        if not self.host.router.reaches(plan.head):
            return f"head: there is no way to {plan.head}; its cluster is not in the tree, or a link is down"
        return ""

    def _asked(self, session_id: str, name: str, plan: msg.PublisherPlan) -> PublisherMember:
        publisher = self.host.publishers.by_name.get(name)
        if publisher is None or publisher.left:
            return PublisherMember(None, GONE, "is not at this head")
        if publisher.link is None:
            return PublisherMember(None, AWAY, "has no link at present")
        if publisher.moving:
            return PublisherMember(None, STAYED, f"is in move {publisher.moving}")
        publisher.moving = session_id
        move = msg.PublisherMove(publisher.handle, session_id, plan.head, plan.endpoint, plan.public_key)
        self.host.say(publisher.link, move)
        return PublisherMember(publisher, ASKED)

    def abort(self, session_id: str, why: str = "aborted by the mediator") -> msg.PublisherOutcome:
        """Let those stay that are not cut."""
        if (session := self.sessions.get(session_id)) is not None:
            for name in session.of(ASKED):
                self._stay(session, name, why)
        elif self.outcome(session_id).state == "unknown":
            self._remember(self._failed(session_id, why))  # its command may still come
        return self.outcome(session_id)

    def outcome(self, session_id: str) -> msg.PublisherOutcome:
        if (session := self.sessions.get(session_id)) is not None:
            return self._outcome_of(session)
        known = self._ended.get(session_id) or msg.PublisherOutcome(session_id, 0, self.host.epoch, "unknown", [])
        audit = self.host.publisher_audit.audit(session_id)
        return known if audit is None else replace(known, audit=audit)

    def _outcome_of(self, session: PublisherSession) -> msg.PublisherOutcome:
        state: Literal["done", "moving"] = "done" if session.is_over else "moving"
        found = [
            (name, f"{each.state}: {each.why}" if each.why else each.state) for name, each in session.publishers.items()
        ]
        return msg.PublisherOutcome(session.id, 0, self.host.epoch, state, found)

    def _failed(self, session_id: str, why: str) -> msg.PublisherOutcome:
        return msg.PublisherOutcome(session_id, 0, self.host.epoch, "failed", [], why)

    # -- from publishers

    def on_go(self, link: Link, go: msg.PublisherGo) -> None:
        """It has sent its last publication here: cut it, unless it is to stay."""
        publisher = self.host.publishers.get(link, go.handle)
        session = self.sessions.get(go.session)
        if publisher is None or session is None or publisher.moving != go.session:
            return  # STAY, or the answer to its OPEN, is on its way
        session.publishers[publisher.name].may_go = True
        self.host.publishers.answers.touch(publisher.name)
        self._cut(session, publisher)

    def _cut(self, session: PublisherSession, publisher: OpenPublisher) -> None:
        """Let it leave, once each of its publications has its answer: from then on it asks the other head."""
        host, link = self.host, publisher.link
        if publisher.pending or link is None:
            return
        marker = msg.PublisherMarker(
            session.id, publisher.name, publisher.incarnation, publisher.last_seq, publisher.identity
        )
        if not host.router.send(session.plan.head, marker):
            self._stay(session, publisher.name, f"there is no way to {session.plan.head}")
            return
        if publisher.last_seq > publisher.answered:
            host.say(link, msg.Accepted(publisher.handle, publisher.last_seq))
        host.say(link, msg.PublisherLeft(publisher.handle, session.id, publisher.last_seq))
        host.publishers.leave(publisher)
        session.put(publisher.name, CUT)

    def opened(self, publisher: OpenPublisher) -> None:
        """It has opened here: whatever was under way, it is at this head."""
        for session in self.sessions.values():
            each = session.publishers.get(publisher.name)
            if each is not None and each.state in OPEN:
                self._decide(session, publisher.name, RETURNED)

    def link_lost(self, publishers: Iterable[OpenPublisher]) -> None:
        """Their link is over. GO, if it was sent, is lost."""
        for publisher in publishers:
            if (session := self.sessions.get(publisher.moving)) is not None:
                self._decide(session, publisher.name, STAYED, "its link was lost")

    @property
    def under_way(self) -> int:
        """How many publishers are not decided, or not at the other head."""
        return sum(session.counts[state] for session in self.sessions.values() for state in OPEN)

    # -- the end of one

    def _stay(self, session: PublisherSession, name: str, why: str) -> None:
        publisher = session.publishers[name].publisher
        if publisher is not None and publisher.link is not None:
            self.host.say(publisher.link, msg.PublisherStay(publisher.handle, session.id))
        self._decide(session, name, STAYED, why)

    def _decide(self, session: PublisherSession, name: str, state: str, why: str = "") -> None:
        each = session.publishers[name]
        if each.publisher is not None and each.publisher.moving == session.id:
            each.publisher.moving = ""
        each.publisher = None
        session.put(name, state, why)

    # -- what happens meanwhile

    def on_arrived(self, arrived: msg.PublisherArrived) -> None:
        session = self.sessions.get(arrived.session)
        each = session.publishers.get(arrived.publisher) if session is not None else None
        if session is not None and each is not None and each.state == CUT:
            self._decide(session, arrived.publisher, MOVED)

    def targets(self) -> list[str]:
        """The heads that publishers here are to move to."""
        return sorted({session.plan.head for session in self.sessions.values()})

    def heads_lost(self, heads: Iterable[str]) -> None:
        """These heads can no longer be reached."""
        lost = set(heads)
        for session in self.sessions.values():
            if session.plan.head in lost:
                for name in session.of(ASKED):
                    self._stay(session, name, f"{session.plan.head} was lost")

    def tick(self) -> None:
        """Cut those that may go, act on deadlines, and report changes to mediators."""
        for session in list(self.sessions.values()):
            for name in session.of(ASKED):
                each = session.publishers[name]
                if each.may_go and each.publisher is not None:
                    self._cut(session, each.publisher)
            self._deadlines(session)
            if session.is_changed:
                session.is_changed = False
                self.broadcast(self._outcome_of(session))
            if session.is_over:
                self._remember(self._outcome_of(session))
        for counted in self.host.publisher_audit.take_changed():
            self.broadcast(self.outcome(counted))

    def _deadlines(self, session: PublisherSession) -> None:
        if self.host.now >= session.decides_at:
            for name in session.of(ASKED):
                self._stay(session, name, "had not opened there in time")
        if self.host.now >= session.arrives_at:
            for name in session.of(CUT):
                self._decide(session, name, UNKNOWN, f"has not opened at {session.plan.head} in time")

    def _remember(self, outcome: msg.PublisherOutcome) -> None:
        over = self.sessions.pop(outcome.session, None)
        self.host.publisher_audit.end(outcome, over.of(MOVED, UNKNOWN) if over is not None else ())
        for _, state in outcome.publishers:
            self.outcomes[state.partition(":")[0]] += 1
        self._ended[outcome.session] = outcome
        while len(self._ended) > REMEMBERED_MOVES:
            oldest, _ = self._ended.popitem(last=False)
            self._forgotten = max(self._forgotten, parse_session_id(oldest))

    def status(self) -> dict[str, Any]:
        return {
            "publisher_moves": len(self.sessions),
            "publisher_outcomes": dict(sorted(self.outcomes.items())),
        }

    def wake_at(self) -> float:
        at = float("inf")
        for session in self.sessions.values():
            at = min(at, session.decides_at if session.counts[ASKED] else session.arrives_at)
        return at
