"""The command line of the simulator.

    python -m plimsoll.simulator --seeds 1000                    1000 runs, over all scenarios in turn
    python -m plimsoll.simulator --scenario chain --from 500     one scenario, from seed 500 on
    python -m plimsoll.simulator --seeds 1000000 --state FILE    a series that resumes where it was stopped
    python -m plimsoll.simulator --scenario chain --seed 7       one run; with --trace, everything that happens in it
    python -m plimsoll.simulator --scenario chain --seed 7 --shrink   a smaller run that still fails

The exit status is 1 if a run has failed. A series names the failed seeds, and shrinks the first one of each scenario.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from plimsoll.core.printable import printable_lines
from plimsoll.simulator.run import RunOutcome, run_seed
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.seed_series import SeedSeries, load_series, save_series
from plimsoll.simulator.shrinker import Shrinker, format_labels, parse_labels

VIOLATIONS_SHOWN = 5
"""How many violations of a failed run a series prints; a replay prints all."""

SAVED_EVERY_SECONDS = 10.0
RUNS_AHEAD_PER_JOB = 64
"""How many runs each process is given in advance, and so how much work is lost when a series is stopped."""


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments ask for, and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    names = [name for name in SCENARIOS if fnmatch.fnmatchcase(name, options.scenario)]
    if not names:
        parser.error(f"no scenario matches {options.scenario!r}; choose from {' '.join(SCENARIOS)}")
    try:
        if options.seed is not None:
            return _replay(names, options)
        series = load_series(options.state, names, options.first) if options.state else SeedSeries(names, options.first)
    except ValueError as error:
        parser.error(str(error))
    return _series(series, options)


def _print_line(text: object) -> None:
    sys.stdout.write(printable_lines(f"{text}\n"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.simulator", description="Run fleets in virtual time under faults, and check the laws."
    )
    parser.add_argument("--seeds", type=_positive, default=160, metavar="N", help="number of runs (default 160)")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="S", help="the first seed (default 0)")
    parser.add_argument("--scenario", default="*", metavar="NAME", help="a scenario, or a pattern such as 'sessions-*'")
    parser.add_argument("--jobs", type=_positive, default=1, metavar="N", help="number of processes (default 1)")
    parser.add_argument("--state", type=Path, metavar="FILE", help="save the totals there, and resume from them")
    parser.add_argument("--seed", type=int, metavar="S", help="run this seed only")
    parser.add_argument("--only", metavar="LABELS", help="with --seed: leave out everything planned but these labels")
    parser.add_argument("--shrink", action="store_true", help="with --seed: find a smaller run that still fails")
    parser.add_argument(
        "-v", "--trace", dest="trace", action="store_true", help="with --seed: print every frame, fault and observation"
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


# -- many runs


def _series(series: SeedSeries, options: argparse.Namespace) -> int:
    started, before, saved = time.perf_counter(), series.seconds, 0.0
    shrunk: set[str] = set()
    for outcome in _run_all(series.work(options.seeds), options.jobs):
        series.add(outcome)
        series.seconds = before + time.perf_counter() - started
        if not outcome.ok:
            _print_failure(outcome, shrink=outcome.scenario not in shrunk)
            shrunk.add(outcome.scenario)
        if options.state and series.seconds - saved > SAVED_EVERY_SECONDS:
            saved = series.seconds
            save_series(options.state, series)
    if options.state:
        save_series(options.state, series)
    for line in series.table():
        _print_line(line)
    failed = series.total().failed
    for scenario, seed, laws in failed:
        _print_line(f"FAILED {scenario} seed {seed}: {' '.join(laws)}")
    return 1 if failed else 0


def _run_one(work: tuple[str, int]) -> RunOutcome:
    return run_seed(*work)


def _run_all(work: Iterable[tuple[str, int]], jobs: int) -> Iterator[RunOutcome]:
    """Yield the outcomes in the order of the work, so that totals do not depend on the number of processes."""
    if jobs == 1:
        yield from map(_run_one, work)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for chunk in _chunks(work, jobs * RUNS_AHEAD_PER_JOB):
            yield from pool.map(_run_one, chunk, chunksize=4)


def _chunks(work: Iterable[tuple[str, int]], size: int) -> Iterator[list[tuple[str, int]]]:
    chunk: list[tuple[str, int]] = []
    for one in work:
        chunk.append(one)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


# -- one run


def _replay(names: list[str], options: argparse.Namespace) -> int:
    only = parse_labels(options.only) if options.only else None
    failed = 0
    for name in names:
        outcome = run_seed(name, options.seed, _print_line if options.trace else None, only)
        failed += not outcome.ok
        faults = ", ".join(f"{kind} {count}" for kind, count in outcome.faults.items()) or "none"
        ended = ", ".join(f"{kind} {count}" for kind, count in outcome.handovers.items()) or "none"
        _print_line(f"{name} seed {options.seed}: {outcome.events} events, digest {outcome.digest:08x}")
        _print_line(f"faults: {faults}; hand-overs: {ended}")
        _print_line(outcome.error or outcome.verdict)
        if options.shrink and not outcome.ok:
            _shrink(outcome)
    return 1 if failed else 0


def _print_failure(outcome: RunOutcome, *, shrink: bool) -> None:
    _print_line(f"FAILED {outcome.scenario} seed {outcome.seed}: {' '.join(sorted(outcome.broken))}")
    _print_violations(outcome)
    _print_line(f"  replay: {_command(outcome)} --trace")
    if shrink:
        _shrink(outcome)
    sys.stdout.flush()


def _print_violations(outcome: RunOutcome) -> None:
    if outcome.error:
        _print_line(outcome.error)
    for violation in outcome.verdict.violations[:VIOLATIONS_SHOWN]:
        _print_line(f"  {violation}")


def _command(outcome: RunOutcome) -> str:
    return f"python -m plimsoll.simulator --scenario {outcome.scenario} --seed {outcome.seed}"


def _shrink(outcome: RunOutcome) -> None:
    shrinker = Shrinker(outcome)
    kept = shrinker.shrink()
    _print_line(f"  it still fails with {len(kept)} of {shrinker.planned} labels:")
    _print_violations(shrinker.smallest)
    _print_line(f"  replay: {_command(outcome)} --only {format_labels(kept)} --trace")
