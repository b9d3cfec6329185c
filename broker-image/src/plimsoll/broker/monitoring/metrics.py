"""The metrics of a broker, in the text format of Prometheus.

Every label has a closed set of values, known here or made from names in the program: a subscriber, a publisher, a
session or a predicate is never one; bundles are ranges, as many as the policy allows, and topics those that it names.
Counters start at 0 with the broker; a changed `epoch` shows that it restarted. Units are seconds, bytes and ratios.
docs/broker.md has the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from plimsoll.broker.monitoring.bundle_metrics import bundle_metrics
from plimsoll.broker.monitoring.group_metrics import group_metrics
from plimsoll.broker.monitoring.publisher_metrics import publisher_metrics
from plimsoll.broker.monitoring.snapshot import BrokerSnapshot
from plimsoll.broker.monitoring.topic_metrics import topic_metrics
from plimsoll.broker.monitoring.usage_meter import BOUNDS_SECONDS, RoundDurations
from plimsoll.core.policies.model.load import RESOURCES, ResourceThresholds
from plimsoll.core.transport.round_trips import ROLES

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
PREFIX: Final = "plimsoll_broker_"
STATES: Final = ("OK", "BUSY", "N/A", "STABILIZING")
OUTCOMES: Final = ("moved", "stayed", "away", "gone", "returned", "detached", "unknown")
MECHANISMS: Final = ("curve", "name", "role", "revoked")
LANES: Final = ("data", "control")
EVENTS: Final = ("accepted", "disconnected", "handshake_failed", "handshake_refused", "accept_failed")
REFUSALS: Final = {"frames_refused_": "frame", "records_refused_": "record", "control_refused_": "control"}


def render_metrics(snapshot: BrokerSnapshot) -> bytes:
    """All metrics of this moment."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_SnapshotCollector(snapshot))
    return generate_latest(registry)


class _SnapshotCollector(Collector):
    def __init__(self, snapshot: BrokerSnapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        yield from _identity(self._snapshot)
        yield from _traffic(self._snapshot)
        yield from _load(self._snapshot)
        yield from _round_trips(self._snapshot)
        yield from _contents(self._snapshot)
        yield from bundle_metrics(self._snapshot.report)
        yield from group_metrics(self._snapshot.report)
        yield from publisher_metrics(self._snapshot.publisher_moves)
        yield from topic_metrics(self._snapshot.report, self._snapshot.named_topics, self._snapshot.late)
        yield from _refusals(self._snapshot)
        yield from _process(self._snapshot)


def _identity(now: BrokerSnapshot) -> Iterator[Metric]:
    info = GaugeMetricFamily(PREFIX + "info", "Which broker this is; always 1.", labels=tuple(now.labels))
    info.add_metric(tuple(now.labels.values()), 1)
    yield info
    yield _gauge("epoch", "Epoch of this start of the broker: microseconds of the clock times 1024.", now.epoch)
    yield _gauge("ready", "Whether clients and subscribers may be sent here: 1 or 0.", not now.unready)
    state = now.report.get("state", "N/A")
    yield _gauges(
        "state", "State in the load report: 1 for the present state, 0 for the others.", "state", STATES, {state: 1}
    )


def _traffic(now: BrokerSnapshot) -> Iterator[Metric]:
    totals, counters = now.totals, now.counters
    yield _counter("messages_received", "Publications that were received.", totals.get("arrivals", 0))
    yield _counter(
        "messages_delivered",
        "Publications sent on: deliveries of an edge, relays of a head.",
        totals.get("deliveries", 0),
    )
    yield _counter("output_bytes", "Bytes of data frames sent.", totals.get("bytes_out", 0))
    dropped = {
        "slow-subscriber": counters.get("deliveries_dropped", 0),
        "publication-refused": counters.get("publications_refused", 0),
    }
    yield _counters("messages_dropped", "Publications dropped, by reason.", "reason", tuple(dropped), dropped)
    yield _counter(
        "duplicates_suppressed",
        "Publications that were received again and ignored.",
        counters.get("publications_repeated", 0) + counters.get("relays_repeated", 0),
    )
    yield _counter(
        "gaps_detected",
        "Gaps received or detected: lost publications that are reported to the subscribers here.",
        counters.get("gaps_in", 0) + counters.get("gaps_logged", 0),
    )
    yield _counter(
        "gaps_sent", "Gaps sent to edges and neighbours that have fallen behind the log.", counters.get("gaps_sent", 0)
    )
    yield SummaryMetricFamily(
        PREFIX + "match_duration_seconds",
        "Service time of publications, from frame in to buffers out: the matching delay of the policies.",
        count_value=now.served,
        sum_value=now.service_seconds,
    )
    yield _histogram("round_duration_seconds", "Rounds of the loop that had data, from receiving to sent.", now.rounds)


def _load(now: BrokerSnapshot) -> Iterator[Metric]:
    report = now.report
    for name, text in (
        ("input_utilization", "Arrival rate times matching delay: 1 is all that the broker can take."),
        ("output_utilization", "Output over output bandwidth; 0 where the profile sets none."),
        ("downlink_utilization", "Bytes that come in over input bandwidth; 0 where the profile sets none."),
        ("input_queue_delay_seconds", "Mean wait before service, in the last report interval."),
        ("output_queue_delay_seconds", "Mean wait of frames for room on their link, in the last report interval."),
        ("cpu_ratio", "CPU used over the limit of the profile."),
        ("memory_ratio", "Resident memory over the limit of the profile."),
    ):
        yield _gauge(name, text, report.get(name, 0.0))
    if now.thresholds is not None:
        yield _load_line(now.thresholds)
    messages = {"input": report.get("input_queue_messages", 0), "output": report.get("output_queue_messages", 0)}
    yield _gauges("queue_messages", "Messages that wait, by queue.", "queue", tuple(messages), messages)
    octets = {"input": report.get("input_queue_bytes", 0), "output": report.get("output_queue_bytes", 0)}
    yield _gauges("queue_bytes", "Bytes that wait, by queue.", "queue", tuple(octets), octets)


def _round_trips(now: BrokerSnapshot) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        PREFIX + "link_round_trip_seconds",
        "Round trips of open links, each the least of its last answers, by the role of the peer; 0 before the first.",
        labels=("peer", "statistic"),
    )
    for statistic, name in (("max", "round_trip_seconds"), ("median", "round_trip_median_seconds")):
        found = now.report.get(name, {})
        for role in ROLES:
            family.add_metric((role, statistic), found.get(role, 0.0))
    yield family


