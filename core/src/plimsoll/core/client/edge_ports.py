"""The links of a client to edges: one for each edge that serves a subscriber here, or is to.

A port without attachments is closed after a while, since the next subscriber may well come to the same edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from itertools import count
from typing import Any, Protocol

from plimsoll.core.client.attachment import EdgePort
from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.client.subscriber import Attachment, Port
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import LISTED_AT_MOST
from plimsoll.core.transport.link import NEVER, Link


class PortsHost(Protocol):
    """The ports' interface to the client."""

    now: float
    limits: ClientLimits
    counters: Counter[str]

    def dial(self, peer: str, endpoint: str, public_key: str = "") -> Link: ...

    def hang_up(self, peer: str, reason: str) -> None: ...

    def say(self, link: Link, record: msg.FromClient) -> None: ...

    def on_attachment_lost(self, attachment: Attachment, reason: str) -> None:
        """The port of this attachment has been closed."""


class EdgePorts:
    """`by_edge`: the ports that are open, or being opened."""

    def __init__(self, host: PortsHost, numbers: count[int]) -> None:
        self._host, self._numbers = host, numbers
        self.by_edge: dict[str, Port] = {}
        self._idle: dict[Port, None] = {}

    def open(self, edge: str, endpoint: str, public_key: str) -> Port:
        """The port to this edge, for a new attachment; dialled if there is none."""
        port = self.by_edge.get(edge)
        if port is not None and (port.endpoint, port.public_key) != (endpoint, public_key):
            self.close(port, "the edge has another address now")
            port = None
        if port is None:
            peer = f"{edge}#{next(self._numbers)}"
            link = self._host.dial(peer, endpoint, public_key)
            port = link.owner = self.by_edge[edge] = EdgePort(edge, endpoint, public_key, peer, link)
        self._idle.pop(port, None)
        return port

    def close(self, port: Port, reason: str) -> None:
        """End a port: its subscribers look for another edge, each after a delay of its own."""
        self.by_edge.pop(port.edge, None)
        for attachment in list(port.attachments.values()):
            self._host.on_attachment_lost(attachment, reason)
        self._idle.pop(port, None)
        self._host.hang_up(port.peer, reason)

    def release(self, attachment: Attachment) -> None:
        """Take an attachment off its port."""
        port = attachment.port
        port.attachments.pop(attachment.id, None)
        if not port.attachments:
            port.idle_since = self._host.now
            self._idle[port] = None

    def say_detach(self, *attachments: Attachment, withdraw: bool = False) -> None:
        """Send DETACH for these attachments, which are all of one port."""
        if asked := [attachment.id for attachment in attachments if attachment.is_asked]:
            for at in range(0, len(asked), LISTED_AT_MOST):
                self._host.say(attachments[0].port.link, msg.Detach(asked[at : at + LISTED_AT_MOST], withdraw))

    def attachments(self, port: Port, numbers: Iterable[int]) -> Iterator[Attachment]:
        """The attachments of these numbers; records for ended ones are counted."""
        for number in numbers:
            if (attachment := port.attachments.get(number)) is None:
                self._host.counters["records_for_unknown_attachments"] += 1
            else:
                yield attachment

    def forget_all(self) -> None:
        self.by_edge.clear()

    # -- time

    def on_connections(self, unconnected: Container[str]) -> None:
        """The shell has no connection to these peers: see `Client.unconnected`."""
        for port in self.by_edge.values():
            if port.peer not in unconnected:
                port.away_since = NEVER
            elif port.away_since == NEVER:
                port.away_since = self._host.now

    def close_away(self) -> None:
        """Leave edges that have had no connection for `away_seconds`."""
        for port in [port for port in self.by_edge.values() if self._is_away(port)]:
            self.close(port, "its connection is gone")

    def _is_away(self, port: Port) -> bool:
        return port.link.was_open and self._host.now - port.away_since >= self._host.limits.away_seconds

    def close_idle(self) -> None:
        """Close ports that have had no attachment for `idle_seconds`."""
        now, idle_seconds = self._host.now, self._host.limits.idle_seconds
        for port in [port for port in self._idle if now - port.idle_since >= idle_seconds]:
            # The last DETACH must have arrived: an edge that misses it goes on serving a subscriber that has left.
            if not port.link.open or not (port.link.unacked or port.link.buffer):
                self.close(port, "no subscriber here needs it")

    def wake_at(self) -> float:
        at, limits = NEVER, self._host.limits
        for port in self.by_edge.values():
            if port.link.was_open:
                at = min(at, port.away_since + limits.away_seconds)
        for port in self._idle:
            at = min(at, max(port.idle_since + limits.idle_seconds, self._host.now + limits.link.ack_seconds))
        return at

    def status(self) -> dict[str, Any]:
        return {
            port.edge: {"attachments": len(port.attachments), "rtt_seconds": port.link.rtt_seconds}
            for port in self.by_edge.values()
        }
