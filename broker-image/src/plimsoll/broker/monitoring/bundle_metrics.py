"""Metrics of the bundles that an edge serves, as its last load report has them.

A bundle is named by its range, and their number is bounded by the policy, whatever topics applications publish: there
is no series of a topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric

from plimsoll.core.policies.model.bundle_load import BundleLoad, reported_bundles

PREFIX: Final = "plimsoll_broker_bundle_"


def bundle_metrics(report: Mapping[str, Any]) -> Iterator[Metric]:
    """What each bundle brings this edge; no series under a policy without bundles."""
    bundles = reported_bundles(report)
    topics = _family("topics", "Topics of the bundle with a subscriber here.")
    subscribers = _family("subscribers", "Subscribers of the bundle here, by topic.")
    for each in bundles:
        topics.add_metric((each.bundle.name,), each.topics)
        subscribers.add_metric((each.bundle.name,), each.sessions)
    yield from (topics, subscribers)
    yield _both_ways(
        "messages_per_second", "Publications in, and deliveries out.", bundles, "input_rate", "output_rate"
    )
    yield _both_ways("bytes_per_second", "Bytes of publications in and out.", bundles, "input_bytes", "output_bytes")


def _family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, text, labels=("bundle", *labels))


def _both_ways(name: str, text: str, bundles: tuple[BundleLoad, ...], came: str, went: str) -> GaugeMetricFamily:
    family = _family(name, f"{text} In the last report interval.", "direction")
    for each in bundles:
        family.add_metric((each.bundle.name, "in"), getattr(each, came))
        family.add_metric((each.bundle.name, "out"), getattr(each, went))
    return family
