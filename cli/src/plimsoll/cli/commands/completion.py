"""`plimsoll completion`: the script by which a shell completes commands, options, kinds and names of objects."""

from __future__ import annotations

import argparse

from plimsoll.cli.exit_codes import OK
from plimsoll.cli.output import print_lines


def completion(options: argparse.Namespace) -> int:
    """Print the script of a shell; it asks this program at each press of the key."""
    from argcomplete.shell_integration import shellcode

    print_lines(shellcode(["plimsoll"], shell=options.shell).strip("\n"))
    return OK
