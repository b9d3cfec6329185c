"""One subscriber at one edge, and the link that it shares with others.

A subscriber that keeps up has no queue: its records go straight into the link's buffer. A queue exists only while the
link or the subscriber is behind, paused, catching up or on its way here, and it is bounded. At the bound the
subscriber's slow-consumer policy applies; if the subscriber is still on its way here, the attachment ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, Protocol

from plimsoll.core.config import BrokerLimits
from plimsoll.core.edge.unit_queue import UnitQueue
from plimsoll.core.permissions import INCARNATIONS_BELOW, NOT_PERMITTED
from plimsoll.core.predicates import Subscription
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.messages import AttachItem, Gap, Policy, PubOpen, Resume
from plimsoll.core.protocol.messages import to_edge as decoder
from plimsoll.core.protocol.messages.delivery_prefix import (
    PREFIX_BYTES,
    attachment_of,
    deliver_prefix,
    epoch_prefix,
    is_epoch,
)
from plimsoll.core.protocol.origins import Origin, raise_to
from plimsoll.core.protocol.wire import OwnerEpoch, Token
from plimsoll.core.transport.link import Link

COUNTED_TO = 2**62
"""Bound on numbers that clients choose: brokers count up from them, and the sums must fit into 63 bits."""

POLICIES = ("", "block", "drop-oldest", "disconnect")
TOO_LONG = "the hand-over took longer than it may; resume from your token"
REFUSALS = {
    "leaving": "this edge is leaving; ask the head for another one",
    "undecided": "another client asks for this name at this edge, and the head has not decided yet; ask again",
    "full": "this edge has as many subscribers as it may have; ask the head for another one",
    "epoch": "the subscriber is or was attached with this owner epoch or a later one; raise it",
    "range": "an incarnation is below 2^53, the number of an owner epoch and the position of a token are below 2^62",
    "session": "there is no place for the subscriber in this hand-over here; stay at the edge that serves you",
    NOT_PERMITTED: "the key of this connection may not subscribe; its identity lacks the role",
    "policy": f"policy.slow is one of {', '.join(POLICIES[1:])}, policy.block_seconds a finite number of at least 0,"
    " and so is the lease",
}
"""Why a RESUME or an ATTACH is answered with ATTACHMENT_CLOSED, by code."""


class RecordSink(Protocol):
    """Where the stream's records for an attachment go: the link's buffer, its own queue, or the void."""

    def append(self, record: bytes, /) -> None: ...

    def __len__(self) -> int: ...


class AttachmentState(Enum):
    """Where an attachment is served from. The values appear in `status`.

    RESUMING: the head has not answered yet. CATCHUP: served from the head's log. LIVE: served from the stream.
    BLOCKED: its queue is full and does not grow. CLOSED: no longer attached; its cover stays until the head releases
    it.

    Arriving by hand-over (docs/handover.md, 3): STANDBY, and CUTTING from INSTALL on: matched and covered, but its
    matches in the stream are still the source's. BUFFERING: publications are kept until GO. Departing: ENDING, END is
    queued, and nothing follows it.
    """

    RESUMING = "resuming"
    CATCHUP = "catchup"
    LIVE = "live"
    BLOCKED = "blocked"
    STANDBY = "dark"
    CUTTING = "cutting"
    BUFFERING = "hold"
    ENDING = "ending"
    CLOSED = "closed"


SERVED = (
    AttachmentState.RESUMING,
    AttachmentState.CATCHUP,
    AttachmentState.LIVE,
    AttachmentState.BLOCKED,
    AttachmentState.BUFFERING,
)
"""States in which this edge is the one that serves the subscriber."""

SILENT = (AttachmentState.STANDBY, AttachmentState.CUTTING)
"""States in which what an attachment matches is delivered by another edge."""


class PendingEnd(NamedTuple):
    """The END that an attachment is still owed: the position of its cut, the session, and the token to go on from."""

    position: int
    session: str
    token: Token


class EdgeAttachment:
    """A subscriber attached to this edge.

    `position`: unless LIVE, how far in the head's log it has been served. `is_installed`: publications are matched
    against its list. `arriving`: numbers, by id, of a change that is not complete. `is_covered`: the list is announced
    upward. `replaced`: numbers that the list before has in the cover, until all of this one is there.
    `keeps_place`: entry and cover outlast its closing. `lease_seconds`: as in RESUME.

    `incoming_session`: the one that brings it here, until GO; `is_held`: all of its list has been taken, and HELD sent;
    `has_go`: GO has come before INSTALLED.
    `outgoing_session`: the one that takes it away. `pending_end`: the END that is due once all up to its cut is queued.

    `since`: where its cover began, as the head has said. `is_again`: an earlier cover had lapsed
    before, so that a token at `since` is not whole. A head that recovers learns both from here.

    `identity`: of the client. `is_verified`: the head has confirmed that the name is this identity's.

    `counts_from`: the token and watermarks from which the subscriber counts its deliveries, for the audit; `moved_by`:
    the session whose slot it took by RESUME.

    `matched`: publications of the stream that matched it, and `unit_queue`: what waits for it. Both are kept for units
    under a policy that defends deadlines.
    """

    __slots__ = (
        "_latencies",
        "arriving",
        "block_seconds",
        "blocked_at",
        "closed_at",
        "counted",
        "counts_from",
        "deliver_prefix",
        "dropped",
        "end_gap",
        "epoch",
        "epoch_prefix",
        "expiring",
        "front_epoch",
        "has_go",
        "id",
        "identity",
        "incoming_session",
        "is_again",
        "is_covered",
        "is_held",
        "is_installed",
        "is_verified",
        "keeps_place",
        "last_position",
        "lease_seconds",
        "link",
        "matched",
        "moved_by",
        "out",
        "outgoing_session",
        "paused",
        "pending_end",
        "policy",
        "position",
        "queue",
        "queue_bytes",
        "queue_limit_bytes",
        "replaced",
        "since",
        "state",
        "subscriber",
        "subscriptions",
        "unit_queue",
        "version",
    )

    def __init__(
        self, subscriber: str, attachment_id: int, link: Link, epoch: OwnerEpoch, version: int, void: RecordSink
    ) -> None:
        self.subscriber, self.id, self.link, self.epoch, self.version = subscriber, attachment_id, link, epoch, version
        self.deliver_prefix, self.epoch_prefix = deliver_prefix(attachment_id), epoch_prefix(attachment_id)
        self.front_epoch = 0
        self.subscriptions: dict[int, tuple[Subscription, int]] = {}
        self.arriving: dict[int, int] = {}
        self.replaced: list[int] = []
        self.is_installed = self.is_covered = False
        self.keeps_place = True
        self.lease_seconds = 0.0
        self.state = AttachmentState.RESUMING
        self.out: RecordSink = void
        self.queue: deque[bytes] = deque()
        self.queue_bytes = self.counted = 0
        self.queue_limit_bytes = 0
        self.policy = "block"
        self.block_seconds = 0.0
        self.position = self.last_position = 0
        self.since, self.is_again = (0, 0), False
        self.identity, self.is_verified = "", False
        self.paused = False
        self.blocked_at = self.closed_at = 0.0
        self.expiring = False
        self.dropped: DroppedRange | None = None
        self.end_gap: tuple[int, bytes] | None = None
        self.incoming_session = self.outgoing_session = ""
        self.is_held = self.has_go = False
        self.pending_end: PendingEnd | None = None
        self.counts_from: tuple[Token, list[Token]] | None = None
        self.moved_by = ""
        self._latencies: dict[int, float] | None = None
        self.matched = 0
        self.unit_queue: UnitQueue | None = None

    @property
    def required_seconds(self) -> float:
        """The least latency that one of its subscriptions requires; 0 if none does."""
        return min(self._latencies.values()) if self._latencies else 0.0

    def require(self, number: int, seconds: float) -> None:
        """Note the latency that the subscription of this number requires."""
        self._latencies = {**(self._latencies or {}), number: seconds}

    def require_no_more(self, number: int) -> None:
        """The subscription of this number is gone."""
        if self._latencies is not None:
            self._latencies.pop(number, None)

    def apply(self, policy: Policy, limits: BrokerLimits, time_factor: float) -> None:
        """Apply the subscriber's policy. The broker's limits fill in what it leaves open, and cap its queue."""
        self.policy = policy.slow or limits.slow_policy
        self.queue_limit_bytes = min(policy.queue_bytes or limits.queue_bytes, limits.queue_bytes)
        self.block_seconds = (policy.block_seconds or limits.block_seconds) * time_factor

    def take_over(self, old: EdgeAttachment) -> None:
        """Take over from the one before since when its subscriber is covered, until the head answers its RESUME.

        Not from one whose end the head may have decided by now; nor with a lease, as that place is the head's own.
        """
        is_whole = old.keeps_place and old.is_verified and not old.expiring and old.identity == self.identity
        if is_whole and not self.lease_seconds:
            self.since, self.is_again, self.is_verified = old.since, old.is_again, True

    @property
    def may_outlast_head(self) -> bool:
        """Whether its place can be reported to a head that has restarted: where its cover began is known."""
        return self.state not in SILENT and self.keeps_place and self.is_verified

    def count_queue(self) -> int:
        """Bytes in the queue. Counts only what came since the last call: the hot path appends without counting."""
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
        """Take back the gap at the end of the queue, if there is one, to widen it; returns where it began."""
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
        """Remove the oldest record. `front_epoch` becomes the head epoch of the next one's position."""
        record = self.queue.popleft()
        if is_epoch(record):
            gap = decoder.decode(record[PREFIX_BYTES:])
            self.front_epoch = gap.epoch if isinstance(gap, Gap) else 0
        if self.counted:
            self.counted -= 1
            self.queue_bytes -= len(record)
        return record

    def drop_oldest(self, head: str) -> int:
        """Drop records until the queue fits its limit; one gap in front of it stands for them.

        Returns how many were dropped.
        """
        count = 0
        while self.queue_bytes > self.queue_limit_bytes and len(self.queue) > 1:
            if self.dropped is None:
                self.dropped = DroppedRange(head, self.front_epoch)
            item = decoder.decode(self.pop()[PREFIX_BYTES:])
            self.dropped.add(item, self.front_epoch)
            count += 1
        return count

    def clear_subscriptions(self) -> None:
        """Forget the list, and a change of it that is not complete."""
        self.subscriptions.clear()
        self._latencies = None
        self.arriving = {}

    def clear(self) -> None:
        """Forget the queue."""
        self.queue.clear()
        self.queue_bytes = self.counted = 0
        self.dropped = self.end_gap = self.pending_end = None


