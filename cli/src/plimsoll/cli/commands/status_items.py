"""Items that clusters list in their status (consumers, topics, bundles), shown as `plimsoll get` shows objects."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from plimsoll.cli.backend import FleetReader
from plimsoll.cli.exit_codes import NOT_FOUND, CommandError
from plimsoll.cli.output import print_error, print_line, print_lines, table, yaml_text

Item = Mapping[str, Any]


def clusters(place: FleetReader) -> Iterator[tuple[str, Item]]:
    """The clusters of a fleet, by name, each with its status."""
    for cluster in sorted(place.displayed(place.objects("BrokerCluster")), key=lambda item: item["metadata"]["name"]):
        yield cluster["metadata"]["name"], cluster.get("status", {})


def check_named(options: argparse.Namespace, place: FleetReader, kind: str, found: Sequence[Item]) -> None:
    """Raise if an item was named, and there is none.

    Raises:
        CommandError: there is no item of this name.

    """
    if options.name is not None and not found:
        text = f'no {kind} "{options.name}" in {place.title}; `plimsoll get {kind}s` lists them'
        raise CommandError(NOT_FOUND, text)


def print_items(
    output: str,
    found: Sequence[Item],
    titles: Sequence[str],
    row: Callable[[Item], Sequence[str]],
    empty: Callable[[], str],
) -> None:
    """Print items as JSON, YAML, names or a table. `empty`: what is said instead of an empty table."""
    if output in ("json", "yaml"):
        print_lines(json.dumps(found, indent=2) if output == "json" else yaml_text(found))
    elif output == "name":
        print_lines("\n".join(item["name"] for item in found))
    elif found:
        for line in table(titles, map(row, found)):
            print_line(line)
    else:
        print_error(empty())
