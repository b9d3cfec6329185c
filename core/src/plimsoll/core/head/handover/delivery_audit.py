"""The audit at the head that decides: what was due to moved members, from its log, against what they counted.

The log of this head has all that is due to a member on its way: before the cut the source is in the cover; across
clusters it stays there until the RELEASE that follows DONE; within a cluster the target is in it from the cut on.
So a member must have been given what the log has for it from where it began to count up to its DONE, and within a
cluster up to some time later, at any edge.

- The log is read in slices with pauses between them: publications do not wait for the audit.
- Entries that are evicted, gaps, and passes that take longer than `READ_SECONDS` are not audited.
- Questions to members travel in the streams, behind all publications that they are about.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from plimsoll.core import predicates
from plimsoll.core.head.handover.outcomes import REMEMBERED_SESSIONS
from plimsoll.core.head.log import Log
from plimsoll.core.matching import Index
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.origins import Origin
from plimsoll.core.protocol.wire import OwnerEpoch

GATHER_SECONDS = 0.5
"""How long moved members are gathered for one pass; within a cluster they are audited up to its end."""

PAUSE_SECONDS = 0.02
SLICE_ENTRIES = 256
SLICE_MATCHES = 4096
SLICE_SUBSCRIPTIONS = 128
READ_SECONDS = 3.0
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


@dataclass(slots=True)
class AuditCase:
    """A member that has moved. What is due to it lies behind position `low`, up to `high`; offsets above `marks`."""

    session: str
    subscriber: str
    epoch: OwnerEpoch
    head: str
    edge: str
    low: int
    high: int
    marks: dict[Origin, int]
    subscriptions: list[str]
    due: dict[Origin, list[int]] = field(default_factory=dict)
    is_known: bool = True

    def expect(self, pub: msg.PubOpen) -> None:
        """Count a publication that the member must have been given."""
        origin = (pub.head, pub.epoch)
        if pub.offset <= self.marks.get(origin, 0):
            return
        through = self.due.setdefault(origin, [0, 0])
        through[0] = pub.offset
        through[1] += 1

    def item(self) -> msg.ExpectedItem:
        due = [(*origin, through, count) for origin, (through, count) in sorted(self.due.items())]
        return msg.ExpectedItem(self.subscriber, self.epoch, due)


class LogPass:
    """One pass through the log for some cases."""

    def __init__(self, cases: list[AuditCase], until: float) -> None:
        self.cases, self.until = cases, until
        self.at = min(case.low for case in cases)
        self.end = max(case.high for case in cases)
        self._index: Index = Index(compiled=False)
        self._of: list[AuditCase] = []
        self._unfiled = [(case, text) for case in reversed(cases) for text in reversed(case.subscriptions)]

    def slice(self, log: Log) -> bool:
        """Read one slice; True if it was the last."""
        if self._unfiled:
            self._file()
            return False
        if self.at + 1 < log.first:
            self._unknown(self.at + 1, log.first - 1)
            self.at = log.first - 1
        matches, stop = 0, min(self.end, self.at + SLICE_ENTRIES)
        for position, entry in log.after(self.at):
            if position > stop or matches > SLICE_MATCHES:
                break
            self.at = position
            if entry.is_gap:
                self._unknown(position, position)
            else:
                matches += self._match(position, entry.record)
        return self.at >= self.end

    def _file(self) -> None:
        for _ in range(min(SLICE_SUBSCRIPTIONS, len(self._unfiled))):
            case, text = self._unfiled.pop()
            try:
                self._index.add(len(self._of), predicates.parse(text))
                self._of.append(case)
            except ValueError:
                case.is_known = False  # of a later language: this head cannot say what is due

    def _match(self, position: int, record: bytes) -> int:
        pub = msg.to_edge.decode(record)
        if not isinstance(pub, msg.PubOpen):
            raise TypeError(f"position {position} of the log is a {type(pub).__name__}, and no gap")
        numbers = self._index.match(pub.body.attributes)
        for case in {id(self._of[number]): self._of[number] for number in numbers}.values():
            if case.low < position <= case.high:
                case.expect(pub)
        return len(numbers)

    def _unknown(self, low: int, high: int) -> None:
        for case in self.cases:
            case.is_known = case.is_known and (case.high < low or high <= case.low)


class DeliveryAudit:
    """`changed` is called with a session when more of its members have been counted."""

    def __init__(self, host: DeliveryAuditContext, edges: ExpectationSender, changed: Callable[[str], None]) -> None:
        self.host, self.edges, self.changed = host, edges, changed
        self._waiting: list[AuditCase] = []
        self._reading: LogPass | None = None
        self._read_at = float("inf")
        self._counts: OrderedDict[str, dict[str, msg.AuditSummaryItem]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting) + (len(self._reading.cases) if self._reading is not None else 0)

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
            self._read_at = self.host.now + GATHER_SECONDS
        self._waiting.append(
            AuditCase(
                done.session, check.subscriber, check.epoch, head, done.edge, check.since[2], self.host.log.last, marks,
                check.subscriptions,
            )
        )  # fmt: skip

    def tick(self) -> None:
        now = self.host.now
        if now < self._read_at:
            return
        if self._reading is None:
            cases, self._waiting = self._waiting, []
            for case in cases:
                if case.head == self.host.name:
                    case.high = self.host.log.last
            self._reading = LogPass(cases, now + READ_SECONDS)
        if self._reading.slice(self.host.log):
            self._tell(self._reading.cases)
            self._reading = None
        elif now >= self._reading.until:
            self._reading = None
        self._read_at = now + PAUSE_SECONDS if self._reading is not None or self._waiting else float("inf")

    def wake_at(self) -> float:
        return self._read_at

    def _tell(self, cases: Iterable[AuditCase]) -> None:
        told: dict[tuple[str, str, str], list[msg.ExpectedItem]] = {}
        for case in cases:
            if case.is_known:
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
