"""The metrics of recorders in Prometheus' data model, from their figures. The label `feed` names the feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from plimsoll.feeds.config import REQUEST_OUTCOMES, RecorderFigures
from plimsoll.feeds.serving.open_connections import END_REASONS

Value = Callable[[RecorderFigures], float]

COUNTERS: Final[Mapping[str, tuple[str, Value]]] = {
    "gaps": ("Gaps that the fleet has reported: publications that were missed.", lambda of: of.gaps),
    "expired_rows": ("Rows and dead letters that retention has deleted.", lambda of: of.expired_rows),
    "commits": ("Commits of the dataset.", lambda of: of.commits),
    "served_bytes": ("Bytes of its files that applications were sent.", lambda of: of.served.size_bytes),
}
GAUGES: Final[Mapping[str, tuple[str, Value]]] = {
    "files": ("Files of the dataset.", lambda of: of.files),
    "size_bytes": ("Size of its files.", lambda of: of.size_bytes),
    "read_connections": ("Connections of applications that are open.", lambda of: of.served.connections),
    "waiting_rows": ("Publications that are received and not committed yet.", lambda of: of.waiting),
    "lag_seconds": (
        "How long ago the newest publication was sent when it was received; 0 without one.",
        lambda of: of.lag_us / 1e6,
    ),
    "committed_timestamp_seconds": ("When the last commit was made.", lambda of: of.committed_us / 1e6),
}


def recorder_metrics(recorders: Mapping[str, RecorderFigures]) -> Iterator[Metric]:
    """All families of some recorders, by the name of their feed."""
    rows = CounterMetricFamily("plimsoll_feed_publications", "Publications received.", labels=["feed", "outcome"])
    for feed, figures in sorted(recorders.items()):
        rows.add_metric([feed, "recorded"], figures.rows)
        rows.add_metric([feed, "dead_letter"], figures.dead_letters)
    yield rows
    requests = CounterMetricFamily(
        "plimsoll_feed_read_requests", "Requests of applications that read the feed.", labels=["feed", "outcome"]
    )
    for feed, figures in sorted(recorders.items()):
        for outcome in REQUEST_OUTCOMES:
            requests.add_metric([feed, outcome], figures.served.requests.get(outcome, 0))
    yield requests
    ended = CounterMetricFamily(
        "plimsoll_feed_ended_connections", "Connections of applications that were ended.", labels=["feed", "reason"]
    )
    for feed, figures in sorted(recorders.items()):
        for reason in END_REASONS:
            ended.add_metric([feed, reason], figures.served.ended_connections.get(reason, 0))
    yield ended
    kinds: tuple[tuple[type[CounterMetricFamily | GaugeMetricFamily], Mapping[str, tuple[str, Value]]], ...] = (
        (CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES),
    )  # fmt: skip
    for kind, families in kinds:
        for name, (about, value) in families.items():
            found = kind(f"plimsoll_feed_{name}", about, labels=["feed"])
            for feed, figures in sorted(recorders.items()):
                found.add_metric([feed], value(figures))
            yield found
