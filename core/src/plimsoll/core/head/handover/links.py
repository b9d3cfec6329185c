"""Where hand-over messages go from a head: to its own edges, and through the tree to edges of other heads.

docs/handover.md, Streams: what defines a point in a stream travels in that stream. REVOKE alone uses the control
socket: it must overtake a queue that does not drain.
"""

from __future__ import annotations

from typing import Protocol

from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.ownership import OwnerEntry
from plimsoll.core.head.router import TreeRouter
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Peer
from plimsoll.core.transport.load_reporter import LoadReporter


class HandoverLinksContext(Protocol):
    """The parts of a head that lead to edges and other heads."""

    name: str
    edges: dict[str, Outbox]
    outboxes: Outboxes
    reporter: LoadReporter
    router: TreeRouter

    def say_control(self, peer: Peer, *said: msg.Revoke) -> None: ...


class HandoverLinks:
    """The way to every edge that takes part in a hand-over."""

    def __init__(self, host: HandoverLinksContext) -> None:
        self.host = host

    def send_to_edge(self, head: str, edge: str, message: msg.ToEdge) -> None:
        """Send in the stream of an edge, of this head or of another; to an edge that is down it is lost."""
        if head != self.host.name:
            self.host.router.send(head, message, edge)
        elif (outbox := self.host.edges.get(edge)) is not None:
            self.host.outboxes.send(outbox, message)

    def revoke(self, edge: str, message: msg.Revoke) -> None:
        """Send on the control socket of an edge here; it may be lost."""
        if (peer := self.host.reporter.brokers.get(edge)) is not None:
            self.host.say_control(peer, message)

    def has_edge(self, edge: str) -> bool:
        return edge in self.host.edges

    def reaches(self, head: str) -> bool:
        return self.host.router.reaches(head)

    def edge_of(self, owner: OwnerEntry) -> str:
        """The edge that an owner entry names, as long as its link is up; else an empty string."""
        outbox = self.host.outboxes.by_key.get(owner.key)
        return outbox.name if outbox is not None and not outbox.is_head else ""
