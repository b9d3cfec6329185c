"""What comes from the head's log, for the members of the edge's cursor.

Each takes what lies above its own position, and not beyond its cut if it has been cut over to another edge: what
follows there is the other edge's, and a gap that reaches into it says nothing of origins.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.attachment import Attachment
from plimsoll.core.catchup import Cursor
from plimsoll.core.holdings import Holdings
from plimsoll.core.load import Meter
from plimsoll.core.queues import Queues


class Host(Protocol):
    """What replay needs of its edge."""

    position: int
    meter: Meter

    def ended(self, attachment: Attachment) -> None:
        """All up to its cut has been queued."""


class Replayer:
    """Deals with REPLAY and FETCHED."""

    def __init__(self, host: Host, cursor: Cursor, holdings: Holdings, queues: Queues) -> None:
        self.host, self.cursor, self.holdings, self.queues = host, cursor, holdings, queues

    def on_replay(self, replay: r.Replay) -> None:
        if replay.cursor != self.cursor.id:
            return
        item, members = replay.item, self.cursor.members
        if isinstance(item, r.Gap):
            for member in list(members):
                self._take_gap(member, item)
            return
        record = wire.encode(item)
        for number in list(self.holdings.index.match(item.body.attributes)):
            attachment = self.holdings.holders[number]
            if attachment in members and (attachment.end is None or item.position <= attachment.end[0]):
                self._take(attachment, item.position, record)

    def _take_gap(self, member: Attachment, gap: r.Gap) -> None:
        low, high, last = max(gap.low, member.position + 1), gap.high, gap.last
        if member.end is not None and member.end[0] < high:
            high, last = member.end[0], []
        if low <= high:
            own = msgspec.structs.replace(gap, low=low, high=high, last=last)
            self._take(member, high, wire.encode(own))

    def _take(self, attachment: Attachment, position: int, record: bytes) -> None:
        if position <= attachment.position:
            return
        attachment.position = position
        attachment.queue.append(attachment.handle + record)
        self.queues.put_aside(attachment)
        self.host.meter.deliveries += 1
        if attachment.count_queue() > attachment.queue_limit_bytes:
            self.queues.block(attachment)

    def on_fetched(self, fetched: r.Fetched) -> None:
        if fetched.cursor != self.cursor.id:
            return
        if fetched.done:
            self.host.position = max(self.host.position, fetched.to)
        for attachment in self.cursor.end(fetched):
            if attachment.end is None:
                self.queues.live(attachment)
            else:
                self.host.ended(attachment)
