"""Subscribers that are behind: a bounded queue for each, its policy at the bound, and its way back to the stream.

Queues of one link are emptied in turn, so that a slow subscriber takes no more than its share. A blocked subscriber's
queue does not grow; once it is empty, the rest is fetched from the head's log. The buffer of an arriving subscriber is
not emptied before GO, and no policy drops anything from it. END goes behind all else, and is never dropped.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.attachment import SILENT, AttachmentState, EdgeAttachment, LinkAttachments
from plimsoll.core.edge.catchup_cursor import CatchupCursor
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport.link import Link

REFILL_RECORDS = 64
"""Records moved from one queue before the next queue has its turn."""


class QueuesContext(Protocol):
    """What the queues need of their edge."""

    now: float
    position: int
    head_epoch: int
    config: BrokerConfig
    counters: Counter[str]
    dirty: dict[Link, None]


class QueueOutcomes(NamedTuple):
    """What the edge does about events of a queue that the queue cannot handle itself."""

    disconnect: Callable[[EdgeAttachment], None]
    """It is full, and its policy is `disconnect`."""

    buffer_full: Callable[[EdgeAttachment], None]
    """It is full, and its subscriber is still on its way here."""

    cut_reached: Callable[[EdgeAttachment], None]
    """All up to the cut has been queued, or sent."""


class SilentMatches:
    """Takes what the stream has for attachments that another edge delivers to, and counts it: it is no output here."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def append(self, record: bytes) -> None:
        self.count += 1

    def take(self) -> int:
        """The count since the last call."""
        count, self.count = self.count, 0
        return count

    def __len__(self) -> int:
        return 1  # never empty: no link has to be flushed for it


