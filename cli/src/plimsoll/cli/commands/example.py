"""`plimsoll example`: print a fleet or a program to begin with, which an installed wheel has with it."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path

from plimsoll.cli.exit_codes import NOT_FOUND, OK, CommandError
from plimsoll.cli.output import print_line, print_lines
from plimsoll.core.spec.problems import suggestion

IN_WHEEL = Path(__file__).resolve().parents[1] / "examples"
IN_CHECKOUT = Path(__file__).resolve().parents[5] / "examples"
FILES = ("*.yaml", "clients/*.py", "kubernetes/**/*.yaml", "worlds/*.yaml")
"""What a wheel has of the examples; pyproject.toml puts the same into it."""
CHECKOUT_TAG = "plimsoll/broker:dev"
"""The image of brokers as `make images` builds it in a checkout; a release has its version as the tag."""


def example(options: argparse.Namespace) -> int:
    """Print an example, or list the examples."""
    is_release = IN_WHEEL.is_dir()
    folder = IN_WHEEL if is_release else IN_CHECKOUT
    found = {_name_of(path.relative_to(folder)): path for pattern in FILES for path in sorted(folder.glob(pattern))}
    if options.name is None:
        for name in found:
            print_line(name)
        return OK
    if options.name not in found:
        raise CommandError(
            NOT_FOUND, f'no example "{options.name}". {suggestion(options.name, list(found), "example")}'
        )
    text = found[options.name].read_text(encoding="utf-8").rstrip("\n")
    if is_release:
        text = text.replace(CHECKOUT_TAG, f"plimsoll/broker:{version('plimsoll-operator')}")
    print_lines(text)
    return OK


def _name_of(path: Path) -> str:
    """The name of an example: resources without their suffix, programs with it."""
    return (path.with_suffix("") if path.suffix == ".yaml" else path).as_posix()
