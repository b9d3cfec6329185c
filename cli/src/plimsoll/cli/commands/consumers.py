"""The consumers of consumer groups: which there are, with their slices, what waits for them, and what they use."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.cli import backend
from plimsoll.cli.backend import FleetReader
from plimsoll.cli.exit_codes import NOT_FOUND, OK, CommandError
from plimsoll.cli.output import print_error, print_line, print_lines, table, yaml_text

WORDS = ("consumers", "consumer")
"""What `plimsoll get` calls them."""

TITLES = ("CONSUMER", "GROUP", "CLUSTER", "SLICES", "BACKLOG", "ITEMS/S", "US/ITEM", "CPU", "MEMORY")


def get_consumers(options: argparse.Namespace) -> int:
    """Show the consumers of all groups, or those of one name."""
    place: FleetReader = backend.choose_backend(options)
    found = [item for item in _all_consumers(place) if options.name in (None, item["name"])]
    if options.name is not None and not found:
        text = f'no consumer "{options.name}" in {place.title}; `plimsoll get consumers` lists them'
        raise CommandError(NOT_FOUND, text)
    if options.output in ("json", "yaml"):
        print_lines(json.dumps(found, indent=2) if options.output == "json" else yaml_text(found))
    elif options.output == "name":
        print_lines("\n".join(item["name"] for item in found))
    elif found:
        for line in table(TITLES, (_row(item) for item in found)):
            print_line(line)
    else:
        print_error(f"no consumers in {place.title}: they join groups by `connection.group(NAME).subscribe()`")
    return OK


def _all_consumers(place: FleetReader) -> Iterator[dict[str, Any]]:
    for cluster in sorted(place.displayed(place.objects("BrokerCluster")), key=lambda item: item["metadata"]["name"]):
        for group in cluster.get("status", {}).get("consumerGroups", ()):
            for item in group.get("consumers", ()):
                yield {"cluster": cluster["metadata"]["name"], "group": group["name"], **item}


def _row(item: Mapping[str, Any]) -> list[str]:
    numbers = [str(item.get(name, "-")) for name in ("slices", "backlog", "itemsPerSecond", "microsecondsPerItem")]
    shares = [f"{item[name]}%" if name in item else "-" for name in ("cpuPercent", "memoryPercent")]
    return [item["name"], item["group"], item["cluster"], *numbers, *shares]
