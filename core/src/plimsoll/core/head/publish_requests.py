"""What publishers ask of a head: to open, to publish, to close. Each publication is accepted or refused, by number."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.distributor import Distributor
from plimsoll.core.head.durability.continuation import EpochContinuation
from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.head_cordon import HeadCordon
from plimsoll.core.head.open_publisher import OpenPublisher
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_arrivals import PublisherArrivals
from plimsoll.core.head.publisher_moves import PublisherMoves
from plimsoll.core.head.publisher_paths import PathExchange
from plimsoll.core.head.publishers import AnyOpen, PublisherTable
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.startup import StartupBarrier
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.permissions import NameGrants
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.messages.publications import SMALL_BODY_BYTES, attributes_fault
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.link import Link

FORGOTTEN_LEASES: Final = 10
"""How many leases a publisher is remembered for that is away."""
OPEN_UNITS: Final = 50
"""Of an OPEN; a unit is some quarter of a microsecond. Publications are bounded by credit."""
CORDONED: Final = "cordoned"
"""Code of REFUSED: this head takes no new publishers."""


def cordoned_text(head: str, other: msg.HeadAddress) -> str:
    """What an application is told whose client does not follow by itself."""
    return f"{head} takes no new publishers, since it is to be replaced: connect to {other.head} at {other.endpoint}"


class PublishContext(Protocol):
    """The parts of a head that decide on a publication."""

    now: float
    config: BrokerConfig
    continuation: EpochContinuation
    journal: LogJournal | None
    publishers: PublisherTable
    publisher_moves: PublisherMoves
    publisher_arrivals: PublisherArrivals
    publisher_paths: PathExchange
    startup: StartupBarrier
    head_cordon: HeadCordon
    distributor: Distributor
    groups: GroupTable
    counters: Counter[str]
    name_grants: NameGrants
    meter: LoadMeter

    def say(self, link: Link, record: msg.ToClient) -> None: ...


class PublishRequests(HeadPart):
    """Answers to OPEN, PUBLISH and CLOSE. ACCEPTED comes from the publisher table at the end of the round."""

    def __init__(self, host: PublishContext) -> None:
        self.host = host

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_clients.add(msg.Publish, self.publish)
        handlers.of_clients.add(msg.Close, self.close)
        handlers.of_clients.add_costly(msg.Open, self.open, OPEN_UNITS)
        handlers.of_clients.add_costly(msg.OpenStandby, self.open, OPEN_UNITS)
        handlers.of_clients.add_costly(msg.OpenReturning, self.open, OPEN_UNITS)

    # -- hooks of a head

    def client_lost(self, link: Link) -> None:
        self.host.publisher_moves.link_lost(self.host.publishers.lost(link))

    def on_ready(self) -> None:
        for link, opening in self.host.startup.take_waiting():
            self.open(link, opening)

    def tick(self) -> None:
        """Send the answers that are due."""
        for link, answer in self.host.publishers.answers.due(self.host.now):
            self.host.say(link, answer)

    def expire(self) -> None:
        limits, factor = self.host.config.limits, self.host.config.time_factor
        self.host.publishers.forget_idle(self.host.now, FORGOTTEN_LEASES * limits.lease_seconds * factor)

    def wake_at(self) -> float:
        return self.host.publishers.answers.wake_at(self.host.now)

    def status(self) -> dict[str, Any]:
        return {"publishers": len(self.host.publishers)}

    # -- requests

    def open(self, link: Link, opening: AnyOpen) -> None:
        host = self.host
        if host.startup.is_starting:
            host.startup.wait(link, opening)
            return
        try:
            if isinstance(opening, msg.OpenStandby):
                host.publisher_arrivals.stand_by(link, opening)
            elif not isinstance(opening, msg.Open) or not self._sent_elsewhere(link, opening):
                self.open_now(link, opening)
        except WireError as error:
            host.counters["publishers_refused"] += 1
            host.say(link, msg.Refused(opening.handle, 0, error.code, str(error)))

    def _sent_elsewhere(self, link: Link, opening: msg.Open) -> bool:
        """Send a new publisher to another head if this one takes none. One that has been here is taken again.

        Raises:
            WireError: as `PublisherTable.check`.

        """
        host = self.host
        known = host.publishers.check(link, opening, host.name_grants)
        is_known = known is not None and known.identity == link.identity and known.incarnation >= opening.incarnation
        if is_known or (other := host.head_cordon.elsewhere(opening.publisher)) is None:
            return False
        host.counters["publishers_sent_elsewhere"] += 1
        host.say(link, msg.PublisherElsewhere(opening.handle, other.head, other.endpoint, other.public_key))
        host.say(link, msg.Refused(opening.handle, 0, CORDONED, cordoned_text(host.config.name, other)))
        return True

    def open_now(self, link: Link, opening: AnyOpen) -> None:
        """Open a publisher here, or say where it has gone.

        Raises:
            WireError: as `PublisherTable.check`.

        """
        host = self.host
        opened = host.publishers.open(
            link, opening, host.config.name, host.continuation.memory, host.now, host.name_grants
        )
        if opened is None:
            known = host.publishers.by_name[opening.publisher]
            text = (
                f"publisher {opening.publisher!r} is open in a newer incarnation, {known.incarnation}, and this one is "
                f"{opening.incarnation}; give each process names of its own, or see whether the clock of this "
                "machine has gone back"
            )
            host.say(
                link,
                msg.Refused(opening.handle, 0, "incarnation", text, known.incarnation if known.link is None else 0),
            )
            return
        exceptions = host.publishers.answers.again(opening.publisher, opening.handle)
        if isinstance(opened, msg.PublisherLeft):
            for exception in exceptions:
                host.say(link, exception)
            host.say(link, opened)  # it answers all numbers but those
            return
        host.publisher_moves.opened(host.publishers.by_name[opening.publisher])
        host.groups.notices.tell(link)
        host.say(link, opened)
        for exception in exceptions:
            host.say(link, exception)

    def close(self, link: Link, closing: msg.Close) -> None:
        host = self.host
        if not host.publisher_arrivals.close(link, closing.handle) and (
            publisher := host.publishers.get(link, closing.handle)
        ):
            host.publishers.close(link, closing.handle)
            host.publisher_moves.link_lost([publisher])

    def publish(self, link: Link, request: msg.Publish) -> None:
        host = self.host
        host.meter.arrivals += 1
        publisher = host.publishers.get(link, request.handle)
        if publisher is None:
            text = "open a publisher with this handle first"
            host.say(link, msg.Refused(request.handle, request.seq, "not-open", text))
        elif request.seq <= publisher.last_seq:
            # A client that reconnects sends what it has no answer to; the answer is repeated, not the publication.
            host.counters["publications_repeated"] += 1
            host.publishers.answers.touch(publisher.name)
        elif request.seq > publisher.last_seq + 1:
            # Taken, it would be answered by an ACCEPTED that also answers the numbers before it, which have not come.
            host.counters["publications_out_of_order"] += 1
            text = f"number {request.seq} is not the next: {publisher.last_seq + 1} is expected"
            host.say(link, msg.Refused(request.handle, request.seq, "out-of-order", text))
        elif request.seq > publisher.through:
            text = f"number {request.seq} is above the credit of {publisher.through}; wait for CREDIT"
            host.say(link, msg.Refused(request.handle, request.seq, "over-credit", text))
        elif host.journal is not None and host.journal.refusing:
            self._refuse(link, publisher, request, host.journal.refusing)
        else:
            self._accept(link, publisher, request)

    def _refuse(self, link: Link, publisher: OpenPublisher, request: msg.Publish, why: str) -> None:
        """Refuse a publication for which the disk has no room; its number is used up, as in `_accept`."""
        host = self.host
        host.publishers.took(publisher, request.seq, len(memoryview(request.body)), host.now)
        host.counters["publications_refused_by_disk"] += 1
        refused = msg.Refused(request.handle, request.seq, "log-full", why)
        host.publishers.answers.single_out(publisher, refused)
        host.say(link, refused)

    def _accept(self, link: Link, publisher: OpenPublisher, request: msg.Publish) -> None:
        host = self.host
        size, most = len(memoryview(request.body)), host.config.limits.max_publication_bytes
        # Its number is used up though it is refused: a refusal is an answer, and the same number does not come again.
        try:
            if size > most + host.groups.stamps.most_bytes:
                raise WireError("oversized", f"a publication of {size} bytes; at most {most} are taken")
            received = host.groups.stamps.received(request, msg.decode(msg.body, request.body))
            size = received.size
            if received.written_bytes > most:
                text = f"a publication of {received.written_bytes} bytes; at most {most} are taken"
                raise WireError("oversized", text)
            if size > SMALL_BODY_BYTES and (fault := attributes_fault(received.written)):
                raise WireError("oversized", fault)
        except WireError as error:
            host.publishers.took(publisher, request.seq, size, host.now)
            host.counters["publications_refused"] += 1
            refused = msg.Refused(request.handle, request.seq, error.code, str(error))
            host.publishers.answers.single_out(publisher, refused)
            if host.journal is not None:
                host.journal.refused(publisher.name, publisher.incarnation, refused)
            host.say(link, refused)
            return
        host.publishers.took(publisher, request.seq, size, host.now)
        if host.publisher_paths.attribute:
            host.publisher_paths.note(link, received.written)
        request, attributes, slices = host.groups.stamps.stamped(publisher.name, request, received)
        host.distributor.publish(publisher, request, attributes, slices)
