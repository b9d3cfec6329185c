"""A way around the stream, for records that define a point in it: they arrive too early, or too late.

A record of a chosen kind is not put into its link but kept here, and handed to the machine at the other end when it is
its time, in whatever place of the stream that machine then is.
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
    """Records of `kind`, with the time from which on they are there, by the names of who sends and who receives."""

    kind: type[Any]
    seconds: float
    held: dict[tuple[str, str], list[tuple[float, Any]]] = field(default_factory=dict)
    hosts: dict[str, SimulatedHost] = field(default_factory=dict)

    def takes(self, node: OverlayNode, link: Link, record: Any) -> bool:
        """Whether a record goes this way."""
        inner = msg.decode(msg.routed, record.item) if isinstance(record, msg.Route) else record
        if not isinstance(inner, self.kind) or not link.name:
            return False
        self.held.setdefault((node.info.name, link.name), []).append((node.now + self.seconds, record))
        if (host := self.hosts.get(link.name)) is not None:
            host.wake(self.seconds)
        return True

    def deliver(self, node: OverlayNode) -> None:
        """Hand over what is due to this machine."""
        for link in [*node.accepted_links(), *node.dialled.values()]:
            items = self.held.get((link.name, node.info.name))
            while items and items[0][0] <= node.now and link.open:
                _hand(node, link, items.pop(0)[1])


def _hand(node: OverlayNode, link: Link, record: Any) -> None:
    if isinstance(node, Head):
        if link.owner is not None:
            node._handle(
                link, msg.decode(msg.between_heads if _is_head(link) else msg.from_edge, wire.encode(record)), False
            )
    elif isinstance(node, Edge):
        if link is node.head:
            node.head_messages.handle(record)
        else:
            list(node.client_intake.client_requests.handle(link, record))
    elif isinstance(node, Client) and link.owner is not None:
        node.edge_records.on_record(link.owner, record)  # type: ignore[arg-type]


def _is_head(link: Link) -> bool:
    return link.remote is not None and link.remote.role == "head"


def install(patch: pytest.MonkeyPatch, kind: type[Any], seconds: float) -> None:
    """Send all records of this kind around the streams, `seconds` after they were said."""
    channel = SideChannel(kind, seconds)
    say, tell, poll = OverlayNode.say, Outboxes.send, OverlayNode.poll

    def said(self: OverlayNode, link: Link, record: Any) -> None:
        if not channel.takes(self, link, record):
            say(self, link, record)

    def told(self: Outboxes, outbox: Any, record: Any) -> None:
        if not channel.takes(self.node, outbox.link, record):
            tell(self, outbox, record)

    def polled(self: OverlayNode, now: float) -> None:
        self.now = now
        channel.deliver(self)
        poll(self, now)

    def round_(self: SimulatedHost) -> None:
        channel.hosts[self.name] = self
        one_round(self)

    one_round = SimulatedHost._round
    for owner, name, value in (
        (OverlayNode, "say", said),
        (Outboxes, "send", told),
        (OverlayNode, "poll", polled),
        (SimulatedHost, "_round", round_),
    ):
        patch.setattr(owner, name, value)
