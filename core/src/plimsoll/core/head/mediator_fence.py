"""The highest mediator epoch that this cluster has seen; a mediator with a lower one is not obeyed."""

from __future__ import annotations

from typing import Any, Protocol

from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.protocol import messages as msg


class FenceContext(Protocol):
    """The parts of a head that a new epoch goes out through."""

    edges: dict[str, Outbox]
    routes: RoutingTable
    outboxes: Outboxes


class MediatorFence(HeadPart):
    """Raised by commands, by mediators' messages to edges, and by reports of edges and neighbours."""

    def __init__(self, host: FenceContext) -> None:
        self.host = host
        self.epoch = 0

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.MediatorEpoch, lambda _, known: self.raise_to(known.epoch))

    def status(self) -> dict[str, Any]:
        return {"mediator": self.epoch}

    def raise_to(self, epoch: int) -> None:
        """Take over a higher epoch and pass it on; a lower or equal one changes nothing."""
        if epoch <= self.epoch:
            return
        self.epoch = epoch
        # Edges and neighbours report it back to a restarted head, so that the fence outlives this process.
        for outbox in self.host.edges.values():
            self.host.outboxes.send(outbox, msg.MediatorEpoch(epoch))
        for neighbor in self.host.routes.synced_neighbors():
            self.host.outboxes.send_to(neighbor, msg.MediatorEpoch(epoch))
