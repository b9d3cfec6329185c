"""One subscriber at one edge, and the link that it shares with others.

A subscriber that keeps up has no queue: its records go straight into the link's buffer. A queue exists only while the
link or the subscriber is behind, paused, catching up or on its way here, and it is bounded; what happens at the bound
is the subscriber's stated policy, and while it is on its way here, the end of this attachment.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Protocol

from plimsoll.core import wire
from plimsoll.core.config import Limits
from plimsoll.core.grants import NOT_GRANTED
from plimsoll.core.link import Link
from plimsoll.core.log import Origin, raise_to
from plimsoll.core.predicates import Subscription
from plimsoll.core.records import AttachItem, Gap, Policy, PubOpen, Resume
from plimsoll.core.records import to_edge as decoder
from plimsoll.core.wire import OwnerEpoch, Token

HANDLE_BYTES = 7
"""An array header, a tag, and the attachment as a 32-bit integer: in front of what DELIVER and EPOCH carry."""

EPOCH_TAG = 40
COUNTED_TO = 2**62
"""Brokers count on from what a client says, and what they say must fit into 63 bits."""

POLICIES = ("", "block", "drop-oldest", "disconnect")
REFUSALS = {
    "leaving": "this edge is leaving; ask the head for another one",
    "full": "this edge has as many subscribers as it may have; ask the head for another one",
    "epoch": "the subscriber is attached here with this owner epoch or a later one; raise it",
    "range": "the number of an owner epoch and the position of a token are below 2^62",
    "session": "there is no place for the subscriber in this hand-over here; stay at the edge that serves you",
    NOT_GRANTED: "the key of this connection may not subscribe; its identity lacks the role",
    "policy": f"policy.slow is one of {', '.join(POLICIES[1:])}, policy.block_seconds a finite number of at least 0",
}
"""Why a RESUME or an ATTACH is answered with SHUT, by code."""


class Sink(Protocol):
    """Where a subscriber's records go: a link's buffer, its own queue, or nowhere."""

    def append(self, record: bytes, /) -> None: ...

    def __len__(self) -> int: ...


class State(Enum):
    """`RESUMING`: the head has not answered yet. `CATCHUP`: served from the head's log. `LIVE`: served from the
    stream.

    `BLOCKED`: its queue is full and does not grow. `CLOSED`: no longer attached; its cover stays until the head
    releases it.

    On its way here: `DARK`, neither matched nor covered; `CUTTING`, covered, and what the stream has for it is still
    the source's; `HOLD`, what the stream has for it is kept. On its way out: `ENDING`, END is queued, nothing follows.
    """

    RESUMING = "resuming"
    CATCHUP = "catchup"
    LIVE = "live"
    BLOCKED = "blocked"
    DARK = "dark"
    CUTTING = "cutting"
    HOLD = "hold"
    ENDING = "ending"
    CLOSED = "closed"


SERVED = (State.RESUMING, State.CATCHUP, State.LIVE, State.BLOCKED, State.HOLD)
"""The states of those whom an edge serves, or has to from where the stream is."""


class Attachment:
    """A subscriber attached to this edge.

    `position`: all up to it in the head's log has been dealt with, if not LIVE. `is_installed`: publications are
    matched against its list. `is_covered`: the list is announced. `keeps_place`: its record outlasts its closing.

    `coming`: the session that brings it here, until GO; `has_go`: GO has come before INSTALLED. `going`: the session
    that takes it away. `end`: the position of its cut, and the END that is due once all up to it is queued.

    `counts_from`: the token and watermarks from which it counts what it is given on its way here; `moved_by`: the
    session whose place here it took by RESUME.
    """

    __slots__ = (
        "block_seconds",
        "blocked_at",
        "closed_at",
        "coming",
        "counted",
        "counts_from",
        "dropped",
        "end",
        "end_gap",
        "epoch",
        "epoch_handle",
        "expiring",
        "front_epoch",
        "going",
        "handle",
        "has_go",
        "id",
        "is_covered",
        "is_installed",
        "keeps_place",
        "last_position",
        "link",
        "moved_by",
        "out",
        "paused",
        "policy",
        "position",
        "queue",
        "queue_bytes",
        "queue_limit_bytes",
        "since",
        "state",
        "subscriber",
        "subscriptions",
        "version",
    )

    def __init__(
        self, subscriber: str, attachment_id: int, link: Link, epoch: OwnerEpoch, version: int, void: Sink
    ) -> None:
        self.subscriber, self.id, self.link, self.epoch, self.version = subscriber, attachment_id, link, epoch, version
        self.handle = b"\x93\x03\xce" + attachment_id.to_bytes(4, "big")
        self.epoch_handle = bytes((0x93, EPOCH_TAG, 0xCE)) + attachment_id.to_bytes(4, "big")
        self.front_epoch = 0
        self.subscriptions: dict[int, tuple[Subscription, int]] = {}
        self.is_installed = self.is_covered = False
        self.keeps_place = True
        self.state = State.RESUMING
        self.out: Sink = void
        self.queue: deque[bytes] = deque()
        self.queue_bytes = self.counted = 0
        self.queue_limit_bytes = 0
        self.policy = "block"
        self.block_seconds = 0.0
        self.position = self.last_position = 0
        self.since = (0, 0)
        self.paused = False
        self.blocked_at = self.closed_at = 0.0
        self.expiring = False
        self.dropped: Dropped | None = None
        self.end_gap: tuple[int, bytes] | None = None
        self.coming = self.going = ""
        self.has_go = False
        self.end: tuple[int, str, Token] | None = None
        self.counts_from: tuple[Token, list[Token]] | None = None
        self.moved_by = ""

    def apply(self, policy: Policy, limits: Limits, time_factor: float) -> None:
        """Take the subscriber's policy; what it leaves open, and the most that it may have, is the broker's."""
        self.policy = policy.slow or limits.slow_policy
        self.queue_limit_bytes = min(policy.queue_bytes or limits.queue_bytes, limits.queue_bytes)
        self.block_seconds = (policy.block_seconds or limits.block_seconds) * time_factor

    def count_queue(self) -> int:
        """Bytes in the queue, what has come since the last call counted in."""
        queue, counted = self.queue, self.counted
        for i in range(counted, len(queue)):
            self.queue_bytes += len(queue[i])
        self.counted = len(queue)
        return self.queue_bytes

    def add_gap(self, low: int, record: bytes) -> None:
        """Put a gap that begins at `low` at the end of the queue."""
        self.queue.append(record)
        self.count_queue()
        self.end_gap = (low, record)

    def take_back_gap(self) -> int | None:
        """Take the gap at the end of the queue back, to widen it; returns where it began. One that waits is enough."""
        self.count_queue()
        if self.end_gap is None or not self.queue or self.queue[-1] is not self.end_gap[1]:
            return None
        low, record = self.end_gap
        self.queue.pop()
        self.counted -= 1
        self.queue_bytes -= len(record)
        self.end_gap = None
        return low

    def pop(self) -> bytes:
        """The oldest record of the queue. `front_epoch` is the head epoch that the next one has its position in."""
        record = self.queue.popleft()
        if record[1] == EPOCH_TAG:
            gap = decoder.decode(record[HANDLE_BYTES:])
            self.front_epoch = gap.epoch if isinstance(gap, Gap) else 0
        if self.counted:
            self.counted -= 1
            self.queue_bytes -= len(record)
        return record

    def drop_oldest(self, head: str) -> int:
        """Drop records until the queue fits its limit; they become one gap in front of it.

        Returns how many were dropped.
        """
        count = 0
        while self.queue_bytes > self.queue_limit_bytes and len(self.queue) > 1:
            if self.dropped is None:
                self.dropped = Dropped(head, self.front_epoch)
            item = decoder.decode(self.pop()[HANDLE_BYTES:])
            self.dropped.add(item, self.front_epoch)
            count += 1
        return count

    def clear(self) -> None:
        """Forget the queue."""
        self.queue.clear()
        self.queue_bytes = self.counted = 0
        self.dropped = self.end_gap = self.end = None


def out_of_bounds(asked: Resume | AttachItem) -> str:
    """The code of what is wrong with the values of a RESUME or an ATTACH, or an empty string."""
    token = asked.token if isinstance(asked, Resume) else None
    if asked.epoch[1] >= COUNTED_TO or (token is not None and token[2] >= COUNTED_TO):
        return "range"
    policy = asked.policy
    return "" if policy.slow in POLICIES and 0.0 <= policy.block_seconds < float("inf") else "policy"


class Dropped:
    """What a full queue has dropped since the last gap that was told: positions, and the last offset per origin."""

    def __init__(self, head: str, epoch: int) -> None:
        self.head, self.low_epoch, self.epoch = head, epoch, epoch
        self.low: int | None = None
        self.high = 0
        self.last: dict[Origin, int] = {}

    def add(self, item: object, epoch: int) -> None:
        """Add a publication or a gap. `epoch`: of the head, at its end."""
        self.epoch = epoch
        if isinstance(item, PubOpen):
            self.low = item.position if self.low is None else self.low
            self.high = item.position
            self.last[item.head, item.epoch] = item.offset
        elif isinstance(item, Gap):
            if self.low is None:
                self.low, self.low_epoch = item.low, item.low_epoch
            self.high = item.high
            raise_to(self.last, (((head, epoch), offset) for head, epoch, offset in item.last))

    def record(self) -> bytes:
        last = [(head, epoch, offset) for (head, epoch), offset in sorted(self.last.items())]
        return wire.encode(Gap(self.head, self.low_epoch, self.low or 0, self.epoch, self.high, last, "queue"))


class Port:
    """An edge's link to a client process: its attachments, and those of them that have something queued."""

    __slots__ = ("attachments", "behind", "buffered_bytes", "counted", "link", "queued", "stuck_since", "told")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.attachments: dict[int, Attachment] = {}
        self.queued: dict[Attachment, None] = {}
        self.behind = False
        self.stuck_since: float | None = None
        self.told = 0
        self.counted = self.buffered_bytes = 0

    def count_buffer(self) -> int:
        """Bytes in the link's buffer, what has come since the last call counted in."""
        buffer = self.link.buffer
        if len(buffer) < self.counted:
            self.sent()
        for i in range(self.counted, len(buffer)):
            self.buffered_bytes += len(buffer[i])
        self.counted = len(buffer)
        return self.buffered_bytes

    def sent(self) -> None:
        """Something has left the buffer: it is counted anew."""
        self.counted = self.buffered_bytes = 0

    def lagging(self) -> list[int]:
        """Attachments for which the stream's position says nothing."""
        if not self.queued and not self.behind and all(a.state is State.LIVE for a in self.attachments.values()):
            return []
        return [a.id for a in self.attachments.values() if a.state is not State.LIVE or a.queue or a.dropped]
