"""What happens to a subscriber that is behind: its own bounded queue, its policy at the bound, and its way back to
the stream.

Queues of one link are emptied in turn, so that a slow subscriber takes no more than its share. A blocked subscriber's
queue does not grow; once it is empty the rest is fetched from the head's log. What is held for one that is on its way
here is not emptied before GO, and no policy takes anything from it. END is behind all else, and is never dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.attachment import Attachment, Port, State
from plimsoll.core.catchup import Cursor
from plimsoll.core.config import BrokerConfig
from plimsoll.core.link import Link

REFILL_RECORDS = 64
"""So many records of one queue are moved before the next queue has its turn."""


class Host(Protocol):
    """What the queues need of their edge."""

    now: float
    position: int
    head_epoch: int
    config: BrokerConfig
    counters: Counter[str]
    dirty: dict[Link, None]

    def disconnect(self, attachment: Attachment) -> None: ...
    def hold_full(self, attachment: Attachment) -> None: ...
    def ended(self, attachment: Attachment) -> None:
        """All up to its cut has been queued, or sent."""


class Queues:
    """The queues of all attachments of an edge. `void` takes what the stream has for those that it passes over."""

    def __init__(self, host: Host, cursor: Cursor, ports: dict[Link, Port]) -> None:
        self.host, self.cursor, self.ports = host, cursor, ports
        self.void: list[bytes] = [b""]
        self._queueing: dict[Port, None] = {}
        self._stuck: dict[Port, None] = {}

    def forget(self, port: Port) -> None:
        """A link is over."""
        self._queueing.pop(port, None)
        self._stuck.pop(port, None)

    def live(self, attachment: Attachment) -> None:
        """From here on the stream serves this attachment."""
        if attachment.state is not State.CLOSED:
            attachment.state = State.LIVE
            attachment.position = self.host.position
            self.route(attachment)

    def route(self, attachment: Attachment) -> None:
        """Where the stream's records for this attachment go."""
        port = self.ports[attachment.link]
        if attachment.queue or attachment.dropped:
            self.put_aside(attachment)
        if attachment.state is State.HOLD:
            attachment.out = attachment.queue
            self.put_aside(attachment)
        elif attachment.state is not State.LIVE:
            attachment.out = self.void
        elif port.behind or attachment.paused or attachment.queue or attachment.dropped:
            attachment.out = attachment.queue
            self.put_aside(attachment)
        else:
            attachment.out = attachment.link.buffer
            port.queued.pop(attachment, None)

    def put_aside(self, attachment: Attachment) -> None:
        """This attachment has, or may get, something in its own queue."""
        port = self.ports[attachment.link]
        port.queued[attachment] = None
        self._queueing[port] = None

    def block(self, attachment: Attachment) -> None:
        """Its queue is full: it stops growing, and the rest is fetched from the head's log once there is room."""
        if attachment.state is State.LIVE:
            attachment.position = self.host.position
        self.cursor.leave(attachment)
        attachment.state, attachment.blocked_at = State.BLOCKED, self.host.now
        self.route(attachment)

    def end(self, attachment: Attachment, record: Callable[[], bytes]) -> bool:
        """From here on the stream passes over it. Whether its last record went behind what it has in its queue.

        If not, it is to be said on the link in this step.
        """
        attachment.state, attachment.out = State.ENDING, self.void
        is_queued = bool(attachment.queue or attachment.dropped)
        if is_queued:
            attachment.queue.append(record())
            self.put_aside(attachment)
        else:
            self.ports[attachment.link].queued.pop(attachment, None)
        return is_queued

    # -- queues

    def stuck(self, port: Port) -> None:
        """The round is over and the link has not taken all."""
        if port.stuck_since is None:
            port.stuck_since = self.host.now
        self._stuck[port] = None
        self._bound(port)

    def _bound(self, port: Port) -> None:
        """While a link is stuck its buffer grows to a bound; beyond it its attachments queue on their own."""
        if port.behind or port.stuck_since is None:
            self._stuck.pop(port, None)
        elif port.count_buffer() > self.host.config.limits.link_buffer_bytes:
            port.behind = True
            for attachment in port.attachments.values():
                self.route(attachment)

    def refill(self, port: Port) -> None:
        """Move queued records into the link's buffer, a few of each attachment in turn, as far as it takes them."""
        link = port.link
        room = min(link.writable_bytes(), self.host.config.limits.link_buffer_bytes) - sum(map(len, link.buffer))
        waiting = [
            a for a in port.queued if not a.paused and (a.queue or a.dropped) and a.state is not State.HOLD
        ]  # fmt: skip
        while room > 0 and waiting:
            attachment = waiting.pop(0)
            room -= self._move(attachment, link, room)
            if attachment.queue or attachment.dropped:
                waiting.append(attachment)
                port.queued[attachment] = port.queued.pop(attachment)  # its turn comes last, the next time too
            else:
                self._emptied(port, attachment)
        if port.behind and not waiting and room > 0:
            port.behind = False
            for attachment in port.attachments.values():
                self.route(attachment)

    def _move(self, attachment: Attachment, link: Link, room: int) -> int:
        moved = 0
        if attachment.dropped is not None:
            gap = attachment.handle + attachment.dropped.record()
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

    def _emptied(self, port: Port, attachment: Attachment) -> None:
        port.queued.pop(attachment, None)
        if attachment.state is State.BLOCKED:
            if attachment.end is None or attachment.position < attachment.end[0]:
                self.cursor.join(attachment)
            else:
                self.host.ended(attachment)
        self.route(attachment)

    def tick(self) -> None:
        """Apply each subscriber's policy to what has grown in this round."""
        del self.void[1:]
        for port in list(self._stuck):
            self._bound(port)
        for port in list(self._queueing):
            for attachment in list(port.queued):
                self._check(attachment, attachment.count_queue() > attachment.queue_limit_bytes)
            if port.link.open:
                self.refill(port)
                self.host.dirty[port.link] = None
            if not port.queued:
                del self._queueing[port]

    def _check(self, attachment: Attachment, is_full: bool) -> None:
        state = attachment.state
        if state is State.BLOCKED:
            if self.host.now - attachment.blocked_at > attachment.block_seconds:
                self._unblock_with_gap(attachment)
        elif is_full and state is State.LIVE:
            self._overflow(attachment)
        elif is_full and state is State.HOLD:
            self.host.hold_full(attachment)

    def _overflow(self, attachment: Attachment) -> None:
        if attachment.policy == "drop-oldest":
            dropped = attachment.drop_oldest(self.host.config.head_name)
            self.host.counters["deliveries_dropped"] += dropped
        elif attachment.policy == "disconnect":
            self.host.disconnect(attachment)
        else:
            self.block(attachment)

    def _unblock_with_gap(self, attachment: Attachment) -> None:
        """`block` has an end: what came while the queue was full is lost, as a gap behind what it holds."""
        self.host.counters["blocks_ended_by_gap"] += 1
        low, high = attachment.position + 1, self.host.position
        if attachment.end is not None:  # what follows is the target's
            high = min(high, attachment.end[0])
        attachment.blocked_at = self.host.now
        if low > high:
            return
        if (before := attachment.take_back_gap()) is not None:
            low = before
        gap = r.Gap(self.host.config.head_name, self.host.head_epoch, low, self.host.head_epoch, high, [], "blocked")
        attachment.add_gap(low, attachment.handle + wire.encode(gap))
        attachment.position = high
