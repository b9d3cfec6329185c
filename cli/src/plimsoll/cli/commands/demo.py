"""`plimsoll demo`: the demonstration, where the checkout is installed."""

from __future__ import annotations

import argparse
import importlib

from plimsoll.cli.exit_codes import FAILED, CommandError


def demo(options: argparse.Namespace) -> int:
    """Run the demonstration with its own arguments."""
    given = options.arguments
    arguments = given[1:] if given[:1] == ["--"] else given
    try:
        module = importlib.import_module("plimsoll.demo")
    except ModuleNotFoundError as error:
        lacks = "the demo is not part of the wheel" if error.name == "plimsoll.demo" else f"the demo needs {error.name}"
        raise CommandError(FAILED, f"{lacks}: run make demo in a checkout") from error
    return int(module.main(arguments))
