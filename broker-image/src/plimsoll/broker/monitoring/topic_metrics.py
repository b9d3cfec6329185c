"""Metrics of topics at an edge whose policy defends deadlines, as its last load report has them.

There is a series for each topic that the policy names, and one, `*`, for all others together: so their number is that
of the policy, whatever applications publish. Of the others the one with the least time left stands for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from plimsoll.core.policies.model.topic_load import TopicLoad, reported_topics

PREFIX: Final = "plimsoll_broker_topic_"
OTHERS: Final = "*"


def topic_metrics(report: Mapping[str, Any], named: Mapping[int, str], late: Mapping[int, int]) -> Iterator[Metric]:
    """What each topic brings this edge, and how near its deadline is; no series under a policy without deadlines.

    `named`: topics of the policy, by hash. `late`: late deliveries since the start, by hash, 0 for all others.
    """
    loads = _by_label(reported_topics(report), named)
    for name, text, value in (
        ("depth", "Messages that wait for the subscriber with the least time left.", lambda one: one.depth),
        ("latency_seconds", "Measured latency of its messages: links, brokers, and the wait in its queue.", _latency),
        (
            "required_latency_seconds",
            "Within which its messages are to be delivered.",
            lambda one: one.required_seconds,
        ),
        ("time_left_seconds", "What is left of the required latency; below 0 deliveries are late.", _left),
    ):
        family = GaugeMetricFamily(PREFIX + name, text, labels=("topic",))
        for label, load in sorted(loads.items()):
            if load.required_seconds or name == "depth":
                family.add_metric((label,), value(load))
        yield family
    counter = CounterMetricFamily(PREFIX + "late_deliveries", "Deliveries later than required.", labels=("topic",))
    for topic, count in sorted(late.items()):
        counter.add_metric((named.get(topic, OTHERS),), count)
    yield counter


def _by_label(loads: tuple[TopicLoad, ...], named: Mapping[int, str]) -> dict[str, TopicLoad]:
    found: dict[str, TopicLoad] = {}
    for load in loads:
        label = named.get(load.topic, OTHERS)
        if label not in found or _urgency(load) < _urgency(found[label]):
            found[label] = load
    return found


def _urgency(load: TopicLoad) -> tuple[float, int]:
    return (_left(load) if load.required_seconds else math.inf, load.topic)


def _latency(load: TopicLoad) -> float:
    return load.transmission_seconds + load.broker_seconds + load.wait_seconds


def _left(load: TopicLoad) -> float:
    return load.required_seconds - _latency(load)
