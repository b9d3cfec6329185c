"""`plimsoll get topics`: where each topic is, and how near its deadline."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.cli import backend
from plimsoll.cli.backend import FleetReader
from plimsoll.cli.commands import status_items
from plimsoll.cli.exit_codes import OK
from plimsoll.mediator.topic_status import worst_first

WORDS = ("topics", "topic")
"""What `plimsoll get` calls them."""

TITLES = (
    "TOPIC", "CLUSTER", "EDGE", "SUBSCRIBERS", "REQUIRED", "LATENCY", "DEPTH", "THRESHOLD", "LATE", "IN/S", "OUT/S",
    "REASON",
)  # fmt: skip
DANGER_SHARE = 0.9
"""Of the required latency, from which on a topic is marked."""


def get_topics(options: argparse.Namespace) -> int:
    """Show the topics of all clusters, or those of one name, nearest to their deadline first."""
    place: FleetReader = backend.choose_backend(options)
    found = [item for item in _all_topics(place) if options.name in (None, item["name"], item["hash"])]
    status_items.check_named(options, place, "topic", found)
    worst = [dict(item) for item in worst_first(found)]
    empty = f"no topics in {place.title}: they come with `policy: {{type: DelaySensitive}}` and a subscriber"
    status_items.print_items(options.output, worst, TITLES, _row, lambda: empty)
    return OK


def _all_topics(place: FleetReader) -> Iterator[dict[str, Any]]:
    for cluster, status in status_items.clusters(place):
        for item in status.get("topics", ()):
            yield {"cluster": cluster, **item}


def _row(item: Mapping[str, Any]) -> list[str]:
    names = ("depth", "depthThreshold", "late", "publicationsPerSecond", "deliveriesPerSecond")
    numbers = [str(item.get(name, "-")) for name in names]
    required, latency = item.get("requiredMilliseconds"), item.get("latencyMilliseconds")
    mark = "" if required is None or latency is None or latency < DANGER_SHARE * required else " !"
    times = ["-" if required is None else f"{required} ms", "-" if latency is None else f"{latency} ms{mark}"]
    where = [item["name"], item["cluster"], item.get("edge", "-"), str(item.get("subscribers", "-"))]
    return [*where, *times, *numbers, item.get("reason", "")]
