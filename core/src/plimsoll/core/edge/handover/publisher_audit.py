"""The edge's part in the audit of publishers that move: it finds some subscribers that take from them, to count.

Rules:
- Which subscribers take from a publisher is known by what it has published lately. Few of them are asked, in an order
  that differs from session to session, and none of them twice.
- The judge is told how many were asked, so that those that do not answer are known to be missing.
- Nothing waits for an audit, and nothing is repeated. From the question what is due on it is as any audit
  (`DeliveryAuditRelay`).
"""

from __future__ import annotations

import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice

from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.edge.attachments import AttachmentTable, EdgeContext
from plimsoll.core.edge.handover.delivery_audit import audit_request
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Link

ASKED_AT_MOST = 16
"""Subscribers that one edge asks about one move."""
CONSIDERED_AT_MOST = 256
"""Subscribers of one publication among which those are chosen."""
REMEMBERED_MOVES = 64


class PublisherAuditRelay:
    """The moves of publishers that subscribers here count. `asked`: who may still say from where on, by session."""

    def __init__(self, host: EdgeContext, attachments: AttachmentTable) -> None:
        self.host, self.attachments = host, attachments
        self.asked: OrderedDict[str, tuple[str, set[EdgeAttachment]]] = OrderedDict()

    def on_start(self, start: msg.PublisherAuditStart) -> None:
        """Ask some of those that the examples match to count, and tell the judge how many."""
        if start.session in self.asked:
            return
        chosen = self._chosen(start)
        self.asked[start.session] = (start.judge, set(chosen))
        while len(self.asked) > REMEMBERED_MOVES:
            self.asked.popitem(last=False)
        by_link: defaultdict[Link, list[int]] = defaultdict(list)
        for attachment in chosen:
            by_link[attachment.link].append(attachment.id)
        heads = [start.judge, start.target]
        for link, numbers in by_link.items():
            self.host.say(link, msg.CountPublishers(start.session, numbers, heads, start.publishers))
        if chosen:
            self._tell(start.session, start.judge, len(chosen), [])

    def _chosen(self, start: msg.PublisherAuditStart) -> list[EdgeAttachment]:
        found = dict.fromkeys(each for example in start.examples for each in self._takers(example))

        def turn(attachment: EdgeAttachment) -> tuple[int, str]:
            return zlib.crc32(f"{start.session} {attachment.subscriber}".encode()), attachment.subscriber

        return sorted(found, key=turn)[:ASKED_AT_MOST]

    def _takers(self, example: msg.Example) -> Iterator[EdgeAttachment]:
        table = self.attachments.subscription_table
        for number in islice(table.index.match(example), CONSIDERED_AT_MOST):
            attachment = table.holders[number]
            if attachment.state is AttachmentState.LIVE and not attachment.paused:
                yield attachment

    def on_counts_from(self, link: Link, counts: msg.CountsFrom) -> None:
        """These count: the judge is to say what was due to their lists."""
        judge, asked = self.asked.get(counts.session, ("", set[EdgeAttachment]()))
        checks = []
        for item in counts.members:
            attachment = self.attachments.attached(link, item.attachment)
            if attachment is None or attachment not in asked or item.since is None:
                continue
            asked.discard(attachment)
            if (check := audit_request(attachment, item.since, item.marks)) is not None:
                checks.append(check)
        if checks:
            self._tell(counts.session, judge, 0, checks)

    def _tell(self, session: str, judge: str, asked: int, checks: Iterable[msg.AuditRequestItem]) -> None:
        config = self.host.config
        self.host.up(msg.PublisherAuditRequest(session, judge, config.head_name, config.name, asked, list(checks)))

    def restart(self) -> None:
        """Forget all moves: the head has restarted."""
        self.asked.clear()
