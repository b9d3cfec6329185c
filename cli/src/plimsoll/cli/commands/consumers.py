"""The consumers of consumer groups: which there are, with their slices, what waits for them, and what they use."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.cli import backend
from plimsoll.cli.backend import FleetReader
from plimsoll.cli.commands import status_items
from plimsoll.cli.exit_codes import OK

WORDS = ("consumers", "consumer")
"""What `plimsoll get` calls them."""

TITLES = ("CONSUMER", "GROUP", "CLUSTER", "SLICES", "LAG", "BACKLOG", "ITEMS/S", "US/ITEM", "CPU", "MEMORY")


def get_consumers(options: argparse.Namespace) -> int:
    """Show the consumers of all groups, or those of one name."""
    place: FleetReader = backend.choose_backend(options)
    found = [item for item in _all_consumers(place) if options.name in (None, item["name"])]
    status_items.check_named(options, place, "consumer", found)
    empty = f"no consumers in {place.title}: they join groups by `connection.group(NAME).subscribe()`"
    status_items.print_items(options.output, found, TITLES, _row, lambda: empty)
    return OK


def _all_consumers(place: FleetReader) -> Iterator[dict[str, Any]]:
    for cluster, status in status_items.clusters(place):
        for group in status.get("consumerGroups", ()):
            for item in group.get("consumers", ()):
                yield {"cluster": cluster, "group": group["name"], **item}


def _row(item: Mapping[str, Any]) -> list[str]:
    numbers = [
        str(item.get(name, "-")) for name in ("slices", "lag", "backlog", "itemsPerSecond", "microsecondsPerItem")
    ]
    shares = [f"{item[name]}%" if name in item else "-" for name in ("cpuPercent", "memoryPercent")]
    return [item["name"], item["group"], item["cluster"], *numbers, *shares]
