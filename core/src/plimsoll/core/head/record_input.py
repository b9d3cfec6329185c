"""What comes over the links of a head: frames become records, and each record goes to its handler in its turn.

With emulated hardware records wait in the input queue first. What a neighbour relays waits as long as it is not known
which links need it, or there is no room on the disk.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.cover_turns import COVERING, CoverTurns
from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.distributor import Distributor
from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.head.startup import StartupBarrier
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.metering.service_queue import ServiceQueue
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.client_intake import ClientIntake
from plimsoll.core.transport.flusher import Flusher
from plimsoll.core.transport.handshakes import Handshakes
from plimsoll.core.transport.link import Link
from plimsoll.core.transport.refused_records import RefusedRecord

DataMessage = msg.FromClient | msg.FromEdge | msg.BetweenHeads
QueuedRecord = tuple[Link, int, DataMessage | None, bool]
"""The link and its id, a message or None for one that could not be read, and whether it ends its frame."""
RECORD_UNITS = 6
"""Of a client's record that is refused; a unit is some quarter of a microsecond."""

_DECODERS = {"client": msg.from_client, "edge": msg.from_edge, "head": msg.between_heads}


class InputContext(Protocol):
    """What taking records in needs of a head."""

    now: float
    config: BrokerConfig
    counters: Counter[str]
    covers: CoverUpdates
    distributor: Distributor
    flusher: Flusher
    handshakes: Handshakes
    journal: LogJournal | None
    meter: LoadMeter
    outboxes: Outboxes
    routes: RoutingTable
    server: ServiceQueue[QueuedRecord]
    startup: StartupBarrier

    def knows(self, link: Link) -> bool: ...
    def say(self, link: Link, record: RefusedRecord, /) -> None: ...
    def took(self, link: Link, /) -> None: ...


