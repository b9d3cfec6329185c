"""Programs of the checkout behind a command of this tool: `plimsoll demo` and `plimsoll experiment`.

They are not part of the wheel, so they are found when they are asked for.
"""

from __future__ import annotations

import argparse
import importlib

from plimsoll.cli.exit_codes import FAILED, CommandError


def run_program(options: argparse.Namespace, package: str, what: str, target: str) -> int:
    """Run a program with its own arguments. `what`: its name in a sentence; `target`: the make target to run instead.

    Raises:
        CommandError: it is not installed, or lacks a package.

    """
    given = options.arguments
    arguments = given[1:] if given[:1] == ["--"] else given
    try:
        module = importlib.import_module(package)
    except ModuleNotFoundError as error:
        lacks = f"{what} is not part of the wheel" if error.name == package else f"{what} needs {error.name}"
        raise CommandError(FAILED, f"{lacks}: run make {target} in a checkout") from error
    return int(module.main(arguments))
