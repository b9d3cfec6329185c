"""Load reports of an edge: what its meter, queues and balancing agent show, sent to the head on the control socket."""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.attachment import SERVED
from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.edge.balancing.agent import BalancingAgent
from plimsoll.core.edge.bundle_meter import BundleMeter
from plimsoll.core.edge.head_messages import HeadMessages
from plimsoll.core.edge.stream_input import QueuedMessage
from plimsoll.core.edge.topic_meter import EdgeTimes, TopicMeter
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.metering.service_queue import ServiceQueue
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport import round_trips
from plimsoll.core.transport.link import Link, Peer
from plimsoll.core.transport.load_reporter import LoadReporter


class EdgeLoadReportContext(Protocol):
    """What load reports need of their edge."""

    config: BrokerConfig
    epoch: int
    counters: Counter[str]
    links: dict[Peer, Link]
    meter: LoadMeter
    reporter: LoadReporter
    server: ServiceQueue[QueuedMessage]
    attachments: AttachmentTable
    head_messages: HeadMessages
    balancing_agent: BalancingAgent | None
    bundle_meter: BundleMeter | None
    topic_meter: TopicMeter | None
    head: Link

    @property
    def now(self) -> float: ...
    def say_control(self, peer: str, /, *said: msg.ControlRecord) -> None: ...


class EdgeLoadReports:
    """Sends one report per interval, and passes it to the balancing agent."""

    def __init__(self, host: EdgeLoadReportContext) -> None:
        self.host = host

    def send(self) -> None:
        """Make the report of the interval that ends now, and send it."""
        host, agent = self.host, self.host.balancing_agent
        extra, state = self._measured(), "OK"
        if agent is not None:
            extra |= agent.measured(host.meter)
            state = agent.state
        if host.bundle_meter is not None:
            served = (a.subscriber for a in host.attachments.by_subscriber.values() if a.state in SERVED)
            extra |= host.bundle_meter.report(served, host.now)
        if host.topic_meter is not None:
            extra |= self._topics(host.topic_meter)
        # An edge that has fallen behind the log has not seen all of its load: balancing must not use these numbers.
        report = host.reporter.make(host.now, "N/A" if host.head_messages.lagging else state, extra)
        if agent is not None:
            agent.load_monitor.on_own_report(report)
        name = host.config.name
        host.say_control(host.config.head_name, msg.Identify(name, "edge", host.epoch), msg.LoadUpdate(report))

    def _topics(self, meter: TopicMeter) -> dict[str, Any]:
        """The loads of topics. What matching takes, and how busy the edge is, are those of the last report."""
        host, last, attachments = self.host, self.host.reporter.last, self.host.attachments
        # Only links that did not take all at the end of the last round have messages that wait.
        stuck = [each for each in attachments.by_link.values() if each.link.is_stuck]
        buffered = Counter(found for each in stuck for found in each.buffered_attachments())
        times = EdgeTimes(
            host.head.rtt_seconds / 2,
            last.get("input_queue_delay_seconds", 0.0) + last.get("match_delay_seconds", 0.0),
            host.config.hardware.output_bytes_per_second,
        )
        served = (a for a in attachments.by_subscriber.values() if a.state in SERVED)
        return meter.report(served, buffered, times, host.now)

    def _measured(self) -> dict[str, Any]:
        host = self.host
        by_link, table = host.attachments.by_link.values(), host.attachments.subscription_table
        queued = [attachment for link_attachments in by_link for attachment in link_attachments.queued]
        return {
            "subscribers": sum(a.state in SERVED for a in host.attachments.by_subscriber.values()),
            "subscriptions": len(table.index),
            "cover_subscriptions": len(table.cover),
            "input_queue_messages": len(host.server.queue),
            "output_queue_messages": sum(len(a.queue) for a in queued) + sum(len(each.link.buffer) for each in by_link),
            "output_queue_bytes": sum(a.queue_bytes for a in queued),
            **configured_fields(host.config),
            **round_trips.measured(host.links.values()),
            "counters": {**host.meter.total, **host.counters},
        }


def configured_fields(config: BrokerConfig) -> dict[str, float]:
    """Relative size, by which newcomers are placed before there is any load to compare; where the edge is, if known."""
    bandwidth, at = config.hardware.output_bytes_per_second, config.location
    found = {"capacity": 1.0 if bandwidth is None else bandwidth / 100_000}
    return found if at is None else {**found, "location_x": at[0], "location_y": at[1]}
