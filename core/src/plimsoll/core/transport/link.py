"""The reliable link: ZeroMQ drops silently on a reconnect and at its high-water marks; a link does not.

Rules of the place:
- Frames of records are numbered from 1. The receiver takes them in order and exactly once, and acknowledges
  cumulatively.
- Unacknowledged frames are kept, at most `window_bytes`, and are sent again only after a HELLO has said what arrived.
- The receiver's credit (the highest number that may be sent) holds the sender when the application behind it is slow.
- A link has one identity from HELLO to its end. A side that has lost its state answers `lost`; then both start a new
  link, and the machine above learns that the old one is over. Nothing is ever delivered from one link to the next.

Pure: frames in, frames out, time as an argument. Numbers count frames, not records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from plimsoll.core.permissions import ALL_PERMISSIONS
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.round_trips import RoundTrip

Peer = Hashable

FRAME_BYTES = 64 * 1024
"""A frame is closed when it has reached this size; a single larger record still travels in a frame of its own."""

NEVER = float("inf")
JOINED_RECORDS = 256
"""Records that are joined before it is known whether they fit into one frame; nearly always they do."""

ACK_EVERY_FRAMES = 32
ACK_EVERY_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """Bounds of a link. `window_bytes`: unacknowledged bytes of the sender. `window_frames`: the receiver's credit.

    `max_connections`: links of clients with one identity that a broker has at a time.
    """

    window_bytes: int = 1024 * 1024
    window_frames: int = 1024
    heartbeat_seconds: float = 1.0
    dead_seconds: float = 10.0
    ack_seconds: float = 0.02
    max_connections: int = 2_000


class Link:
    """One side of a reliable link.

    `flags` go with every frame. `unacked` are the frames after `acked`, in order. `on_sealed` gets the number of
    records of each frame. `is_stuck`: the round has ended and something was left. `buffer` holds encoded records until
    the end of the round; the list stays the same object for the life of the link. `identity`: whose key an accepted
    link was opened with; without keys, not `has_key`, `identity_of_name`.

    `acks_dealt`: frames are acknowledged when they have been dealt with, not when they have arrived. `dealt` counts
    those; of frame `held_from` and later ones something is held in memory, so none of them is safe; 0: nothing is held.

    One class for both directions, since they share its numbers, and a call from part to part would cost time on every
    frame. The module `link_handshake` opens and resumes it. For HELLOs `repeated_bytes` were sent again, and have not
    been acknowledged since; after `repeats` of such HELLOs the next one is answered from `repeat_at` on.
    """

    __slots__ = (
        "_answer",
        "_flags",
        "_start_of_head",
        "ack_due_at",
        "acked",
        "acks_dealt",
        "buffer",
        "consumed",
        "credit",
        "credit_told",
        "dealt",
        "expected",
        "grant",
        "has_key",
        "held_from",
        "hello_at",
        "id",
        "identity",
        "inflight_bytes",
        "initiator",
        "is_stuck",
        "last_heard",
        "last_progress",
        "limits",
        "local",
        "new_id",
        "next_seq",
        "on_sealed",
        "open",
        "owner",
        "peer",
        "remote",
        "repeat_at",
        "repeated_bytes",
        "repeats",
        "resync_asked",
        "round_trip",
        "stats",
        "unacked",
        "unacked_in_bytes",
        "unacked_in_frames",
        "was_open",
    )

    def __init__(
        self, peer: Peer, *, local: Info, limits: LinkLimits, initiator: bool, new_id: Callable[[], int], now: float
    ) -> None:
        self.peer, self.local, self.limits, self.initiator, self.new_id = peer, local, limits, initiator, new_id
        self.remote: Info | None = None
        self.owner: object = None
        self.grant = ALL_PERMISSIONS
        self.identity = ""
        self.has_key = True
        self.round_trip = RoundTrip()
        self._flags = 0
        self.is_stuck = self.acks_dealt = False
        self.on_sealed: Callable[[int], None] | None = None
        self.last_heard = self.last_progress = now
        self.stats = LinkStats()
        self.buffer: list[bytes] = []
        self.start(new_id() if initiator else 0)

    def start(self, link_id: int) -> None:
        """A link of this number begins: nothing has been sent or received on it."""
        self.id = link_id
        self._start_of_head, self._answer = wire.data_link(link_id, self._flags), b""
        self.open = self.was_open = False
        self.next_seq, self.acked, self.credit = 1, 0, 0
        self.unacked: deque[bytes] = deque()
        self.inflight_bytes = 0
        self.buffer.clear()
        self.expected, self.consumed, self.credit_told = 1, 0, 0
        self.dealt = self.held_from = 0
        self.unacked_in_frames = self.unacked_in_bytes = 0
        self.ack_due_at = float("inf")
        self.resync_asked = self.hello_at = self.repeat_at = float("-inf")
        self.repeated_bytes = self.repeats = 0

    @property
    def name(self) -> str:
        """The name of the other side, or an empty string before it has said HELLO."""
        return self.remote.name if self.remote else ""

    @property
    def incarnation(self) -> int:
        """The incarnation of the other side, or 0 before it has said HELLO."""
        return self.remote.incarnation if self.remote else 0

    @property
    def rtt_seconds(self) -> float:
        """How long a frame to the other side and its answer take; 0 as long as that is not known."""
        return self.round_trip.seconds

    # -- sending

    @property
    def flags(self) -> int:
        return self._flags

    @flags.setter
    def flags(self, flags: int) -> None:
        if flags != self._flags:
            self._flags, self._start_of_head = flags, wire.data_link(self.id, flags)

    def writable_bytes(self) -> int:
        """How many bytes may be sent now; zero or less when the link is closed, out of credit or its window is full."""
        if not self.open or self.next_seq > self.credit:
            return 0
        return self.limits.window_bytes - self.inflight_bytes

    def seal(self, chunks: list[bytes], now: float) -> bytes:
        """Number a frame of these records, keep it until it is acknowledged, and return it to be sent."""
        answer = self._answer or self._say_answer()
        head = wire.data_head(self._start_of_head, self.next_seq, answer, len(chunks))
        frame = head + (chunks[0] if len(chunks) == 1 else b"".join(chunks))
        if not self.unacked:
            self.last_progress = now
        self.unacked.append(frame)
        self.next_seq += 1
        self.inflight_bytes += len(frame)
        if self.unacked_in_frames:
            self._ack_sent()
        return frame

    def _say_answer(self) -> bytes:
        """The fields of frames about the other direction; cached until something is received or taken."""
        self._answer = wire.data_answer(self.safe(), self._grant())
        return self._answer

    def _grant(self) -> int:
        self.credit_told = self.consumed + self.limits.window_frames
        return self.credit_told

    def _ack_sent(self) -> None:
        self.unacked_in_frames = self.unacked_in_bytes = 0
        self.ack_due_at = NEVER

    # -- receiving

    def accept(self, frame: wire.Data, size: int, now: float) -> bool:
        """Whether this frame is the next one, and so is received. Its acknowledgement counts in either case."""
        self.last_heard = now
        self.acknowledged(frame.ack, frame.credit, now)
        if frame.seq != self.expected or frame.seq > self.credit_told:
            self.stats.frames_refused += 1
            if frame.seq < self.expected:
                # It was sent again, so the acknowledgement was lost: acknowledge now, or it comes once more.
                self.ack_due_at = now
            return False
        self.expected += 1
        self._answer = b""
        self.stats.frames_in += 1
        self.stats.records_in += len(frame.records)
        self.stats.bytes_in += size
        self.unacked_in_frames += 1
        self.unacked_in_bytes += size
        if (
            frame.flags & wire.FLAG_ACK_NOW
            or self.unacked_in_frames >= ACK_EVERY_FRAMES
            or self.unacked_in_bytes >= ACK_EVERY_BYTES
        ):
            self.ack_due_at = now
        elif self.ack_due_at == float("inf"):
            self.ack_due_at = now + self.limits.ack_seconds
        return True

    def took(self, frames: int, now: float) -> None:
        """The application has dealt with this many frames; their credit goes back with the next acknowledgement."""
        self.consumed += frames
        self._answer = b""
        if self.consumed + self.limits.window_frames - self.credit_told >= self.limits.window_frames // 2:
            self.ack_due_at = now

    def deals(self, now: float) -> None:
        """The last record of the next frame has been dealt with, or is held."""
        self.dealt += 1
        if self.acks_dealt:
            self._answer = b""
            if self.ack_due_at == NEVER:  # one went out before this frame could be acknowledged
                self.ack_due_at = now + self.limits.ack_seconds

    def hold(self) -> None:
        """A record of the frame that is being dealt with is held in memory: a crash would lose it."""
        if self.acks_dealt and not self.held_from:
            self.held_from = self.dealt + 1

    def release(self, now: float) -> None:
        """Nothing is held any more."""
        self.held_from, self._answer, self.ack_due_at = 0, b"", now

    def safe(self) -> int:
        """The last frame that may be acknowledged: the other side forgets it then."""
        if not self.acks_dealt:
            return self.expected - 1
        return min(self.dealt, self.held_from - 1) if self.held_from else self.dealt

    def acknowledged(self, ack: int, credit: int, now: float) -> bool:
        """Take a cumulative acknowledgement and credit. True when either moved forward."""
        moved = credit > self.credit
        if moved:
            self.credit = credit
        if self.acked < ack < self.next_seq:
            self._drop_acked(ack)
            self.last_progress = now
            moved = True
        return moved

    def _drop_acked(self, ack: int) -> None:
        before = self.inflight_bytes
        if ack == self.next_seq - 1:
            self.unacked.clear()
            self.inflight_bytes = 0
        else:
            take = self.unacked.popleft
            for _ in range(ack - self.acked):
                self.inflight_bytes -= len(take())
        self.acked = ack
        if self.repeated_bytes:
            self.repeated_bytes = max(self.repeated_bytes - before + self.inflight_bytes, 0)

    def ack(self) -> bytes:
        """An acknowledgement on its own."""
        self._ack_sent()
        self.stats.acks_out += 1
        return wire.ack_frame(self.id, self.safe(), self._grant())

    # -- time

    def stalled(self, now: float) -> bool:
        """Whether nothing has moved for three heartbeats: what was sent is unacknowledged, or nothing may be sent.

        Credit that was given and got lost on its way is given again with the answer to a HELLO.
        """
        waits = bool(self.unacked) or self.next_seq > self.credit
        return self.open and waits and now - self.last_progress > 3 * self.limits.heartbeat_seconds

    def dead(self, now: float) -> bool:
        """Whether the other side has been silent for `dead_seconds`."""
        return now - self.last_heard > self.limits.dead_seconds


def seal_small(links: Iterable[Link], now: float, out: list[tuple[Peer, bytes]]) -> tuple[list[Link], int, int]:
    """Hot path of a fan-out: one frame for each link whose buffer fits into one and that may send.

    Does what `Link.seal` does, written out: at one record a frame, its calls cost as much as its work. Returns the
    links that want more care, and how many records and bytes were sealed.
    """
    rest: list[Link] = []
    records = size = 0
    head, join, most = wire.data_head, b"".join, FRAME_BYTES + wire.DATA_HEAD_BYTES
    for link in links:
        buffer = link.buffer
        count, seq = len(buffer), link.next_seq
        if (
            not 0 < count <= JOINED_RECORDS
            or link.is_stuck
            or not link.open
            or seq > link.credit
            or link.inflight_bytes >= link.limits.window_bytes
        ):
            rest.append(link)
            continue
        start = head(link._start_of_head, seq, link._answer or link._say_answer(), count)
        frame = start + (buffer[0] if count == 1 else join(buffer))
        length = len(frame)
        if length > most and count > 1:
            rest.append(link)
            continue
        if not link.unacked:
            link.last_progress = now
        link.unacked.append(frame)
        link.next_seq = seq + 1
        link.inflight_bytes += length
        if link.unacked_in_frames:
            link._ack_sent()
        buffer.clear()
        if link.on_sealed is not None:
            link.on_sealed(count)
        out.append((link.peer, frame))
        records += count
        size += length
    return rest, records, size


class LinkStats:
    """Counters of one side of a link, since it was made; they count frames and bytes, and records inside frames."""

    __slots__ = (
        "acks_out",
        "bytes_in",
        "frames_again",
        "frames_in",
        "frames_refused",
        "records_in",
    )

    def __init__(self) -> None:
        self.acks_out = self.bytes_in = self.frames_again = self.frames_in = self.frames_refused = self.records_in = 0

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}
