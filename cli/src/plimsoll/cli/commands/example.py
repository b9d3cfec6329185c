"""`plimsoll example`: print the resources of a small fleet, which an installed wheel has with it."""

from __future__ import annotations

import argparse
from pathlib import Path

from plimsoll.cli.exit_codes import NOT_FOUND, OK, CommandError
from plimsoll.cli.output import print_line, print_lines
from plimsoll.core.spec.problems import suggestion

IN_WHEEL = Path(__file__).resolve().parents[1] / "examples"
IN_CHECKOUT = Path(__file__).resolve().parents[5] / "examples"


def example(options: argparse.Namespace) -> int:
    """Print an example, or list the examples."""
    folder = IN_WHEEL if IN_WHEEL.is_dir() else IN_CHECKOUT
    found = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    if options.name is None:
        for name in found:
            print_line(name)
        return OK
    if options.name not in found:
        raise CommandError(
            NOT_FOUND, f'no example "{options.name}". {suggestion(options.name, list(found), "example")}'
        )
    print_lines(found[options.name].read_text(encoding="utf-8").rstrip("\n"))
    return OK
