"""What every machine on the network shares: links by peer, handshakes, heartbeats and the end of a round.

A shell gives a node the frames that arrived (`receive`, `receive_control`), the time (`tick`) and takes what is to
be sent
(`take`, `take_control`, `take_dials`). A node touches nothing else. Subclasses are told of links that open or are
lost and of
frames in order; bad input is counted and refused here, before any subclass sees it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core import records, wire
from plimsoll.core.config import BrokerConfig
from plimsoll.core.grants import EVERYTHING, NOTHING, Grant
from plimsoll.core.link import FRAME_BYTES, Link, LinkLimits, Peer, seal_small
from plimsoll.core.load import Bucket, Sealed
from plimsoll.core.wire import Info, WireError

NEVER = float("inf")
HELD_ABOVE_RECORDS = 4096
"""A client that has so many records waiting for it is given no credit: what it asks for must not fill the memory."""

MALFORMED_IN_A_ROW = 8
"""So many malformed frames without a good one between them, and the peer is refused."""


class _Names(dict[type, str]):
    """Counters of records, by their class."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __missing__(self, kind: type) -> str:
        name = self[kind] = self._prefix + kind.__name__
        return name


_SAID, _HEARD = _Names("said_"), _Names("heard_")


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to `endpoint` and call the peer by this name. `public_key`: Z85, empty on plain links."""

    peer: str
    endpoint: str
    public_key: str = ""
    control: bool = False


@dataclass(frozen=True, slots=True)
class Hangup:
    """Close the connection that was dialled under this name."""

    peer: str
    control: bool = False


class Node:
    """Base of the head, edge and client machines."""

    def __init__(
        self,
        info: Info,
        limits: LinkLimits,
        new_id: Callable[[], int],
        *,
        max_frame_bytes: int,
        bucket: Bucket | None = None,
    ) -> None:
        self.info, self.link_limits, self.new_id = info, limits, new_id
        self.max_frame_bytes, self.bucket = max_frame_bytes, bucket
        self.now = 0.0
        self.counters: Counter[str] = Counter()
        self.links: dict[Peer, Link] = {}
        self.dialled: dict[str, Link] = {}
        self._accepted: dict[tuple[str, int], Link] = {}
        self._bad: Counter[Peer] = Counter()
        self._out: list[tuple[Peer, bytes]] = []
        self._control_out: list[tuple[Peer, bytes]] = []
        self._dials: list[Dial | Hangup] = []
        self._acking: dict[Link, None] = {}
        self._owed: dict[Link, int] = {}
        self.dirty: dict[Link, None] = {}
        self.sealed = Sealed()
        self._next_beat = 0.0
        self.grant_of: Callable[[Any], Grant | None] = lambda peer: EVERYTHING
        """What the shell knows of a peer: what it may do; None if it does not know it now."""
        self.process: dict[str, Any] = {}
        """What the shell knows of its process: scalars, for `status`."""

    # -- what a subclass answers

    def admits(self, info: Info) -> str:
        """Why this peer may not open a link here; an empty string if it may."""
        return ""

    def on_open(self, link: Link) -> None:
        """A link is new: nothing has been said on it yet."""

    def on_lost(self, link: Link) -> None:
        """A link that was open is over for good; what it carried and was not acknowledged is gone."""

    def on_granted(self, link: Link) -> None:
        """The peer of an open link may do something else than before: `link.grant`."""

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        """A frame of records, in order. The subclass calls `took` once it has dealt with it."""

    def on_room(self, link: Link) -> None:
        """The other side has acknowledged something or given credit."""

    def on_stuck(self, link: Link) -> None:
        """At the end of a round the link has something left that it may not send yet."""

    def on_moving(self, link: Link) -> None:
        """A link with `is_stuck` has sent something."""

    def holds(self, link: Link) -> bool:
        """Whether a client is given no credit now: it does not take what it is told."""
        return len(link.buffer) > HELD_ABOVE_RECORDS

    def on_control(self, peer: Peer, record: Any) -> None:
        """A record on a control socket."""

    def on_tick(self) -> None:
        """Time has passed."""

    def wake_at(self) -> float:
        """When `on_tick` is wanted next, in the node's time."""
        return NEVER

    # -- what a shell calls

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
                self._refuse(peer, error)

    def receive_control(self, peer: Peer, data: bytes, now: float) -> None:
        """Take one frame from a control socket."""
        self.now = now
        try:
            frame = wire.decode_frame(data)
            if not isinstance(frame, wire.Control):
                raise WireError("misplaced", "only CONTROL frames travel on control sockets")
            for raw in frame.records:
                record = records.decode(records.control, raw)
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
        """Ask anew what peers may do: the shell knows of a change."""
        self.now = now
        for link in list(self.links.values()):
            if not link.initiator:
                self._grant(link)

    def expel(self, peer: Peer, text: str, now: float) -> None:
        """End the link of a peer that may not be here any more, and say so."""
        self.now = now
        link = self.links.get(peer)
        if link is not None and not link.initiator:
            self._out.append((peer, wire.refuse_frame(link.id, "refused", text)))
            self._forget(link)
            self.on_lost(link)

    def tick(self, now: float) -> None:
        """End a round: let time pass, then flush what has gathered."""
        self.now = now
        if now >= self._next_beat:
            self._next_beat = now + self.link_limits.heartbeat_seconds
            self._beat()
        self.on_tick()
        self.flush()
        for link in [link for link in self._owed if not self.holds(link)]:
            link.took(self._owed.pop(link), now)
            self._acking[link] = None
        if self._acking:
            self._send_due_acks()

    def next_tick(self) -> float:
        """When `tick` is wanted next."""
        at = min(self._next_beat, self.wake_at())
        for link in self._acking:
            at = min(at, link.ack_due_at)
        if self.bucket is not None and self.dirty:
            at = min(at, self.bucket.ready_at(self.now))
        return at

    def take(self) -> list[tuple[Peer, bytes]]:
        """Frames for the data sockets, in order; they are the shell's from now on."""
        out, self._out = self._out, []
        return out

    def take_control(self) -> list[tuple[Peer, bytes]]:
        """Frames for the control sockets; those go first."""
        out, self._control_out = self._control_out, []
        return out

    def take_dials(self) -> list[Dial | Hangup]:
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

    def served(self, frames: int, seconds: float) -> None:
        """The shell's measure of one round: so many frames, so many seconds from frames in to buffers out."""

    # -- for subclasses

    def dial(self, peer: str, endpoint: str, public_key: str = "") -> Link:
        """Open a link to another broker; it says HELLO until it is answered."""
        link = Link(
            peer, local=self.info, limits=self.link_limits, initiator=True, new_id=self.new_id, now=self.now
        )  # fmt: skip
        self.dialled[peer] = self.links[peer] = link
        self._dials.append(Dial(peer, endpoint, public_key))
        self._out.append((peer, link.hello(self.now)))
        return link

    def dial_control(self, peer: str, endpoint: str, public_key: str = "") -> None:
        self._dials.append(Dial(peer, endpoint, public_key, control=True))

    def hang_up(self, peer: str, reason: str) -> None:
        """Close a link that was dialled, in good order."""
        link = self.dialled.pop(peer, None)
        if link is None:
            return
        if link.was_open:
            self._out.append((peer, wire.bye_frame(link.id, reason)))
        self._forget(link)
        self._dials.append(Hangup(peer))

    def reopen(self, link: Link, reason: str) -> None:
        """Give up a dialled link whose stream cannot be read, and open another: both sides start anew."""
        self._out.append((link.peer, wire.bye_frame(link.id, reason)))
        link.over(self.now)
        self._acking.pop(link, None)
        self.dirty.pop(link, None)
        self.on_lost(link)
        self._out.append((link.peer, link.hello(self.now)))

    def put(self, link: Link, record: bytes) -> None:
        """Queue one encoded record for the end of the round."""
        link.buffer.append(record)
        self.dirty[link] = None

    def say(self, link: Link, record: Any) -> None:
        """Queue one record for the end of the round."""
        self.count_said(record)
        self.put(link, wire.encode(record))

    def count_said(self, record: Any) -> None:
        """Count a record that is said; deliveries and relayed publications are metered as such."""
        self.counters[_SAID[type(record)]] += 1

    def say_control(self, peer: Peer, *said: Any) -> None:
        for record in said:
            self.count_said(record)
        self._control_out.append((peer, wire.control_frame(*said)))

    def took(self, link: Link, frames: int = 1) -> None:
        """Give the sender its credit back; to a client that asks for more than can be answered now, later."""
        if link.remote is not None and link.remote.role == "client" and self.holds(link):
            self._owed[link] = self._owed.get(link, 0) + frames
        else:
            link.took(frames, self.now)
            self._acking[link] = None  # it may have been acknowledged long before it was taken

    def close(self, link: Link, reason: str) -> None:
        """End an accepted link."""
        self._out.append((link.peer, wire.bye_frame(link.id, reason)))
        self._forget(link)
        self.on_lost(link)

    def knows(self, link: Link) -> bool:
        """Whether a link is not over."""
        return self._accepted.get((link.name, link.id)) is link or self.dialled.get(str(link.peer)) is link

    def accepted_links(self) -> list[Link]:
        """Links that others have opened to this node, open or waiting for their peer to come back."""
        return list(self._accepted.values())

    # -- frames

    def _receive(self, peer: Peer, data: bytes, frame: wire.Frame) -> None:
        link = self.links.get(peer)
        if type(frame) is wire.Data:
            if link is None or frame.link != link.id:
                self._who(peer)
            else:
                self._on_data(link, frame, len(data))
        elif isinstance(frame, wire.Ack):
            if link is None or frame.link != link.id:
                self._who(peer)
            else:
                link.last_heard = self.now
                if link.acknowledged(frame.ack, frame.credit, self.now):
                    self._room(link)
        elif isinstance(frame, wire.Hello):
            self._on_hello(peer, frame)
        elif isinstance(frame, wire.HelloOk):
            self._on_hello_ok(peer, frame)
        elif isinstance(frame, wire.Control):
            raise WireError("misplaced", "CONTROL frames travel on control sockets only")
        elif not isinstance(frame, wire.Data):
            self._small_frame(peer, link, frame)
        if self._bad:
            self._bad.pop(peer, None)

    def _on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        before = link.acked, link.credit
        fits = link.accept(frame, size, self.now)
        if before != (link.acked, link.credit):
            self._room(link)
        if fits:
            self._acking[link] = None
            self.on_data(link, frame, size)
        else:
            self._misfit(link, frame.seq)

    def _room(self, link: Link) -> None:
        if link.buffer:
            self.dirty[link] = None
        self.on_room(link)

    def _small_frame(self, peer: Peer, link: Link | None, frame: wire.Who | wire.Beat | wire.Bye | wire.Refuse) -> None:
        if isinstance(frame, wire.Who):
            if link is not None and link.initiator:
                self._out.append((peer, link.hello(self.now)))
        elif link is None or frame.link != link.id:
            if isinstance(frame, wire.Beat):
                self._who(peer)
        elif isinstance(frame, wire.Beat):
            link.last_heard = self.now
            if frame.kind == wire.PING:
                self._out.append((peer, wire.pong_frame(link.id, frame.time_us)))
            else:
                link.rtt_seconds = max(0.0, self.now - frame.time_us / 1e6)
        elif isinstance(frame, wire.Bye):
            self._on_bye(link)
        else:
            self.counters["refused_by_peer"] += 1
            self.on_refused(link, frame.code, frame.text)

    def on_refused(self, link: Link, code: str, text: str) -> None:
        """The other side will not have this link, and says why."""

    def _on_bye(self, link: Link) -> None:
        if link.initiator:
            link.over(self.now)
        else:
            self._forget(link)
        self.on_lost(link)

    def _misfit(self, link: Link, seq: int) -> None:
        self.counters["frames_out_of_order"] += 1
        if seq < link.expected:
            self._acking[link] = None
        elif (frame := link.resync(self.now)) is not None:
            self._out.append((link.peer, frame))

    def _who(self, peer: Peer) -> None:
        """An accepting side does not know this peer; a dialling side waits for the answer to its own HELLO."""
        if not isinstance(peer, str):
            self._out.append((peer, wire.who_frame()))

    def _refuse(self, peer: Peer, error: WireError) -> None:
        self.counters[f"frames_refused_{error.code}"] += 1
        self._bad[peer] += 1
        if error.code == "version" or self._bad[peer] == MALFORMED_IN_A_ROW:
            link = self.links.get(peer)
            self._out.append((peer, wire.refuse_frame(link.id if link else 0, error.code, str(error))))
        if len(self._bad) > 10_000:
            self._bad.clear()

    # -- handshakes

    def _on_hello(self, peer: Peer, hello: wire.Hello) -> None:
        if isinstance(peer, str):
            raise WireError("misplaced", "HELLO is said by the side that dials")
        if why := self.admits(hello.info):
            self.counters["peers_refused"] += 1
            self._out.append((peer, wire.refuse_frame(hello.link, "refused", why)))
            return
        link = self._accepted.get((hello.info.name, hello.link))
        if link is None and hello.known:
            self._out.append((peer, wire.hello_ok_frame(hello.link, 0, True, self.info)))
            return
        fresh = link is None
        if link is None:
            self._end_older(hello.info.name)
            link = Link(
                peer, local=self.info, limits=self.link_limits, initiator=False, new_id=self.new_id, now=self.now
            )  # fmt: skip
            self._accepted[hello.info.name, hello.link] = link
        self._bind(link, peer)
        self._out += [(peer, frame) for frame in link.on_hello(hello, self.now)]
        if fresh:
            link.grant = self.grant_of(peer) or NOTHING
            self.on_open(link)
        else:
            self._grant(link)
            self._room(link)

    def _grant(self, link: Link) -> None:
        granted = self.grant_of(link.peer)
        if granted is not None and granted != link.grant:
            link.grant = granted
            self.on_granted(link)

    def _end_older(self, name: str) -> None:
        """A peer that starts anew has lost what it had before: its older link is over."""
        for key in [key for key in self._accepted if key[0] == name]:
            link = self._accepted[key]
            self._forget(link)
            self.on_lost(link)

    def _bind(self, link: Link, peer: Peer) -> None:
        if self.links.get(link.peer) is link:
            del self.links[link.peer]
        other = self.links.get(peer)
        if other is not None and other is not link:
            # A connection carries one link: whoever opens another one on it has given the first one up.
            self._forget(other)
            self.on_lost(other)
        link.peer = peer
        self.links[peer] = link

    def _on_hello_ok(self, peer: Peer, answer: wire.HelloOk) -> None:
        link = self.links.get(peer)
        if link is None or not link.initiator:
            return
        known = link.was_open
        lost, frames = link.on_hello_ok(answer, self.now)
        self._out += [(peer, frame) for frame in frames]
        if lost:
            self.dirty.pop(link, None)
            self._acking.pop(link, None)
            self.on_lost(link)
        elif frames:
            self._room(link) if known else self.on_open(link)

    def _forget(self, link: Link) -> None:
        link.open = False
        if self.links.get(link.peer) is link:
            del self.links[link.peer]
        if link.remote is not None:
            self._accepted.pop((link.name, link.id), None)
        self._acking.pop(link, None)
        self._owed.pop(link, None)
        self.dirty.pop(link, None)

    # -- time

    def _beat(self) -> None:
        time_us = int(self.now * 1e6)
        for link in [*self._accepted.values(), *self.dialled.values()]:
            if link.dead(self.now) and (link.was_open or not link.initiator):
                self._on_dead(link)
            elif link.initiator and not link.open:
                self._out.append((link.peer, link.hello(self.now)))
            elif link.open:
                self._out.append((link.peer, wire.ping_frame(link.id, time_us)))
                if link.stalled(self.now) and (frame := link.resync(self.now)) is not None:
                    self._out.append((link.peer, frame))

    def _on_dead(self, link: Link) -> None:
        known = link.was_open
        if link.initiator:
            link.over(self.now)
            self._acking.pop(link, None)
            self.dirty.pop(link, None)
            self._out.append((link.peer, link.hello(self.now)))
        else:
            self._forget(link)
        if known:
            self.counters["links_lost"] += 1
            self.on_lost(link)

    def _send_due_acks(self) -> None:
        for link in list(self._acking):
            if link.ack_due_at <= self.now:
                if link.open:
                    self._out.append((link.peer, link.ack()))
                    self.counters["said_Ack"] += 1
                del self._acking[link]
            elif link.ack_due_at == NEVER:
                del self._acking[link]

    # -- the end of a round

    def flush(self) -> None:
        """Seal what has gathered on each link into frames, as far as windows, credit and bandwidth allow."""
        if not self.dirty:
            return
        dirty, self.dirty = self.dirty, {}
        rest: Iterable[Link] = dirty
        if self.bucket is None:
            frames = len(self._out)
            rest, records, size = seal_small(dirty, self.now, self._out)
            self.sealed.frames += len(self._out) - frames
            self.sealed.records += records
            self.sealed.bytes += size
        for link in rest:
            self._flush_link(link)

    def _flush_link(self, link: Link) -> None:
        buffer, bucket = link.buffer, self.bucket
        while buffer:
            if link.writable_bytes() <= 0:
                return self.on_stuck(link)
            if bucket is not None and not bucket.open(self.now):
                self.dirty[link] = None
                return self.on_stuck(link)
            self._seal(link, buffer)
        return None

    def _seal(self, link: Link, buffer: list[bytes]) -> None:
        """One frame of what is in the buffer, or of its front."""
        count = len(buffer)
        if count == 1 or sum(map(len, buffer)) <= FRAME_BYTES:
            frame = link.seal(buffer, self.now)
            buffer.clear()
        else:
            count = fitting(buffer)
            frame = link.seal(buffer[:count], self.now)
            del buffer[:count]
        if self.bucket is not None:
            self.bucket.spend(len(frame), self.now)
        if link.on_sealed is not None:
            link.on_sealed(count)
        self.sealed.frames += 1
        self.sealed.records += count
        self.sealed.bytes += len(frame)
        self._out.append((link.peer, frame))
        if link.is_stuck:
            self.on_moving(link)


def fitting(buffer: list[bytes]) -> int:
    """How many records from the front fit into one frame; at least one."""
    size = 0
    for i, record in enumerate(buffer):
        size += len(record)
        if size > FRAME_BYTES and i:
            return i
    return len(buffer)


def link_limits(config: BrokerConfig) -> LinkLimits:
    """The limits of a broker's links, with the time factor applied."""
    limits, factor = config.limits, config.time_factor
    return LinkLimits(
        window_bytes=limits.window_bytes,
        # What a sender may have under way is counted in frames; full ones must fit into the inbox.
        window_frames=max(4, min(limits.window_frames, limits.inbox_bytes // FRAME_BYTES)),
        heartbeat_seconds=limits.heartbeat_seconds * factor,
        dead_seconds=limits.dead_seconds * factor,
    )


def output_bucket(config: BrokerConfig) -> Bucket | None:
    """The token bucket that keeps a broker to its output bandwidth; it saves up a twentieth of a second."""
    rate = config.hardware.output_bytes_per_second
    return None if rate is None else Bucket(rate, max(rate / 20, 4096.0))
