"""`plimsoll demo`: the demonstration, where the checkout is installed."""

from __future__ import annotations

import argparse

from plimsoll.cli.commands.checkout_program import run_program


def demo(options: argparse.Namespace) -> int:
    """Run the demonstration with its own arguments."""
    return run_program(options, "plimsoll.demo", "the demo", "demo")
