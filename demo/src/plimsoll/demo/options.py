"""The options of the demo, and where its files are."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from plimsoll.demo.analysis.balancing_result import POLICIES
from plimsoll.demo.workload import DemoScenario

PLACEMENT_SCENARIO = DemoScenario()
BALANCING_SCENARIO = DemoScenario(
    seconds=140.0, rate_factor=12.5, join_from=0.02, join_to=0.5, prefer="b1", step_at=0.8
)  # PADRES 2006, 6.2: all join the weakest edge, and half of the publishers double their rates later
_EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


@dataclass(frozen=True)
class DemoOptions:
    """The options of a run. `clients`: processes that subscribe. `balance`: the policy; None: newcomers are placed, and
    no subscriber is moved.
    """

    scenario: DemoScenario
    files: tuple[str, ...]
    report: Path
    plain: bool
    clients: int
    balance: str | None = None
    strict: bool = False


def parse(argv: Sequence[str] | None) -> DemoOptions:
    """Read the command line; if it is wrong, end the process with a message and code 2, as argparse does."""
    given = _parser().parse_args(argv)
    policy = None if given.place else given.balance
    base = PLACEMENT_SCENARIO if policy is None else BALANCING_SCENARIO
    scenario = msgspec.structs.replace(
        base, seconds=given.seconds or base.seconds, publishers=given.publishers, subscribers=given.subscribers,
        seed=given.seed,
    )  # fmt: skip
    files = tuple(given.file or [str(resource_folder("demo" if policy is None else "balancing"))])
    return DemoOptions(scenario, files, given.report, given.plain, given.clients, policy, given.strict)


def resource_folder(name: str = "demo") -> Path:
    """The folder of `examples/` with the YAML of a fleet."""
    return _EXAMPLES / name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="plimsoll demo",
        description="Run a fleet on this machine, send real quotes through it, and audit every delivery.",
        epilog="Exit code 0: nothing lost, repeated or reordered, and no broker died; with --strict also all claims on "
        "balancing held. 1: otherwise. 2: wrong options or files. 4: another demo writes to the same folder. 130: "
        "interrupted.",
    )
    seconds = _between(1, 3600)
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--balance", default="padres", choices=list(POLICIES), metavar="POLICY",
        help="all subscribers join the weakest edge, and this policy balances the fleet: " + ", ".join(POLICIES)
        + " (default %(default)s)",
    )  # fmt: skip
    ways.add_argument(
        "--place",
        action="store_true",
        help="a short run: each subscriber is placed where there is room, and none is moved",
    )
    parser.add_argument(
        "--seconds", type=seconds,
        help=f"of traffic (default {BALANCING_SCENARIO.seconds:g}, with --place {PLACEMENT_SCENARIO.seconds:g})",
    )  # fmt: skip
    parser.add_argument(
        "--subscribers", type=_whole(1, 100_000), default=BALANCING_SCENARIO.subscribers, help="(default %(default)s)"
    )
    parser.add_argument(
        "--publishers", type=_whole(1, 53), default=BALANCING_SCENARIO.publishers, help="(default %(default)s)"
    )
    seed = _whole(0, 2**63 - 1)
    parser.add_argument("--seed", type=seed, default=BALANCING_SCENARIO.seed, help="of the plan (default %(default)s)")
    parser.add_argument(
        "--report", type=Path, default=Path("demo-report"), metavar="DIR", help="where reports go (default %(default)s)"
    )
    parser.add_argument("--plain", action="store_true", help="plain lines instead of a table that is drawn again")
    parser.add_argument(
        "--strict", action="store_true",
        help="also fail if a claim on balancing does not hold: convergence, overhead; for a quiet machine",
    )  # fmt: skip
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
