"""`plimsoll experiment`: run experiments and write their results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from plimsoll.core.printable import printable, printable_lines
from plimsoll.core.spec.types.policy import POLICY_TYPES
from plimsoll.demo import quotes
from plimsoll.experiments.catalogue import EXPERIMENTS, PolicyExperiment, QuoteExperiment, run_experiment
from plimsoll.experiments.page import lines, page
from plimsoll.experiments.picture import png
from plimsoll.experiments.result import ExperimentResult
from plimsoll.experiments.stock_world import PolicyPlan

DEFAULT_POLICY: Final = "padres"
FAILED: Final = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiments that are named; 0 also if claims do not hold, since that is a result."""
    parser = _parser()
    given = parser.parse_args(argv)
    names = experiments_to_run(parser, given.name, given.policy)
    if given.runs < 1:
        parser.error("argument --runs: give at least 1")
    try:
        given.report.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"argument --report: {given.report} cannot be made ({error.strerror}); name another folder")
    try:
        streams = quotes.load() if any(isinstance(EXPERIMENTS[name], QuoteExperiment) for name in names) else None
    except quotes.QuotesError as error:
        sys.stderr.write(printable_lines(str(error)) + "\n")
        return FAILED
    policy = PolicyPlan({"type": POLICY_TYPES[given.policy or DEFAULT_POLICY]})
    for name in names:
        for seed in range(given.seed, given.seed + given.runs):
            sys.stdout.write(printable(f"{name}: running with seed {seed} ...") + "\n")
            sys.stdout.flush()
            result = run_experiment(name, streams, policy, seed, quick=given.quick)
            _write(given.report, result, name if given.runs == 1 else f"{name}-{seed}")
    sys.stdout.write(printable(f"All results: {given.report}") + "\n")
    return 0


def experiments_to_run(parser: argparse.ArgumentParser, name: str, policy: str | None) -> list[str]:
    """The experiments to run. Those that compare the schemes of one policy run under no other."""
    fixed = {each: own.policy for each, own in EXPERIMENTS.items() if isinstance(own, PolicyExperiment)}
    if name == "all":
        return [each for each in sorted(EXPERIMENTS) if policy in (None, fixed.get(each, policy))]
    if policy not in (None, fixed.get(name, policy)):
        parser.error(f"{name} compares the schemes of {fixed[name]}, so it has no --policy {policy}; leave that out")
    return [name]


def _write(folder: Path, result: ExperimentResult, name: str) -> None:
    (folder / f"{name}.json").write_text(json.dumps(result.plain(), indent=1))
    (folder / f"{name}.html").write_text(page(result))
    (folder / f"{name}.png").write_bytes(png(result))
    sys.stdout.write(printable_lines("\n".join(lines(result))) + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="plimsoll experiment",
        description="Run an experiment of a published system in virtual time, and judge the paper's claims.",
        epilog="docs/experiments.md says what each of them is, docs/queueing-model.md what is modelled.",
    )
    parser.add_argument("name", choices=[*sorted(EXPERIMENTS), "all"], help="which experiment, or all")
    parser.add_argument(
        "--policy", choices=sorted(POLICY_TYPES),
        help=f"which policy balances (default {DEFAULT_POLICY}; experiments named after another policy run under that)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=2006, help="of the first run (default %(default)s)")
    parser.add_argument("--runs", type=int, default=1, help="with that many seeds in turn (default %(default)s)")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the time and of the subscribers: to see it work, not to judge"
    )
    parser.add_argument(
        "--report", type=Path, default=Path("experiments-report"), metavar="DIR",
        help="where results go (default %(default)s)",
    )  # fmt: skip
    return parser
