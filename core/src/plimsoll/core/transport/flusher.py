"""The sending half of an overlay node: records gathered on its links leave as frames at the end of a round.

Records of one round share frames, and acknowledgements ride on frames that leave anyway, so both wait for the end of
the round. A link holds back what its window, its credit or the broker's output bandwidth does not allow yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from plimsoll.core.metering.bucket import TokenBucket
from plimsoll.core.metering.meter import FrameCounts
from plimsoll.core.transport.hooks import NodeHooks
from plimsoll.core.transport.link import FRAME_BYTES, NEVER, Link, Peer, seal_small


class Flusher:
    """Links that wait to send: records (`dirty`), acknowledgements and credit. `out`: the frames to be sent, in order.

    `dirty` stays the same object, since the hot paths of brokers put links into it without a call.
    """

    def __init__(self, hooks: NodeHooks, out: list[tuple[Peer, bytes]], bucket: TokenBucket | None) -> None:
        self._hooks, self._out, self._bucket = hooks, out, bucket
        self.dirty: dict[Link, None] = {}
        self.sealed = FrameCounts()
        self._acking: dict[Link, None] = {}
        self._owed: dict[Link, int] = {}

    def on_room(self, link: Link) -> None:
        """The link may send again, or more than before."""
        if link.buffer:
            self.dirty[link] = None
        self._hooks.on_room(link)

    def drop(self, link: Link) -> None:
        """The link is over: send nothing more on it."""
        self.dirty.pop(link, None)
        self._acking.pop(link, None)
        self._owed.pop(link, None)

    # -- acknowledgements and credit

    def owe_ack(self, link: Link) -> None:
        """Look at the link's acknowledgement when the round ends; the link knows when it is due."""
        self._acking[link] = None

    def took(self, link: Link, frames: int) -> None:
        """Give the sender its credit back, or owe it to a client that does not read what it is sent."""
        if link.remote is not None and link.remote.role == "client" and self._hooks.holds(link):
            self._owed[link] = self._owed.get(link, 0) + frames
        else:
            link.took(frames, self._hooks.now)
            # the frame may have been acknowledged long before it was handled
            self._acking[link] = None

    def acknowledge(self) -> None:
        """Return owed credit where it is no longer held back, and send the acknowledgements that are due."""
        now = self._hooks.now
        for link in [link for link in self._owed if not self._hooks.holds(link)]:
            link.took(self._owed.pop(link), now)
            self._acking[link] = None
        for link in list(self._acking):
            if link.ack_due_at <= now:
                if link.open:
                    self._out.append((link.peer, link.ack()))
                    self._hooks.counters["said_Ack"] += 1
                del self._acking[link]
            elif link.ack_due_at == NEVER:  # it went with a frame of records
                del self._acking[link]

    def next_at(self) -> float:
        """When the next acknowledgement is due, or bandwidth is available again for what was held back."""
        at = min((link.ack_due_at for link in self._acking), default=NEVER)
        if self._bucket is not None and self.dirty:
            at = min(at, self._bucket.ready_at(self._hooks.now))
        return at

    # -- records

    def flush(self) -> None:
        """Seal each link's gathered records into frames, as far as windows, credit and bandwidth allow."""
        if not self.dirty:
            return
        links: Iterable[Link] = list(self.dirty)
        # Cleared first: a link that runs out of bandwidth, or that a hook writes to meanwhile, goes back in.
        self.dirty.clear()
        if self._bucket is None:
            frames = len(self._out)
            links, records, size = seal_small(links, self._hooks.now, self._out)
            self.sealed.frames += len(self._out) - frames
            self.sealed.records += records
            self.sealed.bytes += size
            for link in links:
                self._flush_link(link)
        else:
            self._flush_in_turns(deque(links), self._bucket)

    def _flush_link(self, link: Link) -> None:
        buffer = link.buffer
        while buffer:
            if link.writable_bytes() <= 0:
                # `on_room` brings it back.
                return self._hooks.on_stuck(link)
            self._seal(link, buffer)
        return None

    def _flush_in_turns(self, links: deque[Link], bucket: TokenBucket) -> None:
        """A frame of each link in turn, as far as the bandwidth goes; the next call begins where this one ends.

        Were each link emptied before the next, one with much to send would take all of the bandwidth.
        """
        while links and bucket.open(self._hooks.now):
            link = links.popleft()
            if link.buffer and link.writable_bytes() > 0:
                self._seal(link, link.buffer)
                links.append(link)
            elif link.buffer:
                self._hooks.on_stuck(link)
        for link in links:
            if link.buffer:
                self.dirty[link] = None
                self._hooks.on_stuck(link)

    def _seal(self, link: Link, buffer: list[bytes]) -> None:
        """One frame of the records in the buffer, or of its front."""
        count = len(buffer)
        if count == 1 or sum(map(len, buffer)) <= FRAME_BYTES:
            frame = link.seal(buffer, self._hooks.now)
            buffer.clear()
        else:
            count = fitting(buffer)
            frame = link.seal(buffer[:count], self._hooks.now)
            del buffer[:count]
        if self._bucket is not None:
            self._bucket.spend(len(frame), self._hooks.now)
        if link.on_sealed is not None:
            link.on_sealed(count)
        self.sealed.frames += 1
        self.sealed.records += count
        self.sealed.bytes += len(frame)
        self._out.append((link.peer, frame))
        if link.is_stuck:
            self._hooks.on_moving(link)


def fitting(buffer: list[bytes]) -> int:
    """How many records from the front fit into one frame; at least one."""
    size = 0
    for i, record in enumerate(buffer):
        size += len(record)
        if size > FRAME_BYTES and i:
            return i
    return len(buffer)
