"""The two ends of a broker under test: a stand-in for its head that feeds it, and clients that count deliveries.

Both do as little as they can, so that the broker between them is measured. The feeder sends publications that were
encoded before; a client reads the number of records from a frame's header and decodes nothing unless `decode` is set.
Both keep to the protocol: numbers, acknowledgements, credit.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from msgspec import Raw

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import ACK_EVERY_BYTES, ACK_EVERY_FRAMES, Link, LinkLimits
from plimsoll.core.transport.overlay_node import OverlayNode

HEAD, EDGE, CLUSTER, EPOCH = "head", "edge", "bench", 1
WINDOW_FRAMES = 1 << 20
RESUMES_A_FRAME = 64
_HEADER = struct.Struct(">8xBxQ19xI")
"""Flags, sequence number and count of records, from the header of a DATA frame."""


class Feeder(OverlayNode):
    """Stands in for a head: it answers its edge at once and sends it the publications of the run."""

    def __init__(self, new_id: Callable[[], int], window_bytes: int = 1 << 20) -> None:
        limits = LinkLimits(window_bytes=window_bytes, window_frames=1024, heartbeat_seconds=1.0, dead_seconds=60.0)
        super().__init__(Info(HEAD, "head", EPOCH), limits, new_id, max_frame_bytes=1 << 20)
        self.edge: Link | None = None
        self.position = 0
        self.covered = 0

    def on_open(self, link: Link) -> None:
        self.edge = link

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        for raw in frame.records:
            record = msg.decode(msg.from_edge, raw)
            if isinstance(record, msg.EdgeReport):
                self.say(link, msg.Welcome(self.position))
            elif isinstance(record, msg.ResumeUp):
                at = self.position
                self.say(link, msg.ResumedDown(record.subscriber, record.epoch, at, at, (EPOCH, at), None, False))
                self.say(link, msg.CoverAck(record.cover.seq, []))
                self.covered += 1
            elif isinstance(record, msg.Cover):
                self.say(link, msg.CoverAck(record.seq, []))
        self.took(link)

    def encoded(self, bodies: Sequence[bytes], count: int, sent_us: int = 0) -> list[bytes]:
        """`count` publications encoded for the stream, from the last position on."""
        first, self.position = self.position + 1, self.position + count
        return [
            wire.encode(msg.Pub(at, HEAD, EPOCH, at, "publisher", EPOCH, at, 0, sent_us, Raw(bodies[at % len(bodies)])))
            for at in range(first, first + count)
        ]

    def room(self) -> bool:
        return self.edge is not None and self.edge.writable_bytes() > 0


def bodies_of(publications: Sequence[dict[str, str | int | float | bool]]) -> list[bytes]:
    return [wire.encode(msg.Body(attributes)) for attributes in publications]


def credit_in(frame: wire.Frame, before: int) -> int:
    """The highest number that a publisher may use once it has read this frame."""
    records = frame.records if isinstance(frame, wire.Data) else []
    said = (msg.decode(msg.to_client, raw) for raw in records)
    return max([before, *(each.through for each in said if isinstance(each, msg.Opened | msg.Credit))])


class CountingClient:
    """One client link with some subscribers on it, which counts its deliveries. `receive` returns frames to send."""

    def __init__(
        self, name: str, link_id: int, subscribers: Sequence[tuple[str, str]], *, decode: bool = False
    ) -> None:
        self.name, self.link, self.subscribers, self.decode = name, link_id, subscribers, decode
        self.sent = self.received = self.acked = 0
        self.deliveries = self.frames = self.bytes = self.acked_bytes = self.subacks = self.acks = 0
        self.latencies_us: list[int] = []
        self.clock_us: Callable[[], int] | None = None

    def hello(self) -> bytes:
        return wire.hello_frame(self.link, self.received, False, Info(self.name, "client", 1))

    def resumes(self) -> list[bytes]:
        """Each subscriber attaches with its one subscription."""
        records = []
        for number, (name, text) in enumerate(self.subscribers):
            items = [msg.SubscriptionItem(1, text)]
            records.append(wire.encode(msg.Resume(number + 1, name, (1, 1), 1, items, msg.Policy(), None, [], None)))
        found = []
        for at in range(0, len(records), RESUMES_A_FRAME):
            some = records[at : at + RESUMES_A_FRAME]
            self.sent += 1
            credit = self.received + WINDOW_FRAMES
            found.append(wire.data_frame(self.link, 0, self.sent, self.received, credit, some, len(some)))
        return found

    def receive(self, data: bytes) -> list[bytes]:
        kind = data[2]
        if kind == wire.DATA:
            return self._data(data)
        if kind == wire.HELLO_OK:
            return [self._ack(), *self.resumes()]
        if kind == wire.PING:
            beat = wire.decode_frame(data)
            return [wire.pong_frame(self.link, beat.time_us)] if isinstance(beat, wire.Beat) else []
        return []

    def _data(self, data: bytes) -> list[bytes]:
        flags, seq, count = _HEADER.unpack_from(data)
        if seq != self.received + 1:
            raise AssertionError(f"{self.name}: frame {seq} after {self.received}")
        self.received = seq
        self.frames += 1
        self.bytes += len(data)
        if self.decode or self.clock_us is not None or self.subacks < len(self.subscribers):
            self._decoded(data)
        else:
            self.deliveries += count
        if (
            flags & wire.FLAG_ACK_NOW
            or seq - self.acked >= ACK_EVERY_FRAMES
            or self.bytes - self.acked_bytes >= ACK_EVERY_BYTES
        ):
            return [self._ack()]
        return []

    def _decoded(self, data: bytes) -> None:
        now_us = self.clock_us() if self.clock_us is not None else 0
        for raw in wire.decode_frame(data).records:  # type: ignore[union-attr]  # heads and edges send records
            record = msg.decode(msg.to_client, raw)
            if isinstance(record, msg.Deliver):
                self.deliveries += 1
                if now_us and isinstance(record.item, msg.PubOpen) and record.item.sent_us:
                    self.latencies_us.append(now_us - record.item.sent_us)
            elif isinstance(record, msg.Suback):
                self.subacks += 1

    def _ack(self) -> bytes:
        self.acked, self.acked_bytes = self.received, self.bytes
        self.acks += 1
        return wire.ack_frame(self.link, self.received, self.received + WINDOW_FRAMES)


def spread(texts: Sequence[str], links: int) -> list[list[tuple[str, str]]]:
    """Subscribers with one subscription each, dealt out to `links` links."""
    shares: list[list[tuple[str, str]]] = [[] for _ in range(links)]
    for i, text in enumerate(texts):
        shares[i % links].append((f"subscriber{i:05d}", text))
    return shares
