"""A way around the stream, for records that define a point in it: they arrive too early, or too late.

A record of a chosen kind is not put into its link but kept here, and handed to the machine at the other end when it is
its time, in whatever place of the stream that machine then is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.client import Client
from plimsoll.core.edge import Edge
from plimsoll.core.head import Head
from plimsoll.core.link import Link
from plimsoll.core.node import Node
from plimsoll.core.streams import Streams
from plimsoll.simulator.host import Host


@dataclass
class SideChannel:
    """Records of `kind`, with the time from which on they are there, by the names of who sends and who receives."""

    kind: type[Any]
    seconds: float
    held: dict[tuple[str, str], list[tuple[float, Any]]] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)

    def takes(self, node: Node, link: Link, record: Any) -> bool:
        """Whether a record goes this way."""
        inner = r.decode(r.routed, record.item) if isinstance(record, r.Route) else record
        if not isinstance(inner, self.kind) or not link.name:
            return False
        self.held.setdefault((node.info.name, link.name), []).append((node.now + self.seconds, record))
        if (host := self.hosts.get(link.name)) is not None:
            host.wake(self.seconds)
        return True

    def deliver(self, node: Node) -> None:
        """Hand over what is due to this machine."""
        for link in [*node.accepted_links(), *node.dialled.values()]:
            items = self.held.get((link.name, node.info.name))
            while items and items[0][0] <= node.now and link.open:
                _hand(node, link, items.pop(0)[1])


def _hand(node: Node, link: Link, record: Any) -> None:
    if isinstance(node, Head):
        if link.owner is not None:
            node._handle(link, r.decode(r.between_heads if _is_head(link) else r.from_edge, wire.encode(record)), False)
    elif isinstance(node, Edge):
        if link is node.head:
            node._of_head[type(record)](record)
        else:
            node._of_clients[type(record)](link, record)
    elif isinstance(node, Client) and link.owner is not None:
        node._on_attachment(link.owner, record)  # type: ignore[arg-type]


def _is_head(link: Link) -> bool:
    return link.remote is not None and link.remote.role == "head"


def install(patch: pytest.MonkeyPatch, kind: type[Any], seconds: float) -> None:
    """Send all records of this kind around the streams, `seconds` after they were said."""
    channel = SideChannel(kind, seconds)
    say, tell, tick = Node.say, Streams.tell, Node.tick

    def said(self: Node, link: Link, record: Any) -> None:
        if not channel.takes(self, link, record):
            say(self, link, record)

    def told(self: Streams, outlet: Any, record: Any) -> None:
        if not channel.takes(self.node, outlet.link, record):
            tell(self, outlet, record)

    def ticked(self: Node, now: float) -> None:
        self.now = now
        channel.deliver(self)
        tick(self, now)

    def round_(self: Host) -> None:
        channel.hosts[self.name] = self
        one_round(self)

    one_round = Host._round
    for owner, name, value in (
        (Node, "say", said),
        (Streams, "tell", told),
        (Node, "tick", ticked),
        (Host, "_round", round_),
    ):
        patch.setattr(owner, name, value)
