"""The audit at the head that decides: what was due to moved members, from its log, against what they counted.

The log of this head has all that is due to a member on its way: before the cut the source is in the cover; across
clusters it stays there until the RELEASE that follows DONE; within a cluster the target is in it from the cut on.
So a member must have been given what the log has for it from where it began to count up to its DONE, and within a
cluster up to some time later, at any edge.

- The log is read in passes (`log_pass.py`); members of which it is not known what was due are not audited.
- Questions to members travel in the streams, behind all publications that they are about.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Protocol

from plimsoll.core.head.handover.log_pass import AuditCase, LogPasses
from plimsoll.core.head.handover.outcomes import REMEMBERED_SESSIONS
from plimsoll.core.head.log import Log
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER

GATHER_SECONDS = 0.5
"""How long moved members are gathered for one pass; within a cluster they are audited up to its end."""

WAITING_AT_MOST = 4096
DUE_AT_ONCE = 256
"""Members per EXPECTED_DELIVERIES."""


class DeliveryAuditContext(Protocol):
    """What the audit needs of a head."""

    now: float
    name: str
    epoch: int
    log: Log


class ExpectationSender(Protocol):
    def send_to_edge(self, head: str, edge: str, message: msg.ExpectedDeliveries) -> None: ...


class DeliveryAudit:
    """`changed` is called with a session when more of its members have been counted."""

    def __init__(self, host: DeliveryAuditContext, edges: ExpectationSender, changed: Callable[[str], None]) -> None:
        self.host, self.edges, self.changed = host, edges, changed
        self._waiting: list[AuditCase] = []
        self._passes: LogPasses[AuditCase] = LogPasses(host)
        self._gathered_at = NEVER
        self._counts: OrderedDict[str, dict[str, msg.AuditSummaryItem]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._passes)

    # -- due

    def done(self, head: str, done: msg.Done, moved: Iterable[str]) -> None:
        """Audit the members of a DONE that have counted: all that was due to them on their way is in the log by now."""
        log, there = self.host.log, set(moved)
        for check in done.checks:
            name, epoch, low = check.since
            is_ours = (name, epoch) == (self.host.name, self.host.epoch) and log.first - 1 <= low <= log.last
            if is_ours and done.edge and check.subscriber in there and len(self) < WAITING_AT_MOST:
                self._take(head, done, check)

    def _take(self, head: str, done: msg.Done, check: msg.AuditRequestItem) -> None:
        marks = {(name, epoch): offset for name, epoch, offset in check.marks}
        if not self:
            self._gathered_at = self.host.now + GATHER_SECONDS
        self._waiting.append(
            AuditCase(
                done.session, check.subscriber, check.epoch, head, done.edge, check.since[2], self.host.log.last, marks,
                check.subscriptions,
            )
        )  # fmt: skip

    def tick(self) -> None:
        if self._waiting and not self._passes and self.host.now >= self._gathered_at:
            cases, self._waiting = self._waiting, []
            for case in cases:
                if case.head == self.host.name:
                    case.high = self.host.log.last
            self._passes.read(cases, self._tell)
        self._passes.tick()

    def wake_at(self) -> float:
        return self._gathered_at if self._waiting and not self._passes else self._passes.wake_at()

    def _tell(self, cases: Iterable[AuditCase]) -> None:
        told: dict[tuple[str, str, str], list[msg.ExpectedItem]] = {}
        for case in cases:
            told.setdefault((case.session, case.head, case.edge), []).append(case.item())
        for (session, head, edge), items in told.items():
            for at in range(0, len(items), DUE_AT_ONCE):
                self.edges.send_to_edge(
                    head, edge, msg.ExpectedDeliveries(session, self.host.name, items[at : at + DUE_AT_ONCE])
                )

    # -- counted

    def counted(self, counts: msg.AuditSummary, moved: Iterable[str]) -> None:
        there = set(moved)
        items = {item.subscriber: item for item in counts.members if item.subscriber in there}
        if items:
            self._counts.setdefault(counts.session, {}).update(items)
            while len(self._counts) > REMEMBERED_SESSIONS:
                self._counts.popitem(last=False)
            self.changed(counts.session)

    def audit(self, session: str) -> msg.AuditItem | None:
        """The sums over a session's members; None as long as none has been counted."""
        if (counts := self._counts.get(session)) is None:
            return None
        sums = [0, 0, 0, 0]
        for item in counts.values():
            for i, value in enumerate((item.lost, item.duplicated, item.reordered, item.suppressed)):
                sums[i] += value
        return msg.AuditItem(len(counts), *sums)
