"""`plimsoll version`, and `plimsoll --version`."""

from __future__ import annotations

import argparse
from importlib.metadata import version as installed_version

from plimsoll.cli.exit_codes import OK
from plimsoll.cli.output import print_line
from plimsoll.core.spec import API_VERSION


def version(options: argparse.Namespace) -> int:
    """Print the version of this program and of the resources that it supports."""
    print_line(f"plimsoll {installed_version('plimsoll-operator')}, resources {API_VERSION}")
    return OK
