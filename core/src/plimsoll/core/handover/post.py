"""Records on their way through the tree of heads, from one that a session concerns to another.

The tree is the map: what is not known goes to all neighbours but the one that it came from, and whoever passes
something on learns where its sender lives. What a lost link had is gone; sessions have deadlines for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Raw

from plimsoll.core import records as r
from plimsoll.core import wire


class Host(Protocol):
    """What the post needs of its head."""

    @property
    def name(self) -> str: ...
    def neighbors(self) -> list[str]:
        """Neighbours whose link is up and in step."""

    def to_neighbor(self, neighbor: str, record: object) -> None: ...
    def arrived(self, source: str, edge: str, record: object) -> None:
        """Something for this head, or for one of its edges."""


class Post:
    """`hops`: the neighbour that leads to each head that has been heard of."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.hops: dict[str, str] = {}

    def send(self, to: str, record: object, edge: str = "") -> bool:
        """Send something to a head, or to one of its edges; False if no neighbour can take it."""
        return self._pass_on(r.Route(to, self.host.name, edge, Raw(wire.encode(record))), "")  # type: ignore[arg-type]

    def on_route(self, neighbor: str, route: r.Route) -> None:
        """Take what is for us, pass on what is not.

        Raises:
            WireError: `malformed`, if it is for us and cannot be read.

        """
        if route.source == self.host.name:  # it has come round: this is no tree
            return
        self.hops[route.source] = neighbor
        if route.to == self.host.name:
            self.host.arrived(route.source, route.edge, r.decode(r.routed, route.item))
        else:
            self._pass_on(route, neighbor)

    def _pass_on(self, route: r.Route, source: str) -> bool:
        ways = [name for name in self.host.neighbors() if name != source]
        if (hop := self.hops.get(route.to)) is not None or route.to in ways:
            ways = [name for name in ways if name == (hop or route.to)]
        for neighbor in ways:
            self.host.to_neighbor(neighbor, route)
        return bool(ways)

    def reaches(self, head: str) -> bool:
        """Whether there is a way that may lead to this head."""
        hop = self.hops.get(head)
        ways = self.host.neighbors()
        return hop in ways if hop is not None else bool(ways)

    def lost(self, neighbor: str) -> None:
        """What a neighbour led to may be elsewhere when it is back: that is learned anew."""
        self.hops = {head: hop for head, hop in self.hops.items() if hop != neighbor}

    def behind(self, neighbor: str, heads: Iterable[str]) -> list[str]:
        """Those of these heads that may lie behind a neighbour."""
        near = self.host.neighbors()
        return [head for head in heads if self.hops.get(head, head if head in near else neighbor) == neighbor]
