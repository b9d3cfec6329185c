"""`plimsoll experiment`: the papers' figures in virtual time, where the checkout is installed."""

from __future__ import annotations

import argparse

from plimsoll.cli.commands.checkout_program import run_program


def experiment(options: argparse.Namespace) -> int:
    """Run experiments with their own arguments."""
    return run_program(options, "plimsoll.experiments", "an experiment", "experiments")
