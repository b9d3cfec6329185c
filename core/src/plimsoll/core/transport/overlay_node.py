"""The base of every machine on the network: links by peer, their handshakes, and frames in order.

A shell gives a node the frames that arrived (`receive`, `receive_control`) and the time (`poll`), and takes from it
what is to be sent (`data_to_send`, `control_to_send`, `dials_to_make`). A node touches nothing else. Machines override
its hooks: they learn of links that open or are lost, and get frames in order. Bad input is counted and refused here,
before any machine sees it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core.config import BrokerConfig
from plimsoll.core.metering.bucket import TokenBucket
from plimsoll.core.printable import is_told_again
from plimsoll.core.protocol import messages, wire
from plimsoll.core.protocol.wire import Info, WireError
from plimsoll.core.transport.flusher import Flusher
from plimsoll.core.transport.handshakes import Handshakes
from plimsoll.core.transport.heartbeats import Heartbeats
from plimsoll.core.transport.hooks import NodeHooks
from plimsoll.core.transport.link import FRAME_BYTES, Link, LinkLimits, Peer
from plimsoll.core.transport.refused_records import link_of_frame, refusal_text

MALFORMED_IN_A_ROW = 8
_HELLO = bytes([wire.HELLO])
"""Malformed frames from a peer, without a good one between them, after which it is refused."""

PEERS_COUNTED_AT_MOST = 10_000


class _CounterNames(dict[type, str]):
    """Counters of records, by their class."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __missing__(self, kind: type) -> str:
        name = self[kind] = self._prefix + kind.__name__
        return name


