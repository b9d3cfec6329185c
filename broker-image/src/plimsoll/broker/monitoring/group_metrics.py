"""Metrics of consumer groups, as the last load report of their head has them.

A group and its slices are named, as many as are declared; a consumer never is, since applications choose its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from plimsoll.core.policies.consumer_groups.reported import reported_groups

PREFIX: Final = "plimsoll_broker_group_"
GAUGES: Final = (
    ("slices", "slices", "Slices of the group."),
    ("slices_without_consumer", "without_consumer", "Slices that no consumer has."),
    ("slices_in_session", "in_session", "Slices on their way from one consumer to another."),
    ("consumers", "members", "Consumers of the group."),
    ("lag_items", "lag", "Items in the log behind the last acknowledgement of their slice, held or not."),
    ("busy_consumers", "busy_consumers", "Seconds of work per second of all its consumers."),
    ("backlog_items", "backlog", "Items that consumers have been sent and have not finished."),
    ("items_per_second", "items_per_second", "Items that consumers finish."),
)
SLICE_GAUGES: Final = (
    (
        "slice_backlog_items", "slice_backlogs",
        "Items of a slice that its consumer has been sent and has not finished; for groups of at most 256 slices.",
    ),
    (
        "slice_lag_items", "slice_lags",
        "Items of a slice in the log behind its last acknowledgement; for groups of at most 256 slices.",
    ),
)  # fmt: skip
EVENTS: Final = ("joined", "left", "gone", "moved")
ENDS: Final = ("merged", "slow", "uncached", "lost")


def group_metrics(report: Mapping[str, Any]) -> Iterator[Metric]:
    """What each group of this head has; no series without groups."""
    groups = reported_groups(report)
    if not groups:
        return
    for name, field, text in GAUGES:
        family = GaugeMetricFamily(PREFIX + name, text, labels=("group",))
        for group, found in groups.items():
            family.add_metric((group,), found[field])
        yield family
    by_slice = [GaugeMetricFamily(PREFIX + name, text, labels=("group", "slice")) for name, _, text in SLICE_GAUGES]
    events = CounterMetricFamily(
        PREFIX + "events", "Consumers that joined, left or were gone, and slices that moved.", labels=("group", "event")
    )
    caches = CounterMetricFamily(
        PREFIX + "cache_sessions",
        "Slices that were to move with caches: merged, or else moved from the log, and why (slow, uncached, lost).",
        labels=("group", "outcome"),
    )
    unassigned = CounterMetricFamily(
        PREFIX + "unassigned_publications", "Publications of its stream without a slice.", labels=("group",)
    )
    for group, found in groups.items():
        for family, (_, field, _) in zip(by_slice, SLICE_GAUGES, strict=True):
            for number, items in found[field].items():
                family.add_metric((group, number), items)
        for event in EVENTS:
            events.add_metric((group, event), found["counts"][event])
        for end in ENDS:
            caches.add_metric((group, end), found["caches"][end])
        unassigned.add_metric((group,), found["unassigned_publications"])
    yield from (*by_slice, events, caches, unassigned)
