"""The operator's Prometheus metrics. Labels are bounded: no object, subscriber or session is one."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Mapping
from time import monotonic, time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from plimsoll.mediator.session_objects import SESSION_KIND as SESSION
from plimsoll.operator.names import Object
from plimsoll.operator.reconcile.observed import unix_seconds
from plimsoll.operator.session_metrics import OVERDUE_GRACE_SECONDS, SessionMetrics

RECONCILE_BUCKETS = (
    0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip
SESSION_PHASES = (
    "Requested", "Negotiating", "Sampling", "Planned", "Preparing", "Cutting", "Draining", "Stabilizing", "Succeeded",
    "Failed", "RolledBack", "Rejected",
)  # fmt: skip


class OperatorMetrics:
    """The operator's own counters. Times are of one monotonic clock."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.reconciles = Counter(
            "plimsoll_reconcile",
            "Reconciliations of a fleet by result.",
            ["controller", "result"],
            registry=self.registry,
        )
        self.reconcile_seconds = Histogram(
            "plimsoll_reconcile_duration_seconds", "Duration of a reconciliation, and of writing the status.",
            ["controller"], buckets=RECONCILE_BUCKETS, registry=self.registry,
        )  # fmt: skip
        self.queue_depth = Gauge(
            "plimsoll_workqueue_depth", "Namespaces that have changed and wait for reconciliation.",
            registry=self.registry,
        )  # fmt: skip
        self.lag_seconds = Gauge(
            "plimsoll_event_loop_lag_seconds", "How late the event loop woke a task, at most, in the last seconds.",
            registry=self.registry,
        )  # fmt: skip
        self.last_event_timestamp = Gauge(
            "plimsoll_watch_last_event_timestamp_seconds", "Time of the last event of a watch.", ["kind"],
            registry=self.registry,
        )  # fmt: skip
        self.changes = Counter(
            "plimsoll_changes",
            "Steps executed on objects of fleets.",
            ["change", "kind"],
            registry=self.registry,
        )
        self.fleets = Gauge("plimsoll_fleets", "Fleets that are reconciled.", registry=self.registry)
        self.unserved = Gauge(
            "plimsoll_unserved_namespaces", "Namespaces with a watch that is refused.", registry=self.registry
        )
        self.session = SessionMetrics(self.registry)
        """Metrics of sessions, from what mediators store."""
        self.registry.register(WatchSilenceMetrics(self))
        self.last_event_at = monotonic()

    def requests_of(self, requests: Mapping[tuple[str, str, int], int]) -> None:
        """Export the counts of an API client's requests."""
        self.registry.register(ApiRequestMetrics(requests))

    def sessions_of(self, objects: Callable[[], Iterable[Object]]) -> None:
        """Export the number of sessions by phase."""
        self.registry.register(StoredSessionMetrics(objects))


class ApiRequestMetrics(Collector):
    """Requests to the API server as its client counts them; a test compares them with the rights of the chart."""

    def __init__(self, requests: Mapping[tuple[str, str, int], int]) -> None:
        self._requests = requests

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(
            "plimsoll_api_requests", "Requests to the API server without watches; code 0 means no answer.",
            labels=["verb", "resource", "code"],
        )  # fmt: skip
        for (verb, resource, code), count in sorted(self._requests.items()):
            family.add_metric([verb, resource, str(code)], count)
        yield family


class WatchSilenceMetrics(Collector):
    """Seconds for which the watches have been silent."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily(
            "plimsoll_watch_silence_seconds", "Time since the last event of any watch.",
            value=monotonic() - self._metrics.last_event_at,
        )  # fmt: skip


class StoredSessionMetrics(Collector):
    """Stored sessions by phase, and those past their deadline, unless another operator mediates them."""

    def __init__(self, objects: Callable[[], Iterable[Object]]) -> None:
        self._objects = objects

    def collect(self) -> Iterable[Metric]:
        statuses = [item.get("status", {}) for item in self._objects() if item["kind"] == SESSION]
        counts = Counts(str(status.get("phase", "Requested")) for status in statuses)
        family = GaugeMetricFamily("plimsoll_sessions", "Stored balancing sessions.", labels=["phase"])
        for phase in SESSION_PHASES:
            family.add_metric([phase], counts[phase])
        yield family
        now = time() - OVERDUE_GRACE_SECONDS
        yield GaugeMetricFamily(
            "plimsoll_sessions_overdue", "Sessions still open a minute after their deadline.",
            value=sum(1 for each in statuses if is_overdue(each, now)),
        )  # fmt: skip


def is_overdue(status: Mapping[str, Any], now: float) -> bool:
    """Whether a session is open after its deadline."""
    return "endedAt" not in status and "deadlineAt" in status and unix_seconds(status["deadlineAt"]) < now
