"""What was due to members by the log of this head: read in slices with pauses between them, one pass after the other.

Publications do not wait for an audit. Entries that are evicted, gaps, and passes that take longer than `READ_SECONDS`
leave unknown what was due.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from plimsoll.core import predicates
from plimsoll.core.head.log import Log
from plimsoll.core.matching import Index
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.origins import Origin
from plimsoll.core.protocol.wire import OwnerEpoch
from plimsoll.core.transport.link import NEVER

PAUSE_SECONDS = 0.02
SLICE_ENTRIES = 256
SLICE_MATCHES = 4096
SLICE_SUBSCRIPTIONS = 128
READ_SECONDS = 3.0


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


Case = TypeVar("Case", bound=AuditCase)


class LogPass(Generic[Case]):
    """One pass through the log for some cases."""

    def __init__(self, cases: list[Case], until: float) -> None:
        self.cases, self.until = cases, until
        self.at = min(case.low for case in cases)
        self.end = max(case.high for case in cases)
        self._index: Index = Index(compiled=False)
        self._of: list[Case] = []
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


class LogPassContext(Protocol):
    now: float
    log: Log


class LogPasses(Generic[Case]):
    """Passes through the log of a head, in the order in which they were asked for. Its length: the cases of all."""

    def __init__(self, host: LogPassContext) -> None:
        self._host = host
        self._waiting: deque[tuple[list[Case], Callable[[list[Case]], None]]] = deque()
        self._reading: tuple[LogPass[Case], Callable[[list[Case]], None]] | None = None
        self._next_at = 0.0

    def __len__(self) -> int:
        reading = len(self._reading[0].cases) if self._reading is not None else 0
        return reading + sum(len(cases) for cases, _ in self._waiting)

    def read(self, cases: list[Case], finish: Callable[[list[Case]], None]) -> None:
        """Call `finish` with those of the cases of which it is known what was due, once the log has been read."""
        if cases:
            self._waiting.append((cases, finish))
        else:
            finish([])

    def tick(self) -> None:
        now = self._host.now
        if now < self.wake_at():
            return
        if self._reading is None:
            cases, finish = self._waiting.popleft()
            self._reading = LogPass(cases, now + READ_SECONDS), finish
        self._next_at = now + PAUSE_SECONDS
        reading, finish = self._reading
        is_read = reading.slice(self._host.log)
        if is_read or now >= reading.until:
            self._reading = None
            finish([case for case in reading.cases if case.is_known] if is_read else [])

    def wake_at(self) -> float:
        return self._next_at if self._reading is not None or self._waiting else NEVER
