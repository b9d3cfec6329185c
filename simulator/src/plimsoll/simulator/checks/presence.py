"""What the source knows of a member at the moment at which a head gives it an outcome without a cut.

The attachments of edges are watched through the methods that open and close them, and the table of hand-overs of a head
through those that change a member; the machines are those of the product, without hooks for tests.

A member whose place its head itself has ended, or has given to another edge, is gone by that decision, of which the
source has yet to hear. Such an outcome is judged once the source has acknowledged all that its head has sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from plimsoll.core.edge.attachment import SERVED, AttachmentState, EdgeAttachment
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.handover.session import Handover
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.departures import UNCUT_OUTCOMES, UNKNOWN
from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.engine.calls import call_after, call_before

NEVER = float("-inf")
WORD_SECONDS = 0.3
"""How long the word of a head may be on its way to a source."""


class UnheardDecision(NamedTuple):
    """A head has said at `at` that a member is gone, for it has decided that itself; the source has yet to hear."""

    head: Head
    session: Handover
    subscriber: str
    at: float


def _has_heard(head: Head, edge: str) -> bool:
    """Whether an edge has acknowledged all that its head has sent."""
    outbox = head.edges.get(edge)
    return outbox is not None and not (outbox.backlog or outbox.link.buffer or outbox.link.unacked)


@dataclass(slots=True)
class SourcePresence:
    """`began`, `ended`: when an edge last began and ceased to serve a subscriber. `node_of`: the running broker.

    `said_by`: when the words that a head deals with now were sent at the earliest. `ending_at`: when heads ended the
    places of subscribers. `unheard`: outcomes that are judged later.
    """

    node_of: Callable[[str], OverlayNode | None]
    now: Callable[[], float]
    observe: Callable[[seen.Observation], None]
    began: dict[tuple[str, str], float] = field(default_factory=dict)
    ended: dict[tuple[str, str], float] = field(default_factory=dict)
    ending_at: dict[str, float] = field(default_factory=dict)
    unheard: list[UnheardDecision] = field(default_factory=list)
    said_by: Callable[[str], float | None] = lambda _: None

    def watch_edge(self, edge: Edge) -> None:
        def opened(attachment: EdgeAttachment, *_: object) -> None:
            self.began[edge.name, attachment.subscriber] = self.now()

        def closed(_: None, attachment: EdgeAttachment) -> None:
            self.ended[edge.name, attachment.subscriber] = self.now()

        def ended(_: None, attachments: Iterable[EdgeAttachment]) -> None:
            for attachment in attachments:
                closed(None, attachment)

        def installed(message: msg.Installed) -> None:
            # On standby it was another edge's still: a head that said so then has said what is true.
            for x in message.members:
                attachment = edge.attachments.by_subscriber.get(x)
                if attachment is not None and attachment.state is AttachmentState.CUTTING:
                    self.began[edge.name, x] = self.now()

        call_after(edge.attachments, "open", opened)
        call_before(edge.handover_target, "on_installed", installed)
        call_after(edge.handover_source, "end", ended)
        call_after(edge.attachments, "close", closed)

    def crashed(self, edge: Edge) -> None:
        """The edge has ended, and with it all that it served."""
        for attachment in edge.attachments.by_subscriber.values():
            if attachment.state in SERVED:
                self.ended[edge.name, attachment.subscriber] = self.now()

    def watch_head(self, head: Head) -> None:
        def changed(_: None, session: Handover, members: Iterable[str], state: str, *__: object) -> None:
            if state in (*UNCUT_OUTCOMES, UNKNOWN):
                for x in members:
                    self._judge(head, session, x, state)

        def added(_: None, session: Handover) -> None:
            for x, member in session.members.items():
                # One that another session has cut is gone once that is decided, before the source hears of it.
                if member.state in UNCUT_OUTCOMES and not head.coordinator.table.is_leaving(x):
                    self._judge(head, session, x, member.state)

        def ending(x: str) -> None:
            self.ending_at[x] = self.now()

        call_after(head.coordinator.table, "put", changed)
        call_after(head.coordinator.table, "add", added)
        call_before(head.membership, "end_place", ending)

    def measure(self) -> None:
        """Judge what heads have decided, where sources have heard of it."""
        waiting, self.unheard = self.unheard, []
        for one in waiting:
            head, session, x, at = one
            source, now = session.plan.source, self.now()
            if self.node_of(head.name) is not head:
                continue  # its next life learns from the edge what that serves
            served_at, missed_at = self._times(source, x)
            if missed_at < at and not _has_heard(head, source):
                self.unheard.append(one)
                continue
            missed_at = now if missed_at >= at else missed_at
            self.observe(seen.UncutMemberObserved(session.id, x, source, "gone", served_at, missed_at, now, now))

    def _judge(self, head: Head, session: Handover, x: str, outcome: str) -> None:
        source = session.plan.source
        if outcome == "gone" and self._is_decided(head, source, x):
            self.unheard.append(UnheardDecision(head, session, x, self.now()))
            return
        served_at, missed_at = self._times(source, x)
        outbox = head.edges.get(source)
        heard_at = outbox.link.last_heard if outbox is not None else NEVER
        self.observe(
            seen.UncutMemberObserved(
                session.id, x, source, outcome, served_at, missed_at, heard_at, self.now(), self.said_by(head.name)
            )
        )

    def _is_decided(self, head: Head, source: str, x: str) -> bool:
        """Whether the head itself has just ended the place of a subscriber, or has another edge as its owner."""
        owner = head.owners.entries.get(x)
        if owner is not None:
            return owner.edge != source
        return self.now() - self.ending_at.get(x, NEVER) < WORD_SECONDS

    def _times(self, edge: str, x: str) -> tuple[float, float]:
        """When the edge last served the subscriber, and when it last did not; one of them is now."""
        node = self.node_of(edge)
        attachment = node.attachments.by_subscriber.get(x) if isinstance(node, Edge) else None
        if attachment is None or attachment.state not in SERVED:
            return self.ended.get((edge, x), NEVER), self.now()
        if attachment.pending_end is not None:
            return self.now(), self.now()
        return self.now(), self.began.get((edge, x), NEVER)
