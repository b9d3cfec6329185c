"""Experiments: the figures of the published systems, run on the queueing model, each beside the paper's own number.

An experiment builds worlds, runs them, and judges the paper's claims: held, or not held. Its result is one JSON file
and one page. docs/experiments.md is the guide.
"""

from plimsoll.experiments.command import main

__all__ = ["main"]
