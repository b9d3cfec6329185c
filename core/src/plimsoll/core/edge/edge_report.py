"""EDGE_REPORT: the first message of an edge to its head on a new link."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.edge.bundle_meter import BundleMeter
from plimsoll.core.protocol import messages as msg

REPORT_ITEMS = 256
"""Subscribers per EDGE_REPORT: however long their names are, the message fits into a frame."""


class EdgeAddress(NamedTuple):
    """Where clients reach an edge, and its public key."""

    endpoint: str
    public_key: str


class StreamPlace(NamedTuple):
    """How far an edge has had the log of its head, in the epoch that this was."""

    epoch: int = 0
    position: int = 0


def edge_report(
    attachments: AttachmentTable,
    at: EdgeAddress,
    mediator_epoch: int,
    bundles: BundleMeter | None = None,
    had: StreamPlace = StreamPlace(),  # noqa: B008  # a frozen value
) -> Iterator[msg.EdgeReport | msg.Cover]:
    """Yield the whole cover and every subscriber with a place here (docs/handover.md, 7, Mediators; protocol.md).

    The head answers the last part; until then it neither routes nor places anything by what it knew before.
    """
    places = attachments.by_subscriber.values()
    owned = [msg.OwnedItem(a.subscriber, a.epoch, a.since, a.identity, a.is_again) for a in places]
    while len(owned) > REPORT_ITEMS:
        yield msg.EdgeReport(*at, msg.Cover(1, [], []), owned[:REPORT_ITEMS], True)
        owned = owned[REPORT_ITEMS:]
    *first, last = attachments.subscription_table.whole()
    yield from first
    # Updates sent to the old head are void: what waits for one of them is acknowledged with this cover.
    attachments.pending_subacks.renumber(last.seq)
    if bundles is None:
        yield msg.EdgeReport(
            *at, last, owned, mediator=mediator_epoch, head_epoch=had.epoch, position=had.position, keeps_claims=True
        )
    else:
        boundaries = list(bundles.partition.boundaries)
        seen = bundles.seen_releases()
        yield msg.EdgeReport(*at, last, owned, False, mediator_epoch, boundaries, *bundles.version, *had, seen, True)
