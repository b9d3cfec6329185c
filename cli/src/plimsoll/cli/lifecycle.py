"""Commands that change something: up, down, apply, delete; and validate, which changes nothing."""

from __future__ import annotations

import argparse

from plimsoll.cli import fleets
from plimsoll.cli.codes import CONFLICT, FAILED, NOT_FOUND, OK, CommandError
from plimsoll.cli.output import say
from plimsoll.cli.places import choose
from plimsoll.core.spec import InvalidResourcesError, Resources, parse, places
from plimsoll.core.spec.planning import carried_bytes_per_second, log_bytes
from plimsoll.core.spec.quantities import bytes_text
from plimsoll.local import manifests, ports, runtime
from plimsoll.local.home import FleetBusyError
from plimsoll.local.store import MissingError
from plimsoll.local.supervisor import StartError


def up(options: argparse.Namespace) -> int:
    """Run a fleet: here until Ctrl-C, or in the background."""
    resources = parse(manifests.load(options.files))
    try:
        if options.detach:
            runtime.up_detached(resources, say)
        else:
            runtime.up(resources, say)
    except FleetBusyError as error:
        raise CommandError(CONFLICT, str(error)) from error
    except StartError as error:
        raise CommandError(
            FAILED, f"fleet {resources.fleet.name} did not start, nothing is left running: {error}"
        ) from error
    return OK


def down(options: argparse.Namespace) -> int:
    """Stop a fleet."""
    folder = fleets.choose(options.fleet_name or options.fleet)
    try:
        stopped = runtime.down(folder)
    except TimeoutError as error:
        raise CommandError(FAILED, str(error)) from error
    say(f"fleet {folder.fleet} has stopped" if stopped else f"fleet {folder.fleet} does not run")
    return OK


def apply(options: argparse.Namespace) -> int:
    """Change a fleet's objects."""
    place = choose(options)
    for what, subject in place.apply(manifests.load(options.files)):
        say(f"{subject} {what}")
    return OK


def delete(options: argparse.Namespace) -> int:
    """Delete one object."""
    place = choose(options)
    kind = fleets.kind(options.kind)
    try:
        place.delete(kind.name, options.name)
    except MissingError as error:
        raise CommandError(NOT_FOUND, f'there is no {kind.name} "{options.name}" in {place.title}') from error
    except runtime.RefusedError:
        raise
    except InvalidResourcesError as error:
        raise CommandError(CONFLICT, f"{kind.name}/{options.name} is needed:\n{error}") from error
    say(f"{kind.name}/{options.name} deleted")
    return OK


def validate(options: argparse.Namespace) -> int:
    """Check files as `up` does, and say what they ask for."""
    resources = parse(manifests.load(options.files))
    if options.ports:
        ports.check(resources)
    for line in summary(resources):
        say(line)
    return OK


def summary(resources: Resources) -> list[str]:
    """What a fleet consists of, and what its heads' logs carry."""
    brokers = list(places(resources))
    heads = sum(place.role == "head" for place in brokers)
    lines = [f"fleet {resources.fleet.name}: {heads} heads, {len(brokers) - heads} edges; valid"]
    within = resources.fleet.spec.defaults.timing.reattach_within
    for name in sorted(resources.clusters):
        log, rate = bytes_text(log_bytes(resources, name)), bytes_text(int(carried_bytes_per_second(resources, name)))
        lines.append(f"  {name}: a log of {log} carries {rate} of input per second for 2 x reattachWithin {within}")
    if resources.fleet.spec.security.plain:
        lines.append("  security.plain is set: anyone who reaches a port may publish, read and command")
    return lines
