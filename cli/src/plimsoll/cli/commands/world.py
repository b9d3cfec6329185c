"""`plimsoll world`: a World of the running fleet, for `plimsoll simulate`."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from plimsoll.cli import backend
from plimsoll.cli.backend import FleetReader
from plimsoll.cli.exit_codes import CONFLICT, FAILED, OK, CommandError
from plimsoll.cli.output import now, print_error, print_lines, yaml_text
from plimsoll.core.printable import printable
from plimsoll.mediator.fleet_resources import FLEET_KINDS, Object
from plimsoll.mediator.world.fleet_world import FleetWorld, FleetWorldError, check_ready, chosen_clusters, fleet_world
from plimsoll.mediator.world.traffic_survey import SurveyError, TrafficSurvey

BYTES_AT_MOST = 4 * 1024 * 1024
"""Of a file that is read again."""
COLUMNS = 118


def world(options: argparse.Namespace) -> int:
    """Print a World of the fleet with its resources, or write it to a file."""
    place: FleetReader = backend.choose_backend(options)
    if why := place.not_running_reason() or place.unserved_reason():
        raise CommandError(CONFLICT, why)
    if note := place.staleness_note():
        raise CommandError(CONFLICT, f"{note}; a World of it would be as old")
    items = place.objects(*FLEET_KINDS)
    at = now().strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        found = fleet_world(
            items, _survey(place, items, options), at=at, duration=options.duration, cluster=options.cluster or ""
        )
    except (FleetWorldError, SurveyError) as error:
        raise CommandError(FAILED, f"{place.title}: {error}") from error
    text = world_text(found, place.title)
    if len(text.encode()) > BYTES_AT_MOST:
        raise CommandError(FAILED, f"the World has more than {BYTES_AT_MOST >> 20} MiB: name one --cluster")
    _write(text, options)
    return OK


def _survey(place: FleetReader, items: Sequence[Object], options: argparse.Namespace) -> TrafficSurvey | None:
    """What the brokers say; None if they are not to be asked. Brokers that are not ready are not asked either."""
    if options.from_status:
        return None
    clusters = chosen_clusters(items, options.cluster or "")
    names = {each["metadata"]["name"] for each in clusters}
    edges = [e for e in items if e["kind"] == "EdgeBroker" and e["spec"]["clusterRef"]["name"] in names]
    check_ready(clusters, edges)
    return place.survey(items, options.cluster or "", options.over)


def _write(text: str, options: argparse.Namespace) -> None:
    if options.write is None:
        print_lines(text)
        return
    try:
        options.write.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(FAILED, f"{options.write} cannot be written: {error.strerror}") from error
    print_error(f"compare policies on it: plimsoll simulate -f {options.write} --policy own --policy none")


def world_text(found: FleetWorld, title: str) -> str:
    """The file: what was measured and assumed as comments, then the World and its fleet."""
    head = [f"# A World of {printable(title)}, made by `plimsoll world`.", *_comments(found.notes)]
    return "\n".join([*head, "---\n".join(f"{yaml_text(each)}\n" for each in found.documents).rstrip("\n")])


def _comments(notes: Iterable[str]) -> Iterator[str]:
    for note in notes:
        yield from textwrap.wrap(printable(note), COLUMNS, initial_indent="# - ", subsequent_indent="#   ")