def _load_line(thresholds: ResourceThresholds) -> Metric:
    family = GaugeMetricFamily(
        PREFIX + "load_threshold_ratio",
        "The load line of the policy: above lower an edge takes nothing more, above higher it seeks relief.",
        labels=("resource", "bound"),
    )
    for resource in RESOURCES:
        for bound in ("lower", "higher"):
            family.add_metric((resource, bound), getattr(thresholds.of(resource), bound))
    return family


def _contents(now: BrokerSnapshot) -> Iterator[Metric]:
    report = now.report
    yield _gauge("links", "Links that are open.", now.links)
    yield _gauge("subscribers", "Subscribers of an edge, or of all edges of a head.", report.get("subscribers", 0))
    yield _gauge("subscriptions", "Subscriptions that publications are compared with.", report.get("subscriptions", 0))
    yield _gauge("publishers", "Publishers that a head remembers.", report.get("publishers", 0))
    yield _gauge("log_bytes", "Bytes in the log of a head.", report.get("log_bytes", 0))
    yield _gauge("log_limit_bytes", "Bytes that the log of a head may hold.", report.get("log_limit_bytes", 0))
    yield _gauge("durable_subscribers", "Places that a head keeps itself.", report.get("durable_subscribers", 0))
    yield _gauge("subscribers_away", "Of these, subscribers that are away.", report.get("subscribers_away", 0))
    yield _gauge(
        "away_held_bytes", "Bytes of the log that the farthest of them is behind.", report.get("away_held_bytes", 0)
    )
    if "log_sync" in now.process:
        yield from _log_disk(now.process)
    if "standby_in_sync" in now.process:
        yield from _standby(now.process)
    yield _gauge("sessions", "Hand-overs under way that this head decides on.", now.sessions)
    yield _gauge("arriving_subscribers", "Places kept by an edge for subscribers on their way here.", now.arriving)
    yield _counters(
        "session_members", "Members of hand-overs that have ended, by outcome.", "outcome", OUTCOMES, now.outcomes
    )
    yield _counter(
        "subscribers_disconnected",
        "Subscribers that did not keep up and were disconnected by their policy.",
        now.counters.get("subscribers_disconnected", 0),
    )


