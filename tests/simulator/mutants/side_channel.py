"""A side channel for messages that mark a point of their stream, so that they arrive too early or too late.

A message of the chosen kind is not put into its link but kept here, and is handed to the receiving machine at its time,
regardless of how far that machine has read the stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from plimsoll.core.client import Client
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport.link import Link
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.simulator.engine.host import SimulatedHost


@dataclass
class SideChannel:
    """Messages of `kind` with their times of arrival, by the names of sender and receiver."""

    kind: type[Any]
    seconds: float
    held: dict[tuple[str, str], list[tuple[float, Any]]] = field(default_factory=dict)
    hosts: dict[str, SimulatedHost] = field(default_factory=dict)

    def takes(self, node: OverlayNode, link: Link, record: Any) -> bool:
        """Take a message if it is of the chosen kind; returns whether it was taken."""
        inner = msg.decode(msg.routed, record.item) if isinstance(record, msg.Route) else record
        if not isinstance(inner, self.kind) or not link.name:
            return False
        self.held.setdefault((node.info.name, link.name), []).append((node.now + self.seconds, record))
        if (host := self.hosts.get(link.name)) is not None:
            host.wake(self.seconds)
        return True

    def deliver(self, node: OverlayNode) -> None:
        """Pass the messages that are due to this machine."""
        for link in [*node.handshakes.accepted_links(), *node.dialled.values()]:
            items = self.held.get((link.name, node.info.name))
            while items and items[0][0] <= node.now and link.open:
                _hand(node, link, items.pop(0)[1])


def _hand(node: OverlayNode, link: Link, record: Any) -> None:
    if isinstance(node, Head):
        if link.owner is not None:
            node.record_input.deal(
                link, msg.decode(msg.between_heads if _is_head(link) else msg.from_edge, wire.encode(record)), False
            )
    elif isinstance(node, Edge):
        if link is node.head:
            node.head_messages.handle(record)
        else:
            list(node.client_intake.handle(link, record))
    elif isinstance(node, Client) and link.owner is not None:
        node.edge_records.on_record(link.owner, record)  # type: ignore[arg-type]  # what an edge sends, as this link comes from one


def _is_head(link: Link) -> bool:
    return link.remote is not None and link.remote.role == "head"


def install(patch: pytest.MonkeyPatch, kind: type[Any], seconds: float) -> None:
    """Deliver all messages of this kind outside their streams, `seconds` after they were sent."""
    channel = SideChannel(kind, seconds)
    say, send, poll = OverlayNode.say, Outboxes.send, OverlayNode.poll

    def patched_say(self: OverlayNode, link: Link, record: Any) -> None:
        if not channel.takes(self, link, record):
            say(self, link, record)

    def patched_send(self: Outboxes, outbox: Any, record: Any) -> None:
        if not channel.takes(self.node, outbox.link, record):
            send(self, outbox, record)

    def patched_poll(self: OverlayNode, now: float) -> None:
        self.now = now
        channel.deliver(self)
        poll(self, now)

    def patched_round(self: SimulatedHost) -> None:
        channel.hosts[self.name] = self
        one_round(self)

    one_round = SimulatedHost._round
    for owner, name, value in (
        (OverlayNode, "say", patched_say),
        (Outboxes, "send", patched_send),
        (OverlayNode, "poll", patched_poll),
        (SimulatedHost, "_round", patched_round),
    ):
        patch.setattr(owner, name, value)
