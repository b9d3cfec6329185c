"""What the operator counts, as Prometheus reads it. Labels are bounded: no object, subscriber or session is one."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Mapping
from time import monotonic, time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from plimsoll.mediator.sessions import KIND as SESSION
from plimsoll.operator.names import Object
from plimsoll.operator.observed import seconds
from plimsoll.operator.session_metrics import LATE_SECONDS, SessionMetrics

SECONDS = (
    0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip
PHASES = (
    "Requested", "Negotiating", "Sampling", "Planned", "Preparing", "Cutting", "Draining", "Stabilizing", "Succeeded",
    "Failed", "RolledBack", "Rejected",
)  # fmt: skip


class Metrics:
    """The operator's own counters. Times are of one monotonic clock."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.reconciles = Counter(
            "plimsoll_reconcile",
            "Looks at a fleet, by how they ended.",
            ["controller", "result"],
            registry=self.registry,
        )
        self.reconcile_seconds = Histogram(
            "plimsoll_reconcile_duration_seconds", "Time of a look at a fleet, and of a round of its status.",
            ["controller"], buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.queue_depth = Gauge(
            "plimsoll_workqueue_depth", "Namespaces of which something was heard and not looked at.",
            registry=self.registry,
        )  # fmt: skip
        self.lag_seconds = Gauge(
            "plimsoll_event_loop_lag_seconds", "How late the event loop came to a task, at most of the last seconds.",
            registry=self.registry,
        )  # fmt: skip
        self.heard_at = Gauge(
            "plimsoll_watch_last_event_timestamp_seconds", "When a watch last told of an object.", ["kind"],
            registry=self.registry,
        )  # fmt: skip
        self.changes = Counter(
            "plimsoll_changes",
            "Changes made to objects of fleets.",
            ["change", "kind"],
            registry=self.registry,
        )
        self.fleets = Gauge("plimsoll_fleets", "Fleets that are served.", registry=self.registry)
        self.session = SessionMetrics(self.registry)
        """Takes what mediators store."""
        self.registry.register(Heard(self))
        self.heard = monotonic()

    def requests_of(self, requests: Mapping[tuple[str, str, int], int]) -> None:
        """Count an API client's requests from now on."""
        self.registry.register(Requests(requests))

    def sessions_of(self, objects: Callable[[], Iterable[Object]]) -> None:
        """Count sessions by phase whenever somebody asks."""
        self.registry.register(Sessions(objects))


class Requests(Collector):
    """Requests to the API server as its client has counted them: what the rights of the chart are held against."""

    def __init__(self, requests: Mapping[tuple[str, str, int], int]) -> None:
        self._requests = requests

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(
            "plimsoll_api_requests", "Requests to the API server, beside its watches; code 0 is no answer.",
            labels=["verb", "resource", "code"],
        )  # fmt: skip
        for (verb, resource, code), count in sorted(self._requests.items()):
            family.add_metric([verb, resource, str(code)], count)
        yield family


class Heard(Collector):
    """For how long the watches have been silent."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily(
            "plimsoll_watch_silence_seconds", "Time since any watch told of anything.",
            value=monotonic() - self._metrics.heard,
        )  # fmt: skip


class Sessions(Collector):
    """Sessions that are stored, by phase, and those that should have ended, if anybody goes on with them or not."""

    def __init__(self, objects: Callable[[], Iterable[Object]]) -> None:
        self._objects = objects

    def collect(self) -> Iterable[Metric]:
        statuses = [item.get("status", {}) for item in self._objects() if item["kind"] == SESSION]
        counts = Counts(str(status.get("phase", "Requested")) for status in statuses)
        family = GaugeMetricFamily("plimsoll_sessions", "Balancing sessions that are stored.", labels=["phase"])
        for phase in PHASES:
            family.add_metric([phase], counts[phase])
        yield family
        now = time() - LATE_SECONDS
        yield GaugeMetricFamily(
            "plimsoll_sessions_overdue", "Sessions that have not ended a minute after their deadline.",
            value=sum(1 for each in statuses if is_overdue(each, now)),
        )  # fmt: skip


def is_overdue(status: Mapping[str, Any], now: float) -> bool:
    """Whether a session has a deadline that is over, and no end."""
    return "endedAt" not in status and "deadlineAt" in status and seconds(status["deadlineAt"]) < now
