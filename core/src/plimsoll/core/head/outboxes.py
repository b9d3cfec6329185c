"""The outgoing streams of a head: one outbox per edge and neighbour, each as far as its own link has got.

Log entries are offered by position, and may be evicted before they are sent; in-band messages are never dropped. A
neighbour that is down keeps its outbox, and is sent again what it had not acknowledged when it is back.
"""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.core.head.log import Log
from plimsoll.core.head.outbox import LostRange, Outbox, UncertainRange
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.origins import Origin, raise_to
from plimsoll.core.protocol.wire import Token
from plimsoll.core.transport.link import Link
from plimsoll.core.transport.overlay_node import OverlayNode


class Outboxes:
    """Outboxes by key: the name of a neighbour, or `name#link` for one incarnation of an edge's link."""

    def __init__(self, node: OverlayNode, log: Log, origin: Origin) -> None:
        self.node, self.log, self.origin = node, log, origin
        self.by_key: dict[str, Outbox] = {}
        self.joining: set[str] = set()
        """Keys of edges that have not reported all of their cover: nothing is offered to them before their WELCOME."""
        self.recalled: set[str] = set()
        """Neighbours whose cover is known from the disk alone: nothing is offered to them before they report."""
        self._retained: dict[str, Outbox] = {}
        self._behind: set[str] = set()

    def open(self, link: Link, is_head: bool) -> Outbox:
        """The outbox of a new link; a neighbour's goes on where its last link stopped."""
        outbox = self._retained.pop(link.name, None) if is_head else None
        if outbox is None:
            outbox = Outbox(link, link.name if is_head else f"{link.name}#{link.id}", is_head)
        else:
            self._renew(outbox, link)
        link.owner, link.on_sealed = outbox, outbox.sealed
        self.by_key[outbox.key] = outbox
        if not is_head:
            self.joining.add(outbox.key)
        outbox.measure()
        return outbox

    def _renew(self, outbox: Outbox, link: Link) -> None:
        """Send a neighbour again what it has not acknowledged; it recognizes what it has by offset.

        docs/handover.md, Restart of a head: a restarted neighbour recognizes nothing, and may have delivered some of
        it. All of that becomes one gap, which stays in the backlog until it is acknowledged, over this link or later.
        One that keeps its log on a disk recognizes what it has after a restart, too.
        """
        again, sent = outbox.unacknowledged(), outbox.under_way()
        remembers = link.remote is not None and link.remote.remembers(outbox.incarnation)
        if sent and link.incarnation != outbox.incarnation and not remembers:
            again[:sent] = [UncertainRange(_low(again[0]), _high(again[sent - 1]))]
        outbox.renew(link, again)

    def lost(self, outbox: Outbox) -> None:
        """The link of an outbox is over."""
        outbox.link.owner = outbox.link.on_sealed = None
        outbox.room = 0
        self.by_key.pop(outbox.key, None)
        self.joining.discard(outbox.key)
        if outbox.is_head:
            self._retained[outbox.key] = outbox
        else:
            self._behind.discard(outbox.key)

    def offer(self, keys: Iterable[str], position: int, record: bytes) -> None:
        """Offer an entry of the log to the links that need it."""
        for key in keys:
            outbox = self.by_key.get(key) or self._retained.get(key)
            if outbox is None:
                continue
            if outbox.offer(position, record):
                self.node.dirty[outbox.link] = None
            else:
                self._behind.add(key)

    def offer_again(self, outbox: Outbox, positions: Iterable[int | LostRange]) -> None:
        """Offer entries that the other side had not had from an earlier epoch of this head."""
        outbox.offer_again(positions)
        self._behind.add(outbox.key)
        self.pump(outbox)

    def all_keys(self) -> list[str]:
        """Keys of all outboxes, those of neighbours that are down included, in order."""
        return sorted({*self.by_key, *self._retained})

    def send(self, outbox: Outbox, record: msg.FromHead) -> None:
        """Send an in-band message behind everything that waits for this link."""
        self.node.count_said(record)
        self.send_encoded(outbox, wire.encode(record))

    def send_to(self, key: str, record: msg.FromHead) -> None:
        """Send an in-band message to the link with this key; nothing if it is gone."""
        if (outbox := self.by_key.get(key)) is not None:
            self.send(outbox, record)

    def send_encoded(self, outbox: Outbox, record: bytes) -> None:
        if outbox.send(record):
            self.node.dirty[outbox.link] = None
        else:
            self._behind.add(outbox.key)

    def send_first(self, outbox: Outbox, record: msg.FromHead) -> None:
        """Send an in-band message ahead of what waits; for what no position of this stream depends on."""
        self.node.count_said(record)
        outbox.send_first(wire.encode(record))
        self.node.dirty[outbox.link] = None

    def pump(self, outbox: Outbox) -> None:
        """Send what was waiting as far as there is room; evicted entries become gaps in their place."""
        outbox.measure()
        for hole in outbox.pump(self.log):
            gap = self._doubt(hole) if isinstance(hole, UncertainRange) else self.gap(hole.low, hole.high)
            outbox.send_gap(hole, wire.encode(gap))
            self.node.counters["gaps_sent"] += 1
        if outbox.link.buffer:
            self.node.dirty[outbox.link] = None
        if not outbox.backlog:
            self._behind.discard(outbox.key)

    def gap(self, low: int, high: int) -> msg.Gap:
        """A gap over evicted positions, with their last offset per origin. docs/handover.md, Gaps inside a session."""
        return self._gap(low, high, self.log.lost(low, high), "log")

    def _doubt(self, hole: UncertainRange) -> msg.Gap:
        """A gap over what a neighbour may have had when it went down."""
        last = self.log.lost(*hole)
        for position, entry in self.log.after(hole.low - 1):
            if position > hole.high:
                break
            raise_to(last, entry.last)
        return self._gap(hole.low, hole.high, last, "restart")

    def logged(self) -> msg.Gap:
        """A gap over the whole log, for a neighbour that was not known while it filled."""
        last = dict(self.log.gone)
        for _, entry in self.log.after(0):
            raise_to(last, entry.last)
        return self._gap(1, self.log.last, last, "restart")

    def _gap(self, low: int, high: int, last: dict[Origin, int], reason: str) -> msg.Gap:
        head, epoch = self.origin
        offsets: list[Token] = [(*origin, offset) for origin, offset in sorted(last.items())]
        return msg.Gap(head, epoch, low, epoch, high, offsets, reason)

    def progress(self) -> None:
        """Send idle edges the position of the log, and keep the backlogs of the others bounded.

        docs/handover.md, Resume: without this the tokens of idle subscribers would age into false gaps.
        """
        for outbox in self.by_key.values():
            if not outbox.backlog and outbox.sent_through < self.log.last and not outbox.is_head:
                outbox.sent_through = self.log.last
                self.send(outbox, msg.Progress(self.log.last))
        for key in sorted(self._behind):
            behind = self.by_key.get(key) or self._retained.get(key)
            if behind is not None:
                behind.compact(self.log)

    def synced_neighbors(self, names: Iterable[str]) -> list[Outbox]:
        """The outboxes of these neighbours, as far as their links are open."""
        return [outbox for name in names if (outbox := self.by_key.get(name)) is not None and outbox.is_head]

    def waiting(self) -> int:
        """Positions and messages that wait behind full links."""
        return sum(len(outbox.backlog) for outbox in self.by_key.values())


def _low(item: int | LostRange) -> int:
    return item.low if isinstance(item, LostRange) else item


def _high(item: int | LostRange) -> int:
    return item.high if isinstance(item, LostRange) else item