def out_of_bounds(asked: Resume | AttachItem) -> str:
    """Why the values of a RESUME or an ATTACH are refused, as a key of `REFUSALS`; empty if they are fine."""
    token = asked.token if isinstance(asked, Resume) else None
    if asked.epoch[0] >= INCARNATIONS_BELOW or asked.epoch[1] >= COUNTED_TO:
        return "range"
    if token is not None and token[2] >= COUNTED_TO:
        return "range"
    if not 0.0 <= asked.lease_seconds < float("inf"):
        return "policy"
    policy = asked.policy
    return "" if policy.slow in POLICIES and 0.0 <= policy.block_seconds < float("inf") else "policy"


class DroppedRange:
    """What a full queue has dropped and no gap has reported yet: positions, and the last offset per origin."""

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


class LinkAttachments:
    """The attachments of one link to a client process, which share its buffer.

    `queued`: those with a queue of their own, in turn. `behind`: the buffer is at its bound. `stuck_since`: when the
    link last failed to take all of the buffer. `progress_sent`: the position of the last PROGRESS.
    """

    __slots__ = ("behind", "buffered_bytes", "by_id", "counted", "link", "progress_sent", "queued", "stuck_since")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.by_id: dict[int, EdgeAttachment] = {}
        self.queued: dict[EdgeAttachment, None] = {}
        self.behind = False
        self.stuck_since: float | None = None
        self.progress_sent = 0
        self.counted = self.buffered_bytes = 0

    def count_buffer(self) -> int:
        """Bytes in the link's buffer. Counts only what came since the last call."""
        buffer = self.link.buffer
        if len(buffer) < self.counted:
            self.recount()
        for i in range(self.counted, len(buffer)):
            self.buffered_bytes += len(buffer[i])
        self.counted = len(buffer)
        return self.buffered_bytes

    def buffered_attachments(self) -> Iterator[EdgeAttachment]:
        """The attachment of each delivery in the link's buffer."""
        by_id = self.by_id
        for record in self.link.buffer:
            number = attachment_of(record)
            if number is not None and (found := by_id.get(number)) is not None:
                yield found

    def recount(self) -> None:
        """Count the buffer from its beginning again: something has left it."""
        self.counted = self.buffered_bytes = 0

    def lagging(self) -> list[int]:
        """Attachments that have not been sent everything up to the stream's position."""
        if not self.queued and not self.behind and all(a.state is AttachmentState.LIVE for a in self.by_id.values()):
            return []
        return [a.id for a in self.by_id.values() if a.state is not AttachmentState.LIVE or a.queue or a.dropped]
