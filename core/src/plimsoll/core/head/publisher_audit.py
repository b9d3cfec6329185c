"""The audit of publishers that move from this head, and of those that come: what was due of them to subscribers.

The head that the publishers leave judges. It says at the beginning whose publications count, behind all that was
published before, along every link that their publications take; edges ask some of their subscribers to count
(docs/handover.md, 13). Once the move is over, its log says what was due of these publishers to each of those lists
before the cut, and the log of the other head what was due behind the marker. Both numbers go to the edge of the
subscriber, behind all publications that they are about.

- Subscribers in the whole tree are asked, few at each edge; those that do not answer are known by number.
- What is due is read from the logs in slices with pauses between them, by passes that end after `READ_SECONDS`.
- Nothing waits for an audit, and nothing is repeated.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol

from plimsoll.core.head.handover.delivery_audit import GATHER_SECONDS, WAITING_AT_MOST
from plimsoll.core.head.handover.log_pass import LogPasses
from plimsoll.core.head.handover.table import EdgeSender
from plimsoll.core.head.log import Log
from plimsoll.core.head.open_publisher import OpenPublisher
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_audit_cases import AuditedMove, PublisherCase, by_edge, keep_latest
from plimsoll.core.head.publisher_audit_starts import AuditStarts
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.router import TreeRouter
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER

REPORT_SECONDS: Final = 0.2
"""Least time between two reports of the counts of a move."""


class PublisherAuditContext(Protocol):
    """The parts of a head that take part in the audit of publishers."""

    now: float
    name: str
    epoch: int
    log: Log
    routes: RoutingTable
    outboxes: Outboxes
    router: TreeRouter


class PublisherAudit(HeadPart):
    """`moves`: those that this head judges. `arrivals`: where the log was when the first publisher of a move came."""

    def __init__(self, host: PublisherAuditContext, edges: EdgeSender) -> None:
        self.host, self.edges = host, edges
        self.moves: OrderedDict[str, AuditedMove] = OrderedDict()
        self.arrivals: OrderedDict[str, int] = OrderedDict()
        self._starts = AuditStarts(host)
        self._passes: LogPasses[PublisherCase] = LogPasses(host)
        self._changed: dict[str, None] = {}
        self._report_at = NEVER

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.PublisherAuditStart, self._starts.on_start)
        handlers.of_brokers.add(msg.PublisherAuditRequest, lambda _, request: self.on_request(request))
        handlers.of_heads.add(msg.PublisherAuditRequest, lambda _, __, request: self.receive(request))

    # -- the beginning

    def begin(self, session: str, target: str, publishers: Iterable[OpenPublisher]) -> None:
        """Publishers are asked to move: what they publish from here on counts."""
        moving = list(publishers)[: msg.AUDITED_PUBLISHERS_AT_MOST]
        audited = [msg.AuditedPublisher(each.name, each.incarnation, each.last_seq) for each in moving]
        move = self.moves[session] = AuditedMove(session, target, audited, self.host.log.last)
        keep_latest(self.moves)
        self._starts.begin(move, moving)

    # -- who counts

    def on_request(self, request: msg.PublisherAuditRequest) -> None:
        """An edge here has asked subscribers: the judge is to know of those that count."""
        if request.judge == self.host.name:
            self.receive(request)
        else:
            self.host.router.send(request.judge, request)

    def receive(self, request: msg.PublisherAuditRequest) -> None:
        """Note who counts; as the other head of a move, say what was due to them here."""
        if request.judge != self.host.name:
            self._read_arrivals(request)
        elif (move := self.moves.get(request.session)) is not None and not move.is_read:
            move.asked += request.asked
            publishers = {(each.publisher, each.incarnation): each.last_seq for each in move.publishers}
            for check in request.checks:
                if sum(len(each.cases) for each in self.moves.values()) < WAITING_AT_MOST:
                    move.cases[check.subscriber] = self._case(request, check, move.low, publishers)

    def _case(
        self, request: msg.PublisherAuditRequest, check: msg.AuditRequestItem, low: int,
        publishers: dict[tuple[str, int], int],
    ) -> PublisherCase:  # fmt: skip
        return PublisherCase(
            request.session, check.subscriber, check.epoch, request.head, request.edge, low, self.host.log.last,
            {(head, epoch): offset for head, epoch, offset in check.marks}, check.subscriptions,
            check=check, publishers=dict(publishers), own=(self.host.name, self.host.epoch),
        )  # fmt: skip

    # -- the end of a move

    def end(self, outcome: msg.PublisherOutcome, may_be_there: Iterable[str]) -> None:
        """The move is over, and these publishers may be at the target; a little later its log is read."""
        if (move := self.moves.get(outcome.session)) is not None:
            there = set(may_be_there)
            move.moved = [each for each in move.publishers if each.publisher in there]
            move.reads_at = self.host.now + GATHER_SECONDS

    def begins(self, session: str) -> None:
        """The first publisher of a move comes to this head: what it publishes here is behind this position."""
        self.arrivals.setdefault(session, self.host.log.last)
        keep_latest(self.arrivals)

    def tick(self) -> None:
        now = self.host.now
        for move in self.moves.values():
            if now >= move.reads_at:
                move.reads_at = NEVER
                self._read(list(move.cases.values()), partial(self._judged, move))
        self._passes.tick()

    def _read(self, cases: list[PublisherCase], finish: Callable[[list[PublisherCase]], None]) -> None:
        """Read the log for these cases, up to where it is now."""
        for case in cases:
            case.high = self.host.log.last
        self._passes.read(cases, finish)

    def _judged(self, move: AuditedMove, cases: list[PublisherCase]) -> None:
        """Let the other head add what was due there, if publishers have come there, and the edges ask."""
        move.is_read, move.judged = True, frozenset(case.subscriber for case in cases)
        move.cases.clear()
        self._note_change(move.id)
        if not move.moved:
            self._tell(move.id, self.host.name, cases)
            return
        for (head, edge), some in by_edge(cases).items():
            checks = [case.check for case in some if case.check is not None]
            due = [case.item().due for case in some]
            told = msg.PublisherAuditRequest(move.id, self.host.name, head, edge, 0, checks, due, move.moved)
            self.host.router.send(move.target, told)

    def _read_arrivals(self, request: msg.PublisherAuditRequest) -> None:
        low = self.arrivals.get(request.session)
        if low is None or len(request.due) != len(request.checks) or len(self._passes) >= WAITING_AT_MOST:
            return  # this head has restarted, or has too much to read: those subscribers stay unheard
        publishers = {(each.publisher, each.incarnation): each.last_seq for each in request.publishers}
        cases = [self._case(request, check, low, publishers) for check in request.checks]
        for case, due in zip(cases, request.due, strict=True):
            case.elsewhere = due
        self._read(cases, partial(self._tell, request.session, request.judge))

    def _tell(self, session: str, judge: str, cases: list[PublisherCase]) -> None:
        for (head, edge), some in by_edge(cases).items():
            told = msg.ExpectedDeliveries(session, judge, [case.item() for case in some])
            self.edges.send_to_edge(head, edge, told)

    # -- counted

    def counted(self, summary: msg.AuditSummary) -> bool:
        """Note what subscribers have counted; False if the session is none of publishers."""
        if (move := self.moves.get(summary.session)) is None:
            return False
        counts = {item.subscriber: item for item in summary.members if item.subscriber in move.judged}
        if counts:
            move.counts |= counts
            self._note_change(move.id)
        return True

    def _note_change(self, session: str) -> None:
        if not self._changed:
            self._report_at = self.host.now + REPORT_SECONDS
        self._changed[session] = None

    def take_changed(self) -> list[str]:
        """The moves of which more is known than at the last report, once the next report is due."""
        if self.host.now < self._report_at:
            return []
        changed, self._changed, self._report_at = self._changed, {}, NEVER
        return list(changed)

    def audit(self, session: str) -> msg.AuditItem | None:
        """The sums over a move; None as long as nothing is known."""
        move = self.moves.get(session)
        return None if move is None else move.item()

    def wake_at(self) -> float:
        return min([self._passes.wake_at(), self._report_at, *(move.reads_at for move in self.moves.values())])
