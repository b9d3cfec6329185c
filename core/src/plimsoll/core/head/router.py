"""Messages from one head to another through the tree of heads.

No head has a map. A message for an unknown head goes to all neighbours but the one that it came from; each head that
passes one on learns in which direction its sender lies. What a lost link carried is gone: sessions have deadlines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Raw

from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

EVERY_HEAD = "*"
"""The destination of what is for all heads; no head has this name."""

Deliver = Callable[[str, str, msg.Routed], None]
"""Take a message for this head: its source, the edge that it is for or an empty string, and the message."""


class NeighborTable(Protocol):
    def synced_neighbors(self) -> list[str]:
        """Neighbours whose link is up and that have this head's whole cover."""


class NeighborSender(Protocol):
    def send_to(self, key: str, record: msg.Route) -> None:
        """Send in the stream of a neighbour."""


class TreeRouter(HeadPart):
    """`hops`: the neighbour that leads to each head that a message has come from."""

    def __init__(self, name: str, table: NeighborTable, sender: NeighborSender, deliver: Deliver) -> None:
        self.name, self.table, self.sender, self.deliver = name, table, sender, deliver
        self.hops: dict[str, str] = {}

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.Route, lambda outbox, route: self.on_route(outbox.name, route))

    def send(self, to: str, message: msg.Routed | msg.ToEdge, edge: str = "") -> bool:
        """Send a message to a head, or to one of its edges; False if no neighbour can take it."""
        return self._pass_on(msg.Route(to, self.name, edge, Raw(wire.encode(message))), "")

    def send_to_all(self, message: msg.Routed) -> bool:
        """Send a message to all other heads; False if no neighbour can take it."""
        return self.send(EVERY_HEAD, message)

    def on_route(self, neighbor: str, route: msg.Route) -> None:
        """Deliver a message for this head, pass on what is for others.

        Raises:
            WireError: `malformed`, if it is for us and cannot be read.

        """
        if route.source == self.name:  # it has come round, so the links form no tree; stop it here
            return
        self.hops[route.source] = neighbor
        if route.to in (self.name, EVERY_HEAD):
            self.deliver(route.source, route.edge, msg.decode(msg.routed, route.item))
        if route.to != self.name:
            self._pass_on(route, neighbor)

    def _pass_on(self, route: msg.Route, source: str) -> bool:
        ways = [name for name in self.table.synced_neighbors() if name != source]
        if (hop := self.hops.get(route.to)) is not None or route.to in ways:
            ways = [name for name in ways if name == (hop or route.to)]
        for neighbor in ways:
            self.sender.send_to(neighbor, route)
        return bool(ways)

    def reaches(self, head: str) -> bool:
        """Whether there is a way that may lead to this head."""
        hop = self.hops.get(head)
        ways = self.table.synced_neighbors()
        return hop in ways if hop is not None else bool(ways)

    def forget_routes(self, neighbor: str) -> None:
        """Forget what lies behind a lost neighbour: the tree may be another one when it is back."""
        self.hops = {head: hop for head, hop in self.hops.items() if hop != neighbor}

    def behind(self, neighbor: str, heads: Iterable[str]) -> list[str]:
        """Those of these heads that may lie behind a neighbour."""
        near = self.table.synced_neighbors()
        return [head for head in heads if self.hops.get(head, head if head in near else neighbor) == neighbor]
