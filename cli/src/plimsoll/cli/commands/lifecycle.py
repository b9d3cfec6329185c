"""Commands that change a fleet: up, down, apply, delete; and validate, which only checks."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from plimsoll.cli import selectors
from plimsoll.cli.backend import FleetEditor, choose_backend
from plimsoll.cli.contexts.fleet_choice import LocalChoice, choose_fleet
from plimsoll.cli.exit_codes import BAD_INPUT, CONFLICT, FAILED, NOT_FOUND, OK, CommandError
from plimsoll.cli.output import print_error, print_line, print_lines
from plimsoll.core.spec import InvalidResourcesError, Resources, declared_brokers, parse
from plimsoll.core.spec.broker_config import carried_bytes_per_second, log_bytes
from plimsoll.core.spec.problems import nearest_word
from plimsoll.core.spec.quantities import bytes_text
from plimsoll.feeds.checks import check_feeds
from plimsoll.local import manifests, ports, runtime
from plimsoll.local.storage.fleet_folder import FleetBusyError
from plimsoll.local.storage.object_store import ObjectMissingError
from plimsoll.local.supervision.broker_reconciler import FleetStartError


def up(options: argparse.Namespace) -> int:
    """Run a fleet: here until Ctrl-C, or in the background."""
    resources = parse(manifests.load(options.files))
    if (wanted := getattr(options, "fleet", None)) not in (None, resources.fleet.name):
        message = f"the fleet of these files is called {resources.fleet.name}, and --fleet says {wanted}: leave it out"
        raise CommandError(BAD_INPUT, message)
    try:
        if options.detach:
            runtime.up_detached(resources, print_lines, options.metrics or "")
        else:
            runtime.up(resources, print_lines, metrics=options.metrics or "")
    except FleetBusyError as error:
        raise CommandError(CONFLICT, str(error)) from error
    except FleetStartError as error:
        raise CommandError(
            FAILED, f"fleet {resources.fleet.name} did not start; all its processes were stopped: {error}"
        ) from error
    return OK


def down(options: argparse.Namespace) -> int:
    """Stop a fleet."""
    folder = selectors.select_fleet(options.fleet_name or _local_fleet(options))
    try:
        stopped = runtime.down(folder)
    except TimeoutError as error:
        raise CommandError(FAILED, str(error)) from error
    print_line(f"fleet {folder.fleet} stopped" if stopped else f"fleet {folder.fleet} is not running")
    return OK


def _local_fleet(options: argparse.Namespace) -> str | None:
    choice = choose_fleet(options)
    if isinstance(choice, LocalChoice):
        return choice.fleet
    raise CommandError(BAD_INPUT, "this command is for a fleet of this machine: name it with --fleet NAME")


def apply(options: argparse.Namespace) -> int:
    """Change a fleet's objects."""
    place: FleetEditor = choose_backend(options)
    for what, subject in place.apply(manifests.load(options.files)):
        print_line(f"{subject} {what}")
    if why := place.unserved_reason():
        print_error(why)
    return OK


def delete(options: argparse.Namespace) -> int:
    """Delete one object."""
    place = choose_backend(options)
    kind = selectors.resolve_kind(options.kind)
    try:
        place.delete(kind.name, options.name)
    except ObjectMissingError as error:
        close = nearest_word(options.name, [item["metadata"]["name"] for item in place.objects(kind.name)])
        hint = f'. Did you mean "{close}"?' if close else ""
        raise CommandError(NOT_FOUND, f'there is no {kind.name} "{options.name}" in {place.title}{hint}') from error
    except runtime.FleetChangeRefusedError:
        raise
    except InvalidResourcesError as error:
        raise CommandError(CONFLICT, f"{kind.name}/{options.name} is in use:", str(error)) from error
    print_line(f"{kind.name}/{options.name} deleted")
    return OK


def validate(options: argparse.Namespace) -> int:
    """Check files as `up` does, and summarise the fleet that they describe."""
    resources = parse(manifests.load(options.files))
    check_feeds(resources)
    if options.ports:
        ports.check_ports(resources)
    for line in summary(resources):
        print_line(line)
    return OK


def summary(resources: Resources) -> list[str]:
    """What a fleet consists of, what its heads' logs carry, and what is lost with those in memory."""
    brokers = list(declared_brokers(resources))
    heads = sum(place.role == "head" for place in brokers)
    lines = [f"fleet {resources.fleet.name}: {heads} heads, {len(brokers) - heads} edges; valid"]
    within = resources.fleet.spec.defaults.timing.reattach_within
    for name in sorted(resources.clusters):
        log, rate = bytes_text(log_bytes(resources, name)), bytes_text(int(carried_bytes_per_second(resources, name)))
        lines.append(f"  {name}: a log of {log} carries {rate} of input per second for 2 x reattachWithin {within}")
    lines += _kept_in_memory(resources)
    if resources.fleet.spec.security.plain:
        lines.append("  security.plain is set: anyone who reaches a port may publish, read and command")
    return lines


def _kept_in_memory(resources: Resources) -> Iterator[str]:
    """What is lost with heads that keep their log in memory only."""
    heads = {name: resources.clusters[name].spec.head for name in sorted(resources.clusters)}
    lost = "publications that are accepted and not yet delivered are lost, as gaps,"
    in_memory = [name for name, head in heads.items() if head.log.disk is None]
    if alone := [name for name in in_memory if not heads[name].standby]:
        yield f"  head.log.disk is not set in {', '.join(alone)}: {lost} when the head ends or restarts"
    if paired := [name for name in in_memory if heads[name].standby]:
        yield (
            f"  head.log.disk is not set in {', '.join(paired)}: {lost} if head and standby end, or one while it is"
            " alone"
        )
