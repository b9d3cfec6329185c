"""Entries of the head's log, for the members of the edge's cursor.

Each member takes what lies above its own position. One that has been cut over to another edge takes nothing beyond its
cut, which is the other edge's to deliver; a gap that reaches across the cut is shortened, and then lists no offsets.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from plimsoll.core.edge.attachment import EdgeAttachment
from plimsoll.core.edge.catchup_cursor import CatchupCursor
from plimsoll.core.edge.queues import DeliveryQueues
from plimsoll.core.edge.subscription_table import SubscriptionTable
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


class ReplayContext(Protocol):
    """What replay needs of its edge."""

    position: int
    meter: LoadMeter


class CatchupReplay:
    """Handles REPLAY and FETCHED."""

    def __init__(
        self, host: ReplayContext, cursor: CatchupCursor, subscription_table: SubscriptionTable, queues: DeliveryQueues
    ) -> None:
        self.host, self.cursor, self.subscription_table, self.queues = host, cursor, subscription_table, queues

    def on_replay(self, replay: msg.Replay) -> None:
        if replay.cursor != self.cursor.id:
            return
        item, members = replay.item, self.cursor.members
        if isinstance(item, msg.Gap):
            for member in list(members):
                self._take_gap(member, item)
            return
        record = wire.encode(item)
        matched = list(self.subscription_table.index.match(item.body.attributes))
        for number in self.subscription_table.closed.open_to(matched, item.body.attributes):
            if (attachment := self.subscription_table.holders[number]) not in members:
                continue
            end = attachment.pending_end
            if end is None or item.position <= end.position:
                self._take(attachment, item.position, record)

    def _take_gap(self, member: EdgeAttachment, gap: msg.Gap) -> None:
        low, high, last = max(gap.low, member.position + 1), gap.high, gap.last
        if member.pending_end is not None and member.pending_end.position < high:
            high, last = member.pending_end.position, []
        if low <= high:
            own = msgspec.structs.replace(gap, low=low, high=high, last=last)
            self._take(member, high, wire.encode(own))

    def _take(self, attachment: EdgeAttachment, position: int, record: bytes) -> None:
        if position <= attachment.position:
            return
        attachment.position = position
        attachment.queue.append(attachment.deliver_prefix + record)
        self.queues.put_aside(attachment)
        self.host.meter.deliveries += 1
        if attachment.count_queue() > attachment.queue_limit_bytes:
            self.queues.block(attachment)

    def on_fetched(self, fetched: msg.Fetched) -> None:
        if fetched.cursor != self.cursor.id:
            return
        if fetched.done:
            self.host.position = max(self.host.position, fetched.to)
        for attachment in self.cursor.end(fetched):
            if attachment.pending_end is None:
                self.queues.live(attachment)
            else:
                self.queues.outcomes.cut_reached(attachment)
