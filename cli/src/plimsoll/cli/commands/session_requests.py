"""What commands that make a session have in common: the fleet that runs, the parts of the spec, and the wait."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Container
from typing import Any

from plimsoll.cli import backend
from plimsoll.cli.backend import FleetBackend
from plimsoll.cli.exit_codes import CONFLICT, NOT_FOUND, OK, CommandError
from plimsoll.cli.output import print_error, print_line
from plimsoll.cli.session_wait import wait_for_session
from plimsoll.mediator.spec_edits import EditRefusedError


def running_backend(options: argparse.Namespace) -> FleetBackend:
    """The fleet that a command changes, which has to run."""
    place = backend.choose_backend(options)
    if why := place.not_running_reason():
        raise CommandError(NOT_FOUND, why)
    return place


def common_spec(options: argparse.Namespace, brokers: Container[str]) -> dict[str, Any]:
    """What rebalance and drain have in common; an excluded name that is a broker's means the broker."""
    spec: dict[str, Any] = {"mode": "DryRun" if options.dry_run else "Execute"}
    if options.handover != "auto":
        spec["handover"] = options.handover.capitalize()
    if options.approve != "automatic":
        spec["approval"] = {"policy": options.approve.capitalize()}
    if options.deadline is not None:
        spec["deadline"] = options.deadline
    named = [name for name in options.exclude if name in brokers]
    subscribers = [name for name in options.exclude if name not in brokers]
    exclusions = {"brokers": named, "subscribers": subscribers}
    if options.exclude:
        spec["exclusions"] = {key: names for key, names in exclusions.items() if names}
    return spec


def create_session(
    place: FleetBackend, options: argparse.Namespace, what: str, spec: dict[str, Any], *, cordon: str = ""
) -> int:
    """Make a session of a command, and wait for its end if that is wanted."""
    name = options.name or f"{what}-{options.source[:40].rstrip('-')}-{secrets.token_hex(3)}"
    try:
        has_cordoned = place.create_session(name, spec, cordon=cordon)
    except EditRefusedError as error:
        raise CommandError(CONFLICT, str(error)) from error
    if has_cordoned:
        print_note(options, f"{'head' if spec['action'] == 'MovePublishers' else 'edgebroker'}/{cordon} cordoned")
    print_note(options, f"loadbalancingsession/{name} created")
    return wait_for_session(place, name, options.output) if options.wait else OK


def print_note(options: argparse.Namespace, text: str) -> None:
    """Print to standard error if standard output is for a program."""
    (print_line if options.output == "table" else print_error)(text)
