"""`plimsoll logs`: the log of a broker, from its file or its pod."""

from __future__ import annotations

import argparse

from plimsoll.cli import backend
from plimsoll.cli.exit_codes import NOT_FOUND, OK, CommandError
from plimsoll.cli.output import print_line
from plimsoll.core.spec.quantities import Duration
from plimsoll.local.storage.object_store import ObjectMissingError


def logs(options: argparse.Namespace) -> int:
    """Print the lines of a broker's log."""
    place = backend.choose_backend(options)
    seconds = None if options.since is None else Duration.parse(options.since).seconds
    try:
        for line in place.log_lines(options.broker, options.tail, seconds, follow=options.follow):
            print_line(line)
    except ObjectMissingError as error:
        raise CommandError(NOT_FOUND, str(error)) from error
    return OK
