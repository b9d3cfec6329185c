"""The options of the demo, and where its files are."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.local.demo.workload import Scenario

DEFAULTS = Scenario()
_IN_REPOSITORY = Path(__file__).resolve().parents[5] / "examples" / "demo"
_IN_PACKAGE = Path(__file__).with_name("resources")


@dataclass(frozen=True)
class Options:
    """What was asked for. `clients`: processes that subscribe."""

    scenario: Scenario
    files: tuple[str, ...]
    report: Path
    plain: bool
    clients: int


def parse(argv: Sequence[str] | None) -> Options:
    """Read the command line; ends the process with a message and code 2 where it is wrong, as argparse does."""
    given = _parser().parse_args(argv)
    scenario = Scenario(
        seconds=given.seconds, publishers=given.publishers, subscribers=given.subscribers, seed=given.seed
    )
    return Options(scenario, tuple(given.file or [str(resources())]), given.report, given.plain, given.clients)


def resources() -> Path:
    """The folder with the fleet's YAML: of the sources, or of the installed package."""
    return _IN_REPOSITORY if _IN_REPOSITORY.is_dir() else _IN_PACKAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="plimsoll demo",
        description="Run a fleet on this machine, send real quotes through it, and audit every delivery.",
        epilog="Exit code 0: nothing lost, repeated or reordered, and no broker died. 1: otherwise. 2: wrong options "
        "or files. 4: another demo writes to the same folder. 130: interrupted.",
    )
    seconds = _between(1, 3600)
    parser.add_argument("--seconds", type=seconds, default=DEFAULTS.seconds, help="of traffic (default %(default)g)")
    parser.add_argument(
        "--subscribers", type=_whole(1, 100_000), default=DEFAULTS.subscribers, help="(default %(default)s)"
    )
    parser.add_argument("--publishers", type=_whole(1, 53), default=DEFAULTS.publishers, help="(default %(default)s)")
    seed = _whole(0, 2**63 - 1)
    parser.add_argument("--seed", type=seed, default=DEFAULTS.seed, help="of the plan (default %(default)s)")
    parser.add_argument(
        "--report", type=Path, default=Path("demo-report"), metavar="DIR", help="where reports go (default %(default)s)"
    )
    parser.add_argument("--plain", action="store_true", help="plain lines instead of a table that is drawn again")
    parser.add_argument(
        "--clients", type=_whole(1, 16), default=2, help="processes that subscribe (default %(default)s)"
    )
    parser.add_argument(
        "-f", "--file", action="append", metavar="FILE", help="resources of another fleet (file or folder; repeatable)"
    )
    return parser


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return value

    return read


def _between(low: float, high: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low:g} to {high:g}")
        return value

    return read
