"""Cover updates through a head: from links into the routing table, and onward to neighbours.

An update may come in parts; it is applied when the last part is there, in one step. Parts of an edge's report are
applied as they come, since nothing is offered to an edge before its report has ended. A restarted head sends nothing
onward until all others have reported, so that it does not shrink what its neighbours know of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from plimsoll.core.covering.cover_set import CoverDelta, reading_units
from plimsoll.core.head.mediator_fence import MediatorFence
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.cover_parts import join_covers, split_cover
from plimsoll.core.transport.link import NEVER

REMOVAL_UNITS = 30
"""Of taking a subscription out of the index."""


class LogContinuation(Protocol):
    """What a head with a log on a disk knows of neighbours from before its start."""

    def to_neighbor(self, outbox: Outbox, report: msg.NeighborReport) -> bool: ...
    def meets(self, outbox: Outbox, report: msg.NeighborReport) -> None: ...
    def heard(self, neighbor: str) -> tuple[int, int]: ...
    def begins_for(self, neighbor: str) -> int: ...
    def asks(self, neighbor: str, cover: msg.Cover, replaced: list[tuple[int, str]] | None = None) -> None: ...


class CoverUpdates(HeadPart):
    """The one way in and out for covers: tables are changed here only. `units_spent`: work on updates, in all.

    `ahead_of_report`: sends a neighbour what it has to know before this head's report lets it go on.
    """

    def __init__(
        self, routes: RoutingTable, outboxes: Outboxes, fence: MediatorFence, resend: LogContinuation | None = None
    ) -> None:
        self.routes, self.outboxes, self.fence, self.resend = routes, outboxes, fence, resend
        self.units_spent = 0
        self.ahead_of_report: Callable[[Outbox], None] = lambda _: None

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.Cover, self.on_cover)
        handlers.of_brokers.add(msg.CoverAck, self.on_ack)

    # -- from links

    def on_cover(self, outbox: Outbox, cover: msg.Cover) -> None:
        if not cover.more:
            self.apply(outbox, cover)
        elif outbox.key in self.outboxes.joining:
            self._apply(outbox, cover)
        else:
            outbox.parts.append(cover)

    def apply(self, outbox: Outbox, last: msg.Cover) -> None:
        """Apply an update that ends with this part.

        Raises:
            WireError: `cover`, if it does not fit what the link has announced. Nothing is applied.

        """
        self._apply(outbox, _joined(outbox, last))
        self.routes.wait(outbox.key, last.seq)

    def _apply(self, outbox: Outbox, cover: msg.Cover) -> None:
        self.announce(self.routes.apply(outbox.key, cover))
        if outbox.is_head and self.resend is not None:
            self.resend.asks(outbox.name, cover)
        self._count(cover)

    def replace(self, outbox: Outbox, last: msg.Cover) -> None:
        """Put the whole cover that ends with this part in the place of what the link had.

        Raises:
            WireError: `cover`, if a subscription cannot be parsed. Nothing is replaced.

        """
        cover = _joined(outbox, last)
        before = self.routes.items(outbox.key) if outbox.is_head else []
        self.announce(self.routes.replace(outbox.key, cover))
        if outbox.is_head and self.resend is not None:
            self.resend.asks(outbox.name, cover, before)
        self._count(cover)
        self.routes.wait(outbox.key, last.seq)

    def _count(self, cover: msg.Cover) -> None:
        read = sum(reading_units(item.text) for item in cover.adds)
        self.units_spent += read + REMOVAL_UNITS * len(cover.removes) + self.routes.units_spent

    def on_neighbor_report(self, outbox: Outbox, report: msg.NeighborReport) -> None:
        """Take over the whole cover of a neighbour."""
        is_known = outbox.name in self.routes and outbox.name not in self.outboxes.recalled
        self.fence.raise_to(report.mediator)
        self.replace(outbox, report.cover)
        if self.resend is not None:
            self.resend.meets(outbox, report)
        # What was logged before this neighbour was known has not been offered to it.
        is_behind = not is_known and self.outboxes.log.last > 0
        if is_behind and (self.resend is None or not self.resend.to_neighbor(outbox, report)):
            self.outboxes.send(outbox, self.outboxes.logged())
        self.outboxes.recalled.discard(outbox.name)

    def change(self, key: str, cover: msg.Cover) -> None:
        """Apply a change of what no link has announced, and no acknowledgement waits for.

        Raises:
            WireError: `cover`, as `apply`.

        """
        self.announce(self.routes.apply(key, cover))
        self._count(cover)

    def drop(self, key: str) -> None:
        """Forget the cover of a link that is gone for good."""
        self.announce(self.routes.drop(key))

    def broker_lost(self, outbox: Outbox) -> None:
        if outbox.is_head:
            # Its cover stays in the index until its new one comes: what it still needs is kept for it.
            self.routes.down(outbox.name)

    # -- to neighbours

    def announce(self, deltas: dict[str, CoverDelta[int]]) -> None:
        """Send each neighbour its delta, unless its whole cover has still to be sent: that will contain it."""
        for name, delta in deltas.items():
            if self.routes.neighbors[name].synced and name in self.outboxes.by_key:
                for part in split_cover(self.routes.update(name, delta)):
                    self.outboxes.send_to(name, part)

    def tick(self) -> None:
        """A bounded step of what larger changes of covers have left over."""
        if not self.routes.is_tidy:
            self.announce(self.routes.tidy())

    def wake_at(self) -> float:
        return NEVER if self.routes.is_tidy else self.outboxes.node.now

    def report_to_neighbors(self, missing: set[str]) -> None:
        """Send its whole cover to each neighbour that has not had it, as soon as all others have reported.

        A neighbour's cover depends on all links but its own: on a tree, reports travel from the leaves inward and back.
        """
        for name, neighbor in self.routes.neighbors.items():
            outbox = self.outboxes.by_key.get(name)
            if outbox is not None and not neighbor.synced and not missing - {name}:
                self.ahead_of_report(outbox)
                *first, last = split_cover(self.routes.whole(name))
                for part in first:
                    self.outboxes.send_first(outbox, part)
                heard, begins = (0, 0), self.outboxes.log.last
                if self.resend is not None:
                    heard, begins = self.resend.heard(name), self.resend.begins_for(name)
                self.outboxes.send_first(outbox, msg.NeighborReport(last, self.fence.epoch, *heard, begins))

    # -- acknowledgements

    def on_ack(self, outbox: Outbox, ack: msg.CoverAck) -> None:
        self.routes.acknowledged(outbox.name, ack.seq, ack.unreached)

    def acknowledge(self) -> None:
        """Once a round: acknowledgements are cumulative, so one answers for all covers that came together."""
        if not self.routes.waits:
            return
        for key, seq, unreached in self.routes.settled():
            self.outboxes.send_to(key, msg.CoverAck(seq, unreached))


def _joined(outbox: Outbox, last: msg.Cover) -> msg.Cover:
    parts, outbox.parts = outbox.parts, []
    return join_covers(parts, last) if parts else last