_SAID, _HEARD = _CounterNames("said_"), _CounterNames("heard_")


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to `endpoint` and call the peer by this name, in place of an earlier connection of that name.

    `public_key`: Z85, empty on plain links.
    """

    peer: str
    endpoint: str
    public_key: str = ""
    control: bool = False


@dataclass(frozen=True, slots=True)
class Hangup:
    """Close the connection that was dialled under this name."""

    peer: str
    control: bool = False


class OverlayNode(NodeHooks):
    """Base of the head, edge and client machines, which override its hooks.

    Its parts: `handshakes` opens and ends links, `heartbeats` keeps them up, `flusher` sends what has gathered on them.
    """

    def __init__(
        self,
        info: Info,
        limits: LinkLimits,
        new_id: Callable[[], int],
        *,
        max_frame_bytes: int,
        bucket: TokenBucket | None = None,
    ) -> None:
        super().__init__()
        self.info, self.link_limits, self.new_id = info, limits, new_id
        self.max_frame_bytes = max_frame_bytes
        self._bad: Counter[Peer] = Counter()
        # The parts share these lists; so they are emptied, never replaced.
        self._out: list[tuple[Peer, bytes]] = []
        self._control_out: list[tuple[Peer, bytes]] = []
        self._dials: list[Dial | Hangup] = []
        self._addresses: dict[str, Dial] = {}
        self.flusher = Flusher(self, self._out, bucket)
        self.handshakes = Handshakes(self, self.flusher, self._out, info=info, limits=limits, new_id=new_id)
        self.heartbeats = Heartbeats(self, self.handshakes, limits.heartbeat_seconds)
        self.links, self.dialled = self.handshakes.links, self.handshakes.dialled
        self.dirty, self.sealed = self.flusher.dirty, self.flusher.sealed
        self._names_applied = self.name_grants
        self.process: dict[str, Any] = {}
        """What the shell knows of its process: scalars, for `status`."""

    # -- for the shell

    def receive(self, peer: Peer, frames: Sequence[bytes], now: float) -> None:
        """Take all frames that one peer had, in order."""
        self.now = now
        for data in frames:
            try:
                if len(data) > self.max_frame_bytes:
                    raise WireError(
                        "oversized", f"a frame of {len(data)} bytes; at most {self.max_frame_bytes} are taken"
                    )
                self._receive(peer, data, wire.decode_frame(data))
            except WireError as error:
                self._refuse(peer, data, error)

    def receive_control(self, peer: Peer, data: bytes, now: float) -> None:
        """Take one frame from a control socket."""
        self.now = now
        try:
            frame = wire.decode_frame(data)
            if not isinstance(frame, wire.Control):
                raise WireError("misplaced", "only CONTROL frames travel on control sockets")
            for raw in frame.records:
                record = messages.decode(messages.control, raw)
                self.counters[_HEARD[type(record)]] += 1
                self.on_control(peer, record)
        except WireError as error:
            self.counters[f"control_refused_{error.code}"] += 1

    def gone(self, peer: Peer, now: float) -> None:
        """The transport cannot reach this peer: its link waits for a HELLO from a new connection."""
        self.now = now
        link = self.links.pop(peer, None)
        if link is not None and not link.initiator:
            link.open = False

    def regrant(self, now: float) -> None:
        """Look up all peers' permissions again, since the shell knows of a change."""
        self.now = now
        # Grants of names change what the peers of other links may do, too.
        is_renamed, self._names_applied = self.name_grants != self._names_applied, self.name_grants
        for link in list(self.links.values()):
            if not link.initiator and not self.handshakes.regrant(link) and is_renamed:
                self.on_granted(link)

    def expel(self, peer: Peer, text: str, now: float) -> None:
        """End the link of a peer that may no longer be here, and send it the reason."""
        self.now = now
        link = self.links.get(peer)
        if link is not None and not link.initiator:
            self.handshakes.expel(link, text)

    def poll(self, now: float) -> None:
        """End a round: let time pass, then flush what has gathered."""
        self.now = now
        if now >= self.heartbeats.next_beat_at:
            self.heartbeats.beat()
        if now >= self.heartbeats.next_probe_at:
            self.heartbeats.probe()
        if now >= self.handshakes.silent.next_at:
            self._dials += [self._addresses[peer] for peer in self.heartbeats.silent_heads()]
        self.on_tick()
        self.flusher.flush()
        # After the flush: an acknowledgement that goes with a frame of records need not go alone.
        self.flusher.acknowledge()

    def next_poll_at(self) -> float:
        """When `poll` is needed next."""
        return min(self.heartbeats.next_at(), self.wake_at(), self.flusher.next_at())

    def data_to_send(self) -> list[tuple[Peer, bytes]]:
        """Frames for the data sockets, in order; they are the shell's from now on."""
        out = self._out[:]
        self._out.clear()
        return out

    def control_to_send(self) -> list[tuple[Peer, bytes]]:
        """Frames for the control sockets; those go first."""
        out, self._control_out = self._control_out, []
        return out

    def dials_to_make(self) -> list[Dial | Hangup]:
        """Connections to make and to close, in order."""
        out, self._dials = self._dials, []
        return out

    def status(self) -> dict[str, Any]:
        """Counters and state, for people and for metrics."""
        return {
            "name": self.info.name,
            "role": self.info.role,
            "links": len(self.links),
            "counters": dict(self.counters),
            "process": dict(self.process),
        }

    # -- for machines: links

    def dial(self, peer: str, endpoint: str, public_key: str = "") -> Link:
        """Open a link to another broker; it says HELLO until it is answered."""
        self._addresses[peer] = Dial(peer, endpoint, public_key)
        self._dials.append(self._addresses[peer])
        return self.handshakes.dial(peer)

    def dial_control(self, peer: str, endpoint: str, public_key: str = "") -> None:
        self._dials.append(Dial(peer, endpoint, public_key, control=True))

    def hang_up(self, peer: str, reason: str) -> None:
        """Close a link that was dialled, in good order."""
        self._addresses.pop(peer, None)
        if self.handshakes.hang_up(peer, reason):
            self._dials.append(Hangup(peer))

    def knows(self, link: Link) -> bool:
        """Whether a link is not over."""
        return self.handshakes.knows(link)

    # -- for machines: records

    def put(self, link: Link, record: bytes) -> None:
        """Queue one encoded record for the end of the round."""
        link.buffer.append(record)
        self.dirty[link] = None

    def say(self, link: Link, record: messages.LinkMessage) -> None:
        """Queue one record for the end of the round."""
        self.count_said(record)
        self.put(link, wire.encode(record))

    def count_said(self, record: messages.LinkMessage | messages.ControlRecord) -> None:
        """Count a record that is sent; deliveries and relayed publications are metered as such."""
        self.counters[_SAID[type(record)]] += 1

    def say_control(self, peer: Peer, *records: messages.ControlRecord) -> None:
        for record in records:
            self.count_said(record)
        self._control_out.append((peer, wire.control_frame(*records)))

    def took(self, link: Link, frames: int = 1) -> None:
        """Give the sender its credit back; to a client that asks for more than can be answered now, later."""
        self.flusher.took(link, frames)

    def flush(self) -> None:
        """Send what has gathered now, not at the end of the round."""
        self.flusher.flush()

    # -- frames

    def _receive(self, peer: Peer, data: bytes, frame: wire.Frame) -> None:
        if isinstance(frame, wire.Data | wire.Ack):
            link = self.links.get(peer)
            if link is None or frame.link != link.id:
                self.handshakes.ask_who(peer)
            elif isinstance(frame, wire.Data):
                self._on_data(link, frame, len(data))
            else:
                link.last_heard = self.now
                if link.acknowledged(frame.ack, frame.credit, self.now):
                    self.flusher.on_room(link)
        elif isinstance(frame, wire.Control):
            raise WireError("misplaced", "CONTROL frames travel on control sockets only")
        else:
            self.handshakes.receive(peer, frame)
        if self._bad:
            self._bad.pop(peer, None)

    def _on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        before = link.acked, link.credit
        fits = link.accept(frame, size, self.now)
        if before != (link.acked, link.credit):
            # Room first: what the machine sends about this frame may then leave with it.
            self.flusher.on_room(link)
        if fits:
            self.flusher.owe_ack(link)
            self.on_data(link, frame, size)
            return
        self.counters["frames_out_of_order"] += 1
        if frame.seq < link.expected:
            # A repeated frame: the other side has missed the acknowledgement.
            self.flusher.owe_ack(link)
        else:
            self.handshakes.resync(link)

    def _refuse(self, peer: Peer, data: bytes, error: WireError) -> None:
        self.counters[f"frames_refused_{error.code}"] += 1
        times = self._bad[peer] = self._bad[peer] + 1
        link = self.links.get(peer)
        # Who says a HELLO without a link waits for its answer; it has no other way to learn of a fault of its own.
        is_hello = data[2:3] == _HELLO and link is None and is_told_again(times)
        if error.code == "version" or is_hello or times == MALFORMED_IN_A_ROW:
            number = link.id if link else link_of_frame(data[: self.max_frame_bytes])
            self._out.append((peer, wire.refuse_frame(number, error.code, refusal_text(error))))
        if len(self._bad) > PEERS_COUNTED_AT_MOST:
            # Any peer may connect and send rubbish; forgetting all counts only postpones a REFUSE.
            self._bad.clear()


def link_limits(config: BrokerConfig) -> LinkLimits:
    """The limits of a broker's links, with the time factor applied."""
    limits, factor = config.limits, config.time_factor
    return LinkLimits(
        window_bytes=limits.window_bytes,
        # What a sender may have under way is counted in frames; full ones must fit into the inbox.
        window_frames=max(4, min(limits.window_frames, limits.inbox_bytes // FRAME_BYTES)),
        heartbeat_seconds=limits.heartbeat_seconds * factor,
        dead_seconds=limits.dead_seconds * factor,
        max_connections=limits.max_connections,
    )


def output_bucket(config: BrokerConfig) -> TokenBucket | None:
    """The token bucket that keeps a broker to its output bandwidth; it saves up at least a page."""
    rate = config.hardware.output_bytes_per_second
    return None if rate is None else TokenBucket(rate, max(rate * config.hardware.output_burst_seconds, 4096.0))