class DeliveryQueues:
    """The queues of all attachments of an edge.

    `void` takes what the stream has for attachments that it passes over, `silent` what it has for those that are served
    elsewhere. `outcomes` is set once, when all parts of the edge exist.
    """

    outcomes: QueueOutcomes

    def __init__(self, host: QueuesContext, cursor: CatchupCursor, by_link: dict[Link, LinkAttachments]) -> None:
        self.host, self.cursor, self.by_link = host, cursor, by_link
        self.void: deque[bytes] = deque([b""], maxlen=1)
        self.silent = SilentMatches()
        self._queueing: dict[LinkAttachments, None] = {}
        self._stuck: dict[LinkAttachments, None] = {}

    def forget(self, link_attachments: LinkAttachments) -> None:
        """Drop a link that is over."""
        self._queueing.pop(link_attachments, None)
        self._stuck.pop(link_attachments, None)

    def live(self, attachment: EdgeAttachment) -> None:
        """Serve this attachment from the stream from here on."""
        if attachment.state is not AttachmentState.CLOSED:
            attachment.state = AttachmentState.LIVE
            attachment.position = self.host.position
            self.route(attachment)

    def route(self, attachment: EdgeAttachment) -> None:
        """Decide where the stream's records for it go; called after every change of state, queue or link."""
        link_attachments = self.by_link[attachment.link]
        if attachment.queue or attachment.dropped:
            self.put_aside(attachment)
        if attachment.state is AttachmentState.BUFFERING:
            # Even on an idle link: before GO the source is still delivering what comes first.
            attachment.out = attachment.queue
            self.put_aside(attachment)
        elif attachment.state is not AttachmentState.LIVE:
            attachment.out = self.silent if attachment.state in SILENT else self.void
        elif link_attachments.behind or attachment.paused or attachment.queue or attachment.dropped:
            attachment.out = attachment.queue
            self.put_aside(attachment)
        else:
            attachment.out = attachment.link.buffer
            link_attachments.queued.pop(attachment, None)

    def put_aside(self, attachment: EdgeAttachment) -> None:
        """Note that this attachment has, or may get, something in its own queue."""
        link_attachments = self.by_link[attachment.link]
        link_attachments.queued[attachment] = None
        self._queueing[link_attachments] = None

    def block(self, attachment: EdgeAttachment) -> None:
        """Stop its full queue from growing; the rest is fetched from the head's log once there is room."""
        if attachment.state is AttachmentState.LIVE:
            attachment.position = self.host.position
        self.cursor.leave(attachment)
        attachment.state, attachment.blocked_at = AttachmentState.BLOCKED, self.host.now
        self.route(attachment)

    def end(self, attachment: EdgeAttachment, record: Callable[[], bytes]) -> bool:
        """Pass over it from here on; returns whether its last record went into its queue, behind what is there.

        If not, the caller sends it on the link in this step: many attachments then share one END.
        """
        attachment.state, attachment.out = AttachmentState.ENDING, self.void
        is_queued = bool(attachment.queue or attachment.dropped)
        if is_queued:
            attachment.queue.append(record())
            self.put_aside(attachment)
        else:
            self.by_link[attachment.link].queued.pop(attachment, None)
        return is_queued

    # -- queues

    def stuck(self, link_attachments: LinkAttachments) -> None:
        """Note that at the end of the round the link has not taken all."""
        if link_attachments.stuck_since is None:
            link_attachments.stuck_since = self.host.now
        self._stuck[link_attachments] = None
        self._bound(link_attachments)

    def _bound(self, link_attachments: LinkAttachments) -> None:
        """Bound the buffer of a stuck link: beyond it, attachments queue on their own, under their policies."""
        if link_attachments.behind or link_attachments.stuck_since is None:
            self._stuck.pop(link_attachments, None)
        elif link_attachments.count_buffer() > self.host.config.limits.link_buffer_bytes:
            link_attachments.behind = True
            for attachment in link_attachments.by_id.values():
                self.route(attachment)

    def refill(self, link_attachments: LinkAttachments) -> None:
        """Move queued records into the link's buffer, a few of each attachment in turn, as far as there is room."""
        link = link_attachments.link
        room = min(link.writable_bytes(), self.host.config.limits.link_buffer_bytes) - sum(map(len, link.buffer))
        waiting = [
            a
            for a in link_attachments.queued
            if not a.paused and (a.queue or a.dropped) and a.state is not AttachmentState.BUFFERING
        ]
        while room > 0 and waiting:
            attachment = waiting.pop(0)
            room -= self._move(attachment, link, room)
            if attachment.queue or attachment.dropped:
                waiting.append(attachment)
                link_attachments.queued[attachment] = link_attachments.queued.pop(
                    attachment
                )  # last in turn in the next call, too
            else:
                self._emptied(link_attachments, attachment)
        if link_attachments.behind and not waiting and room > 0:
            link_attachments.behind = False
            for attachment in link_attachments.by_id.values():
                self.route(attachment)

    def _move(self, attachment: EdgeAttachment, link: Link, room: int) -> int:
        moved = 0
        if attachment.dropped is not None:
            gap = attachment.deliver_prefix + attachment.dropped.record()
            attachment.dropped = None
            link.buffer.append(gap)
            moved += len(gap)
        for _ in range(min(REFILL_RECORDS, len(attachment.queue))):
            record = attachment.pop()
            link.buffer.append(record)
            moved += len(record)
            if moved >= room:
                break
        return moved

    def _emptied(self, link_attachments: LinkAttachments, attachment: EdgeAttachment) -> None:
        link_attachments.queued.pop(attachment, None)
        if attachment.state is AttachmentState.BLOCKED:
            if attachment.pending_end is None or attachment.position < attachment.pending_end.position:
                self.cursor.join(attachment)
            else:
                self.outcomes.cut_reached(attachment)
        self.route(attachment)

    def tick(self) -> None:
        """Apply each subscriber's policy to what has grown in this round."""
        for link_attachments in list(self._stuck):
            self._bound(link_attachments)
        for link_attachments in list(self._queueing):
            for attachment in list(link_attachments.queued):
                self._check(attachment, attachment.count_queue() > attachment.queue_limit_bytes)
            if link_attachments.link.open:
                self.refill(link_attachments)
                self.host.dirty[link_attachments.link] = None
            if not link_attachments.queued:
                del self._queueing[link_attachments]

    def _check(self, attachment: EdgeAttachment, is_full: bool) -> None:
        state = attachment.state
        if state is AttachmentState.BLOCKED:
            if self.host.now - attachment.blocked_at > attachment.block_seconds:
                self._unblock_with_gap(attachment)
        elif is_full and state is AttachmentState.LIVE:
            self._overflow(attachment)
        elif is_full and state is AttachmentState.BUFFERING:
            self.outcomes.buffer_full(attachment)

    def _overflow(self, attachment: EdgeAttachment) -> None:
        if attachment.policy == "drop-oldest":
            dropped = attachment.drop_oldest(self.host.config.head_name)
            self.host.counters["deliveries_dropped"] += dropped
        elif attachment.policy == "disconnect":
            self.outcomes.disconnect(attachment)
        else:
            self.block(attachment)

    def _unblock_with_gap(self, attachment: EdgeAttachment) -> None:
        """End a block that has lasted `block_seconds`: what came since is lost, as a gap behind the queue."""
        self.host.counters["blocks_ended_by_gap"] += 1
        low, high = attachment.position + 1, self.host.position
        if attachment.pending_end is not None:  # the target delivers what follows
            high = min(high, attachment.pending_end.position)
        attachment.blocked_at = self.host.now
        if low > high:
            return
        if (before := attachment.take_back_gap()) is not None:
            low = before
        gap = msg.Gap(self.host.config.head_name, self.host.head_epoch, low, self.host.head_epoch, high, [], "blocked")
        attachment.add_gap(low, attachment.deliver_prefix + wire.encode(gap))
        attachment.position = high
