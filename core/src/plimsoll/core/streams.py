"""The outgoing streams of a head: one outlet per edge and neighbour, each as far as its own link has got.

What is offered is a position of the log; what is told is an in-band message that is never dropped. A neighbour that
is down keeps
its outlet, and is sent again what it had not acknowledged when it is back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.link import Link
from plimsoll.core.log import Log, Origin, raise_to
from plimsoll.core.node import Node
from plimsoll.core.outlet import Doubt, Hole, Outlet
from plimsoll.core.wire import Token


class Streams:
    """Outlets by key: the name of a neighbour, or `name#link` for one incarnation of an edge's link."""

    def __init__(self, node: Node, log: Log, origin: Origin) -> None:
        self.node, self.log, self.origin = node, log, origin
        self.outlets: dict[str, Outlet] = {}
        self._retained: dict[str, Outlet] = {}
        self._behind: set[str] = set()

    def open(self, link: Link, is_head: bool) -> Outlet:
        """The outlet of a new link; a neighbour's goes on where its last link has stopped."""
        outlet = self._retained.pop(link.name, None) if is_head else None
        if outlet is None:
            outlet = Outlet(link, link.name if is_head else f"{link.name}#{link.id}", is_head)
        else:
            self._renew(outlet, link)
        link.owner, link.on_sealed = outlet, outlet.sealed
        self.outlets[outlet.key] = outlet
        outlet.measure()
        return outlet

    def _renew(self, outlet: Outlet, link: Link) -> None:
        """What a neighbour has not acknowledged is sent again: it knows what it has. If it has restarted it does not.

        handover.md, Restart of a head: then all of that is one gap, for some of it may have been delivered. It stands
        in the backlog, so that it outlives this link, too, until it is acknowledged.
        """
        again, sent = outlet.unacknowledged(), outlet.under_way()
        if sent and link.incarnation != outlet.incarnation:
            again[:sent] = [Doubt(_low(again[0]), _high(again[sent - 1]))]
        outlet.renew(link, again)

    def lost(self, outlet: Outlet) -> None:
        """The link of an outlet is over."""
        outlet.link.owner = outlet.link.on_sealed = None
        outlet.room = 0
        self.outlets.pop(outlet.key, None)
        if outlet.is_head:
            self._retained[outlet.key] = outlet
        else:
            self._behind.discard(outlet.key)

    def offer(self, keys: Iterable[str], position: int, record: bytes) -> None:
        """Offer an entry of the log to the links that need it."""
        for key in keys:
            outlet = self.outlets.get(key) or self._retained.get(key)
            if outlet is None:
                continue
            if outlet.offer(position, record):
                self.node.dirty[outlet.link] = None
            else:
                self._behind.add(key)

    def all_keys(self) -> list[str]:
        """Keys of all outlets, those of neighbours that are down included, in order."""
        return sorted({*self.outlets, *self._retained})

    def tell(self, outlet: Outlet, record: Any) -> None:
        """Send an in-band message behind all that this link still waits for."""
        self.node.count_said(record)
        self.tell_raw(outlet, wire.encode(record))

    def tell_raw(self, outlet: Outlet, record: bytes) -> None:
        if outlet.tell(record):
            self.node.dirty[outlet.link] = None
        else:
            self._behind.add(outlet.key)

    def tell_first(self, outlet: Outlet, record: Any) -> None:
        """Send an in-band message ahead of what waits; for what no position of this stream depends on."""
        self.node.count_said(record)
        outlet.tell_first(wire.encode(record))
        self.node.dirty[outlet.link] = None

    def pump(self, outlet: Outlet) -> None:
        """Send what was waiting as far as there is room; what the log has evicted meanwhile is a gap in its place."""
        outlet.measure()
        for hole in outlet.pump(self.log):
            gap = self._doubt(hole) if isinstance(hole, Doubt) else self.gap(hole.low, hole.high)
            outlet.tell_hole(hole, wire.encode(gap))
            self.node.counters["gaps_sent"] += 1
        if outlet.link.buffer:
            self.node.dirty[outlet.link] = None
        if not outlet.backlog:
            self._behind.discard(outlet.key)

    def gap(self, low: int, high: int) -> r.Gap:
        """A gap of evicted positions. handover.md: with the last offset per origin, from a table kept at eviction."""
        return self._gap(low, high, self.log.lost(low, high), "log")

    def _doubt(self, hole: Doubt) -> r.Gap:
        """A gap of what a neighbour had, or not, when it went down."""
        last = self.log.lost(*hole)
        for position, entry in self.log.after(hole.low - 1):
            if position > hole.high:
                break
            raise_to(last, entry.last)
        return self._gap(hole.low, hole.high, last, "restart")

    def logged(self) -> r.Gap:
        """A gap over all that this log has had so far, for a neighbour that was not known while it came in."""
        last = dict(self.log.gone)
        for _, entry in self.log.after(0):
            raise_to(last, entry.last)
        return self._gap(1, self.log.last, last, "restart")

    def _gap(self, low: int, high: int, last: dict[Origin, int], reason: str) -> r.Gap:
        head, epoch = self.origin
        offsets: list[Token] = [(*origin, offset) for origin, offset in sorted(last.items())]
        return r.Gap(head, epoch, low, epoch, high, offsets, reason)

    def progress(self) -> None:
        """Tell every edge that has all that it needs how far the log is; keep the backlogs of the others bounded."""
        for outlet in self.outlets.values():
            if not outlet.backlog and outlet.told < self.log.last and not outlet.is_head:
                outlet.told = self.log.last
                self.tell(outlet, r.Progress(self.log.last))
        for key in sorted(self._behind):
            outlet_behind = self.outlets.get(key) or self._retained.get(key)
            if outlet_behind is not None:
                outlet_behind.compact(self.log)

    def waiting(self) -> int:
        """Positions and messages that wait behind full links."""
        return sum(len(outlet.backlog) for outlet in self.outlets.values())


def _low(item: int | Hole) -> int:
    return item.low if isinstance(item, Hole) else item


def _high(item: int | Hole) -> int:
    return item.high if isinstance(item, Hole) else item
