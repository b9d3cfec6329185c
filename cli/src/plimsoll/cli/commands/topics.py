"""`plimsoll get topics`: where each topic is, and how near its deadline."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.cli import backend
from plimsoll.cli.backend import FleetReader
from plimsoll.cli.exit_codes import NOT_FOUND, OK, CommandError
from plimsoll.cli.output import print_error, print_line, print_lines, table, yaml_text
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
    if options.name is not None and not found:
        raise CommandError(NOT_FOUND, f'no topic "{options.name}" in {place.title}; `plimsoll get topics` lists them')
    found = [dict(item) for item in worst_first(found)]
    if options.output in ("json", "yaml"):
        print_lines(json.dumps(found, indent=2) if options.output == "json" else yaml_text(found))
    elif options.output == "name":
        print_lines("\n".join(item["name"] for item in found))
    elif found:
        for line in table(TITLES, (_row(item) for item in found)):
            print_line(line)
    else:
        print_error(f"no topics in {place.title}: they come with `policy: {{type: DelaySensitive}}` and a subscriber")
    return OK


def _all_topics(place: FleetReader) -> Iterator[dict[str, Any]]:
    for cluster in sorted(place.displayed(place.objects("BrokerCluster")), key=lambda item: item["metadata"]["name"]):
        for item in cluster.get("status", {}).get("topics", ()):
            yield {"cluster": cluster["metadata"]["name"], **item}


def _row(item: Mapping[str, Any]) -> list[str]:
    names = ("depth", "depthThreshold", "late", "publicationsPerSecond", "deliveriesPerSecond")
    numbers = [str(item.get(name, "-")) for name in names]
    required, latency = item.get("requiredMilliseconds"), item.get("latencyMilliseconds")
    mark = "" if required is None or latency is None or latency < DANGER_SHARE * required else " !"
    times = ["-" if required is None else f"{required} ms", "-" if latency is None else f"{latency} ms{mark}"]
    where = [item["name"], item["cluster"], item.get("edge", "-"), str(item.get("subscribers", "-"))]
    return [*where, *times, *numbers, item.get("reason", "")]
