"""EDGE_REPORT: the first message of an edge to its head on a new link."""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.protocol import messages as msg

REPORT_ITEMS = 256
"""Subscribers per EDGE_REPORT: however long their names are, the message fits into a frame."""


def edge_report(
    attachments: AttachmentTable, endpoint: str, public_key: str, mediator_epoch: int
) -> Iterator[msg.EdgeReport | msg.Cover]:
    """Yield the whole cover and every subscriber with a place here (docs/handover.md, 7, Mediators; protocol.md).

    The head answers the last part; until then it neither routes nor places anything by what it knew before.
    """
    owned = [msg.OwnedItem(a.subscriber, a.epoch, a.since, a.identity) for a in attachments.by_subscriber.values()]
    while len(owned) > REPORT_ITEMS:
        yield msg.EdgeReport(endpoint, public_key, msg.Cover(1, [], []), owned[:REPORT_ITEMS], True)
        owned = owned[REPORT_ITEMS:]
    *first, last = attachments.subscription_table.whole()
    yield from first
    # Updates sent to the old head are void: what waits for one of them is acknowledged with this cover.
    attachments.pending_subacks.renumber(last.seq)
    yield msg.EdgeReport(endpoint, public_key, last, owned, mediator=mediator_epoch)
