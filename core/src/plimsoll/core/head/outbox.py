"""The backlog of one link of a head: positions of its log, with in-band messages between them.

A fan-out never waits for one of its links: a slow link keeps positions, not copies. What the log evicts before it was
sent is lost to this link and becomes a gap, split at in-band messages; those are never dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plimsoll.core.head.log import Log
from plimsoll.core.protocol.messages import Cover, OwnedItem
from plimsoll.core.protocol.wire import FLAG_ACK_NOW
from plimsoll.core.transport.link import Link


class LostRange(NamedTuple):
    """Positions that this link has lost, both included."""

    low: int
    high: int


class UncertainRange(LostRange):
    """Positions any of which a neighbour may have received before it went down."""


class Outbox:
    """The sending side of a head towards an edge or a neighbouring head."""

    def __init__(self, link: Link, key: str, is_head: bool) -> None:
        self.link, self.key, self.is_head = link, key, is_head
        self.name, self.incarnation = link.name, link.incarnation
        self.backlog: deque[int | bytes | LostRange] = deque()
        self.room = 0
        self.lagging = False
        self.leaving = False
        self.keeps_claims = False
        """Whether this edge is told whose names are."""
        self.sent_through = 0
        self.offered = self.acked = 0
        """Positions: the last that this link was offered, and the last that the other side has acknowledged."""
        self.awaiting: deque[int] = deque()
        self.parts: list[Cover] = []
        self.owned: list[OwnedItem] = []
        """Parts received so far of a cover update and of a report that come in several messages."""
        self._unacked: deque[tuple[int, int | LostRange]] = deque()
        self._buffered = self._sealed = 0
        self._asked = False
        self._marks: deque[tuple[int, int]] = deque()

    def offer(self, position: int, record: bytes) -> bool:
        """Send a log entry now if there is room, else keep its position. True if the link's buffer has grown."""
        self.offered = position
        if self.backlog or self.room <= 0:
            self.backlog.append(position)
            return False
        self._send(position, record)
        return True

    def send(self, record: bytes) -> bool:
        """Send an in-band message behind all that is waiting. True if the link's buffer has grown."""
        if self.backlog:
            self.backlog.append(record)
            return False
        self.send_first(record)
        return True

    def send_first(self, record: bytes) -> None:
        """Send an in-band message ahead of all that is waiting; for what no position of this stream depends on."""
        self._buffered += 1
        self.room -= len(record)
        self.link.buffer.append(record)

    def _send(self, position: int, record: bytes) -> None:
        self.send_first(record)
        self.sent_through = position
        self._unacked.append((self._buffered, position))

    def offer_again(self, positions: Iterable[int | LostRange]) -> None:
        """Offer entries that the other side had missed when it last heard of this head, ahead of all new ones."""
        self.backlog.extend(positions)

    def send_gap(self, lost: LostRange, gap: bytes) -> None:
        """Send the gap that stands for a lost range, at its place."""
        self.send_first(gap)
        self._unacked.append((self._buffered, lost))

    def measure(self) -> None:
        """Measure how many bytes the link takes now, less what is in its buffer already."""
        self.room = self.link.writable_bytes() - sum(map(len, self.link.buffer))

    def pump(self, log: Log) -> Iterator[LostRange]:
        """Move what was waiting into the link's buffer while there is room; yields each lost range at its place."""
        backlog = self.backlog
        while backlog and self.room > 0:
            item = backlog.popleft()
            if isinstance(item, bytes):
                self.send_first(item)
            elif isinstance(item, int) and (entry := log.get(item)) is not None:
                self._send(item, entry.record)
            else:
                yield self._lost_range(item, log)
        if not backlog:
            self.lagging = False

    def _lost_range(self, item: int | LostRange, log: Log) -> LostRange:
        """Widen a lost range over all that follows it up to the next in-band message."""
        if isinstance(item, UncertainRange):
            self.sent_through = max(self.sent_through, item.high)
            return item
        low, high = item if isinstance(item, LostRange) else (item, item)
        while self.backlog:
            after = self.backlog[0]
            if isinstance(after, bytes | UncertainRange) or (isinstance(after, int) and after >= log.first):
                break
            high = after.high if isinstance(after, LostRange) else after
            self.backlog.popleft()
        self.lagging = True
        self.sent_through = max(self.sent_through, high)
        return LostRange(low, high)

    def compact(self, log: Log) -> None:
        """Fold evicted positions into lost ranges, so that the backlog of a link that does not move stays bounded."""
        if len(self.backlog) <= 2 * len(log) + 1024:
            return
        items, self.backlog = self.backlog, deque()
        for item in items:
            before = self.backlog[-1] if self.backlog else None
            if isinstance(item, int) and item < log.first:
                if isinstance(before, LostRange) and not isinstance(before, UncertainRange):
                    self.backlog[-1] = LostRange(before.low, item)
                else:
                    self.backlog.append(LostRange(item, item))
                self.lagging = True
            else:
                self.backlog.append(item)

    # acknowledged positions

    def sealed(self, count: int) -> None:
        """A frame of `count` records has been sealed: its acknowledgement covers those and all before them."""
        self._sealed += count
        if self._unacked:
            self._marks.append((self.link.next_seq - 1, self._sealed))
        if self._asked and not self.backlog and self._buffered == self._sealed:
            self._asked = False
        if not self.awaiting and not self._asked:
            self.link.flags = 0

    def await_answer(self, position: int) -> None:
        """Wait for this position to be acknowledged: frames ask for that at once, not with the next batch."""
        self.awaiting.append(position)
        self.link.flags = FLAG_ACK_NOW

    def ask(self) -> None:
        """Have what has been offered by now acknowledged at once: frames ask for that until it has left."""
        self._asked = True
        self.link.flags = FLAG_ACK_NOW

    def settle(self) -> int:
        """The highest position that the other side has acknowledged since the last call, or 0."""
        ordinal = through = 0
        while self._marks and self._marks[0][0] <= self.link.acked:
            ordinal = self._marks.popleft()[1]
        while self._unacked and self._unacked[0][0] <= ordinal:
            item = self._unacked.popleft()[1]
            through = item.high if isinstance(item, LostRange) else item
        self.acked = max(self.acked, through)
        return through

    def unacknowledged(self) -> list[int | LostRange]:
        """What has been sent, or is about to be, and is not known to have arrived."""
        return [item for _, item in self._unacked]

    def under_way(self) -> int:
        """How many of the unacknowledged have left in a frame; those behind them certainly have not arrived."""
        return sum(ordinal <= self._sealed for ordinal, _ in self._unacked)

    def renew(self, link: Link, again: list[int | LostRange]) -> None:
        """Go on with a new link of this neighbour: `again` first, then what was waiting.

        In-band messages are dropped: they belonged to the stream of the old link, and both sides start with reports.
        """
        waiting = [item for item in self.backlog if not isinstance(item, bytes)]
        self.backlog = deque([*again, *waiting])
        self._unacked.clear()
        self._marks.clear()
        self._buffered = self._sealed = 0
        self._asked = False
        self.parts, self.owned = [], []
        self.link, self.room, self.incarnation = link, 0, link.incarnation
