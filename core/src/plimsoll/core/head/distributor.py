"""What enters the log of a head, and the links that each entry is offered to.

A publication is matched once, when it is logged. Its offset is its number among the publications of the head that
accepted it; its position is the place in this head's log, which is what tokens and watermarks of links refer to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from plimsoll.core.head.confirmations import Confirmations
from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.groups.lag import GroupLags
from plimsoll.core.head.log import Log, LogEntry
from plimsoll.core.head.open_publisher import OpenPublisher
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_topics import PublisherTopics
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.predicates import Attributes
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.origins import Origin
from plimsoll.core.protocol.wire import FLAG_CONFIRM_EDGES

NO_SLICES: Final[Mapping[str, int]] = MappingProxyType({})


class DistributorContext(Protocol):
    """The parts of a head that a publication passes through."""

    now: float
    name: str
    epoch: int
    log: Log
    group_lags: GroupLags
    routes: RoutingTable
    outboxes: Outboxes
    publishers: PublisherTable
    publisher_topics: PublisherTopics
    confirmations: Confirmations
    journal: LogJournal | None
    counters: Counter[str]
    meter: LoadMeter


class Distributor(HeadPart):
    """`offset`: of the last publication accepted here; `seen`: the last offset relayed of each other origin."""

    def __init__(self, host: DistributorContext) -> None:
        self.host = host
        self.offset = 0
        self.seen: dict[Origin, int] = {}
        self.heard: dict[str, tuple[int, int]] = {}
        """The last position that has come from each neighbour, with its epoch."""
        self.relayed: dict[str, int] = {}
        """The same for a head without a journal, in the present epoch of the neighbour; `heard` has earlier epochs."""
        self.sources: dict[str, str] = {}
        """By the head that accepted a publication, the neighbour from which it comes: the heads are a tree."""
        self.gap_sources: dict[int, str] = {}
        """By position, the neighbour behind which something may be missing; of gaps in a log without a journal."""

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.Pub, lambda outbox, pub: self.relay(outbox.name, pub))
        handlers.of_brokers.add(msg.Gap, lambda outbox, gap: self.relay_gap(outbox.name, gap))

    def publish(
        self,
        publisher: OpenPublisher,
        accepted: msg.Publish,
        attributes: Attributes,
        slices: Mapping[str, int] = NO_SLICES,
    ) -> None:
        """Log and send a publication that has been accepted here. `slices`: that it is in, by stamp."""
        host = self.host
        self.offset += 1
        pub = msg.Pub(
            host.log.last + 1, host.name, host.epoch, self.offset, publisher.name, publisher.incarnation,
            accepted.seq, accepted.flags, accepted.sent_us, accepted.body,
        )  # fmt: skip
        keys = self._log_publication(pub, attributes, slices, "")
        publisher.logged_at = pub.position
        publisher.client.share.needed_by.update(keys)
        if host.publisher_topics.attribute:
            size = len(memoryview(accepted.body))
            host.publisher_topics.count(publisher.name, attributes, size, keys, host.routes.neighbors)
        if accepted.flags & FLAG_CONFIRM_EDGES and keys:
            pending = host.publishers.answers.await_edges(publisher, accepted.seq)
            host.confirmations.await_for_publisher(pub.position, publisher.name, pending, keys, host.now)

    def _log_publication(
        self, pub: msg.Pub, attributes: Attributes, slices: Mapping[str, int], source: str
    ) -> set[str]:
        """Log a publication and offer it to every link that needs it, but its source; returns the keys of those."""
        host = self.host
        piece = wire.encode(pub)
        position = host.log.append_publication(piece, (pub.head, pub.epoch), pub.offset)
        if host.group_lags.by_group:
            host.group_lags.note(attributes, position, slices)
        if host.journal is not None:
            host.journal.logged(piece, source, self.heard.get(source, (0, 0)))
        keys = host.routes.match(attributes)
        keys.discard(source)
        if host.outboxes.joining:
            keys -= host.outboxes.joining
        offered = keys - host.outboxes.recalled if host.outboxes.recalled else keys
        # Sorted, because the order of a set of strings differs between processes, and runs must be repeatable.
        host.outboxes.offer(sorted(offered) if len(offered) > 1 else offered, position, piece)
        return keys

    # -- between heads

    def relay(self, neighbor: str, pub: msg.Pub) -> None:
        """Log and send a publication of a neighbour's; one that has come before is only confirmed again."""
        host = self.host
        origin = (pub.head, pub.epoch)
        before = self.seen.get(origin, 0)
        if pub.offset <= before:
            host.counters["relays_repeated"] += 1
            if pub.flags & FLAG_CONFIRM_EDGES:
                host.outboxes.send_to(neighbor, msg.Confirmed([pub.position], []))
            return
        host.meter.arrivals += 1
        self.seen[origin] = pub.offset
        if not before:
            self.sources[pub.head] = neighbor
        if host.journal is not None:
            self._hears(neighbor, pub.position)
        else:
            self.relayed[neighbor] = pub.position
        attributes = msg.decode(msg.body, pub.body).attributes
        neighbor_position = pub.position
        pub = msg.Pub(
            host.log.last + 1, pub.head, pub.epoch, pub.offset, pub.publisher, pub.incarnation, pub.seq, pub.flags,
            pub.sent_us, pub.body,
        )  # fmt: skip
        keys = self._log_publication(pub, attributes, NO_SLICES, neighbor)
        if pub.flags & FLAG_CONFIRM_EDGES:
            host.confirmations.await_for_neighbor(pub.position, neighbor, neighbor_position, keys, host.now)

    def relay_gap(self, neighbor: str, gap: msg.Gap) -> None:
        """Log and send a gap of a neighbour's, under a position of this log.

        docs/handover.md, Gaps inside a session: a subscriber that resumes before it must have it replayed.
        """
        if self.host.journal is not None:
            self._hears(neighbor, gap.high)
        else:
            self.relayed[neighbor] = max(gap.high, self.relayed.get(neighbor, 0))
        for head, epoch, offset in gap.last:
            self.seen[head, epoch] = max(offset, self.seen.get((head, epoch), 0))
            if head != self.host.name:
                self.sources[head] = neighbor
        self._log_gap(gap.last, gap.reason, neighbor)

    def _hears(self, neighbor: str, position: int) -> None:
        """Note how far a neighbour's log has come; of a link that is over it is not known in which epoch this was."""
        outbox = self.host.outboxes.by_key.get(neighbor)
        if outbox is not None:
            epoch, before = self.heard.get(neighbor, (0, 0))
            known = before if epoch == outbox.link.incarnation else 0
            self.heard[neighbor] = (outbox.link.incarnation, max(known, position))

    def end_epoch(self, neighbor: str, epoch: int) -> None:
        """A neighbour has restarted: remember how far the log of its last epoch has come here."""
        if neighbor in self.relayed:
            self.heard[neighbor] = (epoch, self.relayed.pop(neighbor))

    def log_uncertainty(self, source: str) -> None:
        """Log a gap without offsets: something may be lost behind `source`, and it is not known what."""
        self._log_gap([], "restart", source)

    def _log_gap(self, last: list[wire.Token], reason: str, source: str) -> None:
        host = self.host
        at = host.log.last + 1
        record = wire.encode(msg.Gap(host.name, host.epoch, at, host.epoch, at, last, reason))
        accounts_for = tuple(((head, epoch), offset) for head, epoch, offset in last)
        position = host.log.append(LogEntry(record, accounts_for, True))
        host.group_lags.note({}, position, NO_SLICES)
        if host.journal is not None:
            host.journal.gap(record, source, self.heard.get(source, (0, 0)))
        elif source:
            self._note_gap(position, source)
        host.counters["gaps_logged"] += 1
        passed_over = {source, *host.outboxes.joining, *host.outboxes.recalled}
        keys = [key for key in host.outboxes.all_keys() if key not in passed_over and host.routes.size(key)]
        host.outboxes.offer(keys, position, record)

    def _note_gap(self, position: int, source: str) -> None:
        """Note where a gap has come from, as long as the log has it."""
        first = self.host.log.first
        while self.gap_sources and (oldest := next(iter(self.gap_sources))) < first:  # in the order of positions
            del self.gap_sources[oldest]
        self.gap_sources[position] = source

    def source_of(self, position: int, entry: LogEntry) -> str:
        """The neighbour that sent an entry of a log without a journal; empty for what was accepted here."""
        if entry.is_gap:
            return self.gap_sources.get(position, "")
        head = entry.last[0][0][0]
        return "" if head == self.host.name else self.sources.get(head, "")
