"""`plimsoll bench`: publish at a fixed rate, receive it again, and say what that took."""

from __future__ import annotations

import argparse
import json

from plimsoll.cli.bench.measurement import BenchSettings, measure
from plimsoll.cli.bench.report import report_lines, report_object
from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, OK, CommandError
from plimsoll.cli.fleet_connection import open_connection
from plimsoll.cli.output import print_error, print_line, print_lines

PUBLICATION_BYTES, MOST_PUBLICATIONS, MOST_CLIENTS = 250_000, 20_000_000, 10_000


def bench(options: argparse.Namespace) -> int:
    """Measure a fleet through the library that applications use; FAILED if a publication or delivery is missing."""
    settings = BenchSettings(options.publishers, options.subscribers, options.rate, options.size, options.seconds)
    if settings.size > PUBLICATION_BYTES:
        raise CommandError(BAD_INPUT, f"--size is at most {PUBLICATION_BYTES} bytes")
    if settings.publishers + settings.subscribers > MOST_CLIENTS:
        raise CommandError(BAD_INPUT, f"--publishers and --subscribers are at most {MOST_CLIENTS} together")
    if settings.total * settings.subscribers > MOST_PUBLICATIONS:
        raise CommandError(BAD_INPUT, f"that is more than {MOST_PUBLICATIONS} deliveries: lower --rate or --seconds")
    with open_connection(options) as published, open_connection(options) as subscribed:
        print_error(f"publishing {settings.total} publications in {settings.seconds:g} s ...")
        found = measure(settings, published, subscribed)
    if options.output == "json":
        print_lines(json.dumps(report_object(settings, found), indent=2))
    else:
        for line in report_lines(settings, found):
            print_line(line)
    return OK if found.is_complete else FAILED
