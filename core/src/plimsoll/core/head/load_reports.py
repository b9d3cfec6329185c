"""Load reports of a head: what its meter, streams and parts show. Edges are told one another's loads with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.load_exchange import LoadExchange
from plimsoll.core.head.log import Log, LogGrowth
from plimsoll.core.head.membership import Membership
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_paths import PathExchange
from plimsoll.core.head.publisher_topics import PublisherTopics
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.record_input import QueuedRecord
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.metering.service_queue import ServiceQueue
from plimsoll.core.transport import round_trips
from plimsoll.core.transport.heartbeats import Heartbeats
from plimsoll.core.transport.link import Link, Peer
from plimsoll.core.transport.load_reporter import LoadReporter


class HeadLoadReportContext(Protocol):
    """What load reports need of their head."""

    now: float
    config: BrokerConfig
    counters: Counter[str]
    heartbeats: Heartbeats
    links: dict[Peer, Link]
    load_exchange: LoadExchange | None
    log: Log
    membership: Membership
    meter: LoadMeter
    outboxes: Outboxes
    owners: OwnershipTable
    process: dict[str, Any]
    publisher_paths: PathExchange
    publisher_topics: PublisherTopics
    publishers: PublisherTable
    reporter: LoadReporter
    routes: RoutingTable
    server: ServiceQueue[QueuedRecord]
    topics: TopicOwners


class HeadLoadReports:
    """Sends one report per interval, with the fields of all `parts`."""

    def __init__(self, host: HeadLoadReportContext, parts: Sequence[HeadPart]) -> None:
        self.host, self.parts = host, parts
        self.log_growth = LogGrowth()
        self._is_first = True

    def send(self) -> None:
        """Make the report of the interval that ends now, and send it; tell edges the loads of the others."""
        host = self.host
        if self._is_first:
            self._is_first, host.meter.started = False, host.now
        host.topics.reconcile(host.membership.served, host.now)
        host.reporter.tell(host.reporter.make(host.now, "OK", self._measured()))
        if host.load_exchange is not None:
            host.load_exchange.tell_loads()
        host.publisher_paths.tell(host.reporter.last, host.config.hardware.output_bytes_per_second)
        host.heartbeats.measure_ways(closely=host.publisher_paths.is_wanted)

    def _measured(self) -> dict[str, Any]:
        host = self.host
        seconds, log_bytes_per_second = self.log_growth.since_last(host.log, host.now)
        fields: dict[str, Any] = {
            "subscribers": len(host.owners.entries),
            "subscriptions": host.routes.total_size(host.outboxes.by_key),
            "input_queue_messages": len(host.server.queue),
            "output_queue_messages": host.outboxes.waiting(),
            "log_bytes": host.log.bytes,
            "log_limit_bytes": host.log.limit_bytes,
            "log_bytes_per_second": log_bytes_per_second,
            **host.publishers.rates.report(seconds),
            **host.publisher_topics.report(seconds),
            "covers": {outbox.name: host.routes.size(outbox.key) for outbox in host.outboxes.by_key.values()},
            "neighbors_down": host.routes.lost_neighbors(),
            **round_trips.measured(host.links.values()),
            **(host.load_exchange.cluster() if host.load_exchange is not None else {}),
            **{name: value for name, value in host.process.items() if name.startswith("log_")},
        }
        for part in self.parts:
            fields |= part.report()
        return {**fields, "counters": {**host.meter.total, **host.counters}}
