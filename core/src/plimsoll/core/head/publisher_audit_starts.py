"""The beginning of an audit of publishers: a notice to the edges to whose subscribers their publications go.

The notice takes every link that their publications take, behind all that was published before. Examples of what they
have published stand for what they will publish.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, Protocol

from plimsoll.core.head.log import Log
from plimsoll.core.head.open_publisher import OpenPublisher
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.publisher_audit_cases import AuditedMove, keep_latest
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages.publications import SMALL_BODY_BYTES

LOOKED_BACK_ENTRIES: Final = 256
"""Entries at the end of the log that are looked through for examples, beside the last publication of each."""


class AuditStartContext(Protocol):
    """The parts of a head by which starts are spread."""

    name: str
    log: Log
    routes: RoutingTable
    outboxes: Outboxes


class AuditStarts:
    """`passed_on`: moves of other heads whose start has come here."""

    def __init__(self, host: AuditStartContext) -> None:
        self.host = host
        self.passed_on: OrderedDict[str, None] = OrderedDict()

    def begin(self, move: AuditedMove, publishers: list[OpenPublisher]) -> None:
        """Announce a move of publishers of this head, with an example of each that has published something."""
        if examples := self._examples(publishers):
            start = msg.PublisherAuditStart(move.id, self.host.name, move.target, move.publishers, examples)
            self._spread(start, "")

    def _examples(self, publishers: list[OpenPublisher]) -> list[msg.Example]:
        found: list[msg.Example] = []
        for pub in self._latest(publishers):
            if pub.body.attributes not in found:
                found.append(pub.body.attributes)
            if len(found) >= msg.EXAMPLES_AT_MOST:
                break
        return found

    def _latest(self, publishers: list[OpenPublisher]) -> Iterator[msg.PubOpen]:
        """The last publication of each, and then others of the last that were logged."""
        log, names = self.host.log, {(each.name, each.incarnation) for each in publishers}
        last = [each.logged_at for each in publishers[: msg.EXAMPLES_AT_MOST] if each.logged_at]
        for position in (*last, *range(log.last, max(log.last - LOOKED_BACK_ENTRIES, 0), -1)):
            entry = log.get(position)
            if entry is None or entry.is_gap or len(entry.record) > SMALL_BODY_BYTES:
                continue
            pub = msg.to_edge.decode(entry.record)
            if isinstance(pub, msg.PubOpen) and (pub.publisher, pub.incarnation) in names:
                yield pub

    def on_start(self, outbox: Outbox, start: msg.PublisherAuditStart) -> None:
        """Pass it on where such publications go from here."""
        if start.session not in self.passed_on and start.judge != self.host.name:
            self.passed_on[start.session] = None
            keep_latest(self.passed_on)
            self._spread(start, outbox.key)

    def _spread(self, start: msg.PublisherAuditStart, source: str) -> None:
        outboxes = self.host.outboxes
        keys = {key for example in start.examples for key in self.host.routes.match(example)}
        for key in sorted(keys - outboxes.joining - {source}):
            outboxes.send_to(key, start)