class RecordInput(HeadPart):
    """`turns`: covering updates that wait for theirs; `clients`: requests of clients that wait for theirs."""

    def __init__(self, host: InputContext, handlers: RecordHandlers) -> None:
        self.host, self.handlers, self.covers = host, handlers, host.covers
        self.turns = CoverTurns(self)
        self.clients = ClientIntake(host, handlers.of_clients.handle, RECORD_UNITS, is_paced=False)

    def on_frame(self, link: Link, frame: wire.Data, size: int) -> None:
        """Take one frame of a link."""
        host = self.host
        host.meter.bytes_in += size
        if host.server.transparent and link.remote is not None and link.remote.role == "client":
            self.clients.on_frame(link, frame, size)
        else:
            self._on_records(link, frame)

    def _on_records(self, link: Link, frame: wire.Data) -> None:
        host = self.host
        decoder = _DECODERS[link.remote.role if link.remote else "client"]
        last = len(frame.records) - 1
        if not frame.records:
            link.deals(host.now)
            host.took(link)
        for i, raw in enumerate(frame.records):
            message: DataMessage | None = None
            try:
                message = msg.decode(decoder, raw)
            except WireError as error:
                # It still ends its frame, and still costs service time: credit must come back for it.
                if decoder is msg.from_client:
                    self.clients.refuse(link, raw, error)
                else:
                    host.counters[f"records_refused_{error.code}"] += 1
            if host.server.transparent:
                self._take(link, message, i == last)
            else:
                is_publication = isinstance(message, msg.Publish | msg.Pub)
                entry = (link, link.id, message, i == last)
                host.server.submit(entry, len(memoryview(raw)), host.now, is_publication=is_publication)

    def _take(self, link: Link, message: DataMessage | None, ends_frame: bool) -> None:
        turns = self.turns
        if type(message) in COVERING or (turns.waiting and link in turns.waiting):
            turns.take(link, message, ends_frame)
        else:
            self.deal(link, message, ends_frame)

    def deal(self, link: Link, message: DataMessage | None, ends_frame: bool) -> None:
        """Deal with a message in its turn, and return the credit of the frame that it ends."""
        host = self.host
        if isinstance(message, msg.Pub | msg.Gap | msg.Route) and self._must_wait(link, message):
            host.startup.hold(link, message, ends_frame=ends_frame)
            link.hold()
            if ends_frame:
                link.deals(host.now)
            return
        if message is not None:
            try:
                self._dispatch(link, message)
            except WireError as error:
                if link.remote is not None and link.remote.role == "client":
                    self.clients.refuse(link, wire.encode(message), error)
                else:
                    host.counters[f"records_refused_{error.code}"] += 1
        if ends_frame:
            link.deals(host.now)
            host.took(link)

    def is_early(self, message: DataMessage | None) -> bool:
        """Whether another edge, which has not reported, may have the place of a subscriber that resumes."""
        return isinstance(message, msg.ResumeUp) and self.host.startup.lacks_places_of(self.host.config.edges)

    def _dispatch(self, link: Link, message: DataMessage) -> None:
        kind = type(message)
        if (handle := self.handlers.of_clients.get(kind)) is not None:
            handle(link, message)
        elif isinstance(outbox := link.owner, Outbox):
            self.handlers.of_brokers[kind](outbox, message)
        else:
            raise WireError("order", f"{link.name} is not an open link of an edge or neighbour")

    # -- what neighbours relay

    @property
    def holds_relays(self) -> bool:
        """Whether what neighbours relay has to wait: for reports, or for room on the disk."""
        host = self.host
        return bool(host.startup.missing) or (host.journal is not None and bool(host.journal.refusing))

    def _must_wait(self, link: Link, message: msg.Pub | msg.Gap | msg.Route) -> bool:
        """A MARKER, for one, means all that its stream has had before it: docs/handover.md, P1."""
        return self.holds_relays and (not isinstance(message, msg.Route) or self.host.startup.has_held(link))

    def drop(self, link: Link) -> None:
        """The link of an edge or neighbour ends: take what it has relayed behind an update that waits for its turn."""
        for relayed in self.turns.drop(link):
            self._relay(link, relayed)

    def _relay(self, link: Link, message: msg.Pub | msg.Gap) -> None:
        """Take what a neighbour has handed over on a link that may be over by now."""
        host = self.host
        if self.holds_relays:
            host.startup.hold(link, message, ends_frame=False)
            return
        try:
            if isinstance(message, msg.Pub):
                host.distributor.relay(link.name, message)
            else:
                host.distributor.relay_gap(link.name, message)
        except WireError as error:
            host.counters[f"records_refused_{error.code}"] += 1

    def _take_route(self, link: Link, route: msg.Route) -> None:
        try:
            self._dispatch(link, route)
        except WireError as error:
            self.host.counters[f"records_refused_{error.code}"] += 1

    def on_ready(self) -> None:
        self.take_held()

    def take_held(self) -> None:
        """Take what neighbours have relayed too early, unless it still has to wait."""
        if self.holds_relays:
            return
        for held in self.host.startup.take_held():
            if not isinstance(held.message, msg.Route):
                self._relay(held.link, held.message)
            elif held.link.id == held.link_id:  # else its sender knows that it is gone: docs/handover.md, 8
                self._take_route(held.link, held.message)
            if held.link.id != held.link_id:
                continue
            if held.link.held_from:
                # The whole round waits for the log, so its acknowledgement does not leave before what is still to come.
                held.link.release(self.host.now)
                self.host.flusher.owe_ack(held.link)
            if held.ends_frame:
                self.host.took(held.link)

    # -- hooks

    def client_lost(self, link: Link) -> None:
        self.clients.drop(link)

    def tick(self) -> None:
        host = self.host
        self.turns.tick()
        self.clients.tick()
        if not host.startup.missing:
            host.covers.acknowledge()
        self._serve()

    def _serve(self) -> None:
        host, by_key = self.host, self.host.outboxes.by_key
        while (done := host.server.finished(host.now, host.routes.total_size(by_key))) is not None:
            host.meter.count_serviced(done)
            link, link_id, message, ends_frame = done.item
            if link.id == link_id and host.knows(link):
                self._take(link, message, ends_frame)
            elif isinstance(message, msg.Pub | msg.Gap):
                # Its link is over, but it has been acknowledged to the neighbour, which does not send it again.
                self._relay(link, message)

    def wake_at(self) -> float:
        is_waiting = self.turns.has_work or self.clients.waiting
        return self.host.now if is_waiting else self.host.server.wake_at()