def _log_disk(disk: Mapping[str, Any]) -> Iterator[Metric]:
    yield _gauge("log_disk_bytes", "Bytes of the log on its disk.", disk["log_disk_bytes"])
    yield _gauge("log_disk_limit_bytes", "Bytes that the log may have on its disk.", disk["log_disk_limit_bytes"])
    yield _gauge("log_disk_full", "1 while there is no room for the next segment, else 0.", bool(disk["log_fault"]))
    yield _counter("log_syncs", "Syncs of the log.", disk["log_syncs"])
    yield _counter("log_sync_seconds", "Time that syncs of the log have taken.", disk["log_sync_seconds"])
    yield _gauge("log_rounds_held", "Rounds whose output waits for a sync.", disk["log_rounds_held"])
    yield _gauge(
        "log_unchecked_bytes", "Bytes of segments not read since the start.", disk.get("log_unchecked_bytes", 0)
    )
    yield _counter(
        "log_damages",
        "Parts of the log that could not be read, and have become gaps.",
        disk["log_damages"] + disk["log_read_faults"],
    )


def _standby(pair: Mapping[str, Any]) -> Iterator[Metric]:
    yield _gauge("standby_term", "How many times a process has been made this head.", pair["term"])
    yield _gauge("standby_in_sync", "1 while a standby has all of the log, else 0.", bool(pair["standby_in_sync"]))
    yield _gauge("standby_behind_bytes", "Bytes of the log that it has not stored.", pair["standby_behind_bytes"])
    yield _gauge("standby_rounds_held", "Rounds whose output waits for the standby.", pair["standby_rounds_held"])


def _refusals(now: BrokerSnapshot) -> Iterator[Metric]:
    yield _counters(
        "auth_failures",
        "Refusals of peers, by what was not proven: the key, the name, the role, or a key that has been removed.",
        "mechanism",
        MECHANISMS,
        now.refusals,
    )
    yield _counter("links_ended", "Links ended because their key has been removed.", now.refusals.get("ended", 0))
    refused = CounterMetricFamily(
        PREFIX + "refused", "Input that was refused, by kind and reason.", labels=("kind", "reason")
    )
    for name, count in sorted(now.counters.items()):
        for prefix, kind in REFUSALS.items():
            if name.startswith(prefix):
                refused.add_metric((kind, name.removeprefix(prefix)), count)
    yield refused
    yield _counter("quota_holds", "Times that a publisher had to wait for its quota.", now.quota_holds)
    yield _counter("link_holds", "Times that a client had to wait for links to edges or heads.", now.link_holds)


def _process(now: BrokerSnapshot) -> Iterator[Metric]:
    process = now.process
    yield _gauge("resident_memory_bytes", "Resident memory of the process.", process.get("memory_bytes", 0))
    yield _gauge("restarts", "How often it has been started again in its pod.", process.get("restarts", 0))
    yield _gauge("loop_lag_seconds", "The latest tick of the last second.", process.get("loop_lag_seconds", 0.0))
    yield _gauge(
        "keys_fault", "Whether the file of authorised keys cannot be read: 1 or 0.", process.get("keys_fault", "") != ""
    )
    connections = CounterMetricFamily(
        PREFIX + "connections", "What happened to connections, by lane.", labels=("lane", "event")
    )
    for lane in LANES:
        for event in EVENTS:
            connections.add_metric((lane, event), process.get(f"{lane}_connections_{event}", 0))
    yield connections


# -- families of one or of few -----------------------------------------------------------------------------------------


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(PREFIX + name, text, value=value)


def _gauges(name: str, text: str, label: str, values: Iterable[str], found: Mapping[str, Any]) -> Metric:
    """One series per value of the label: all of them, always, and no other."""
    family = GaugeMetricFamily(PREFIX + name, text, labels=(label,))
    for value in values:
        family.add_metric((value,), found.get(value, 0))
    return family


def _counters(name: str, text: str, label: str, values: Iterable[str], found: Mapping[str, Any]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=(label,))
    for value in values:
        family.add_metric((value,), found.get(value, 0))
    return family


def _histogram(name: str, text: str, durations: RoundDurations) -> Metric:
    bounds = (*map(str, BOUNDS_SECONDS), "+Inf")
    buckets = list(zip(bounds, map(float, accumulate(durations.counts)), strict=True))
    return HistogramMetricFamily(PREFIX + name, text, buckets=buckets, sum_value=durations.seconds)
