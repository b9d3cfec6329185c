"""Subscribers that are away and whose place a head keeps: for how long, how far behind, and what they hold back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.cli import backend
from plimsoll.cli.backend import FleetReader
from plimsoll.cli.commands import status_items
from plimsoll.cli.exit_codes import BAD_INPUT, OK, CommandError

WORDS = ("subscribers", "subscriber")
"""What `plimsoll get` calls them."""

TITLES = ("SUBSCRIBER", "CLUSTER", "IDENTITY", "AWAY", "LEASE", "BEHIND", "HELD BYTES", "MISSED")


def get_subscribers(options: argparse.Namespace) -> int:
    """Show the subscribers that are away, or one of them.

    Raises:
        CommandError: without `--away`: brokers do not list those that are there.

    """
    if not options.away:
        raise CommandError(BAD_INPUT, "write `plimsoll get subscribers --away`: only those that are away are listed")
    place: FleetReader = backend.choose_backend(options)
    found = [item for item in _all_away(place) if options.name in (None, item["name"])]
    status_items.check_named(options, place, "subscriber", found)
    empty = f"no subscriber of {place.title} is away: they ask for it by `Subscriber(..., lease=...)`"
    status_items.print_items(options.output, found, TITLES, _row, lambda: empty)
    return OK


def _all_away(place: FleetReader) -> Iterator[dict[str, Any]]:
    for cluster, status in status_items.clusters(place):
        for item in status.get("awaySubscribers", ()):
            yield {"cluster": cluster, **item}


def _row(item: Mapping[str, Any]) -> list[str]:
    times = [f"{item[name]}s" if name in item else "-" for name in ("awaySeconds", "leaseSeconds")]
    numbers = [str(item.get(name, "-")) for name in ("behind", "heldBytes", "missed")]
    return [item["name"], item["cluster"], item.get("identity") or "-", *times, *numbers]
