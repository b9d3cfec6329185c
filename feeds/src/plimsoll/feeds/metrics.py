"""The metrics of a recorder in Prometheus' data model, from its figures. The label `feed` names the feed."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from plimsoll.feeds.config import RecorderFigures


def recorder_metrics(feed: str, figures: RecorderFigures) -> Iterator[Metric]:
    """All families of one recorder."""
    rows = CounterMetricFamily("plimsoll_feed_publications", "Publications received.", labels=["feed", "outcome"])
    rows.add_metric([feed, "recorded"], figures.rows)
    rows.add_metric([feed, "dead_letter"], figures.dead_letters)
    yield rows
    for name, about, value in (
        ("gaps", "Gaps that the fleet has reported: publications that were missed.", figures.gaps),
        ("expired_rows", "Rows and dead letters that retention has deleted.", figures.expired_rows),
        ("commits", "Commits of the dataset.", figures.commits),
    ):
        counter = CounterMetricFamily(f"plimsoll_feed_{name}", about, labels=["feed"])
        counter.add_metric([feed], value)
        yield counter
    for name, about, level in (
        ("files", "Files of the dataset.", figures.files),
        ("size_bytes", "Size of its files.", figures.size_bytes),
        ("waiting_rows", "Publications that are received and not committed yet.", figures.waiting),
        (
            "lag_seconds",
            "How long ago the newest publication was sent when it was received; 0 without one.",
            figures.lag_us / 1e6,
        ),
        ("committed_timestamp_seconds", "When the last commit was made.", figures.committed_us / 1e6),
    ):
        gauge = GaugeMetricFamily(f"plimsoll_feed_{name}", about, labels=["feed"])
        gauge.add_metric([feed], level)
        yield gauge
