"""The stream from the head: frames are decoded here, and pass through the emulated input queue where there is one."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.head_messages import HeadMessages
from plimsoll.core.matching import Index
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.metering.service_queue import ServiceQueue
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport.handshakes import Handshakes
from plimsoll.core.transport.link import Link

ROUND_DELIVERIES = 20_000
"""Deliveries of one frame after which links are flushed, so that their buffers stay bounded within a round."""

QueuedMessage = tuple[int, msg.ToEdge, bytes, bool]
"""The head link's id, a message, its bytes, and whether its frame's credit is due once it has been served."""


class StreamConsumer(Protocol):
    """What reading the stream needs of its edge."""

    config: BrokerConfig
    counters: Counter[str]
    handshakes: Handshakes
    index: Index
    meter: LoadMeter
    server: ServiceQueue[QueuedMessage]

    @property
    def now(self) -> float: ...
    @property
    def head(self) -> Link: ...
    def deliver(self, pub: msg.PubOpen, piece: bytes, /) -> None: ...
    def flush(self) -> None: ...
    def took(self, link: Link, /) -> None: ...


class StreamInput:
    """Hands publications to the edge, and all other messages to `HeadMessages`, in the order of the stream."""

    def __init__(self, host: StreamConsumer, head_messages: HeadMessages) -> None:
        self.host, self.head_messages = host, head_messages

    def on_frame(self, frame: wire.Data) -> None:
        """Take one frame of the stream. Hot path: without emulation each message is dealt with at once."""
        host = self.host
        decode, deliver, handle = msg.to_edge.decode, host.deliver, self.head_messages.handle
        last = len(frame.records) - 1
        meter, transparent, mark = host.meter, host.server.transparent, host.meter.deliveries
        # Credit is held back only when the inbox is full: what waits upstream would not be seen as load here.
        is_held = host.server.waiting_bytes > host.config.limits.inbox_bytes
        for i, raw in enumerate(frame.records):
            piece = bytes(raw)
            try:
                message = decode(piece)
            except (ValueError, RecursionError) as error:
                # A message that is lost leaves the cover, or a session, in an unknown state: only a new stream helps.
                host.counters["streams_unreadable"] += 1
                host.handshakes.reopen(host.head, f"a record of the stream cannot be read: {error}")
                return
            if not transparent:
                is_pub = isinstance(message, msg.PubOpen)
                if is_pub:
                    meter.arrivals += 1
                    meter.bytes_in += len(piece)
                item = (host.head.id, message, piece, is_held and i == last)
                host.server.submit(item, len(piece), host.now, is_publication=is_pub)
            elif isinstance(message, msg.PubOpen):
                meter.arrivals += 1
                meter.bytes_in += len(piece)
                deliver(message, piece)
            else:
                handle(message)
            if meter.deliveries - mark > ROUND_DELIVERIES:
                mark = meter.deliveries
                host.flush()
        if not is_held or last < 0:
            host.took(host.head)

    def serve(self) -> None:
        """Deal with the messages whose emulated service has finished by now."""
        host = self.host
        while (done := host.server.finished(host.now, len(host.index))) is not None:
            link_id, message, piece, ends_frame = done.item
            host.meter.count_serviced(done)
            if link_id != host.head.id:
                continue  # it came on a stream that is over, and is sent again on the new one
            if isinstance(message, msg.PubOpen):
                host.deliver(message, piece)
            else:
                self.head_messages.handle(message)
            if ends_frame:
                host.took(host.head)
