"""The command line of the simulator.

    python -m plimsoll.simulator --seeds 1000                 1000 runs over all scenarios in turn
    python -m plimsoll.simulator --scenario chain --from 500  from seed 500 on
    python -m plimsoll.simulator --scenario chain --seed 7 -v one run, with everything that happens in it

It ends with status 1 if a law was broken, and names the seeds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from plimsoll.simulator.run import Outcome, run
from plimsoll.simulator.scenarios import SCENARIOS

SHOWN = 5
"""So many violations of a failed run are printed; a replay shows all."""


HEADINGS = "scenario              seeds     events  delivered  in gaps uncertain  faults failed"


@dataclass(slots=True)
class Sum:
    """What many runs of one scenario come to."""

    runs: int = 0
    events: int = 0
    deliveries: int = 0
    excused: int = 0
    gaps: int = 0
    uncertain: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    failed: list[Outcome] = field(default_factory=list)

    def add(self, one: Outcome) -> None:
        self.runs += 1
        self.events += one.events
        self.deliveries += one.verdict.delivered
        self.excused += one.verdict.excused
        self.gaps += one.verdict.gaps
        self.uncertain += one.verdict.uncertain
        self.faults.update(one.faults)
        if not one.ok:
            self.failed.append(one)


def main(arguments: Sequence[str]) -> int:
    """Run and print; returns the exit status."""
    asked = _parser().parse_args(arguments)
    names = [asked.scenario] if asked.scenario else list(SCENARIOS)
    if asked.seed is not None:
        return _replay(names, asked.seed, asked.verbose)
    began = time.perf_counter()
    sums = {name: Sum() for name in names}
    work = [(names[i % len(names)], asked.first + i // len(names)) for i in range(asked.seeds)]
    for outcome in _run_all(work, asked.jobs):
        sums[outcome.scenario].add(outcome)
        if not outcome.ok:
            _tell_failure(outcome)
    _tell_sums(sums, time.perf_counter() - began)
    return 1 if any(each.failed for each in sums.values()) else 0


def _say(text: object) -> None:
    sys.stdout.write(f"{text}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plimsoll.simulator", description="Run fleets in virtual time under faults, and check the laws."
    )
    parser.add_argument("--seeds", type=_positive, default=160, metavar="N", help="how many runs (default 160)")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="S", help="the first seed (default 0)")
    parser.add_argument("--seed", type=int, metavar="S", help="run this seed alone")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), help="one kind of run (default: all in turn)")
    parser.add_argument("--jobs", type=_positive, default=1, metavar="N", help="processes to run in (default 1)")
    parser.add_argument("-v", "--verbose", action="store_true", help="with --seed: print everything that happens")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1 is needed, not {number}")
    return number


def _run_one(work: tuple[str, int]) -> Outcome:
    return run(*work)


def _run_all(work: list[tuple[str, int]], jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(_run_one, work)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_run_one, work, chunksize=8)


def _replay(names: list[str], seed: int, verbose: bool) -> int:
    failed = 0
    for name in names:
        outcome = run(name, seed, _say if verbose else None)
        failed += not outcome.ok
        faults = ", ".join(f"{kind} {count}" for kind, count in outcome.faults.items()) or "none"
        _say(f"{name} seed {seed}: {outcome.events} events, digest {outcome.digest:08x}, faults: {faults}")
        _say(outcome.verdict)
    return 1 if failed else 0


def _tell_failure(outcome: Outcome) -> None:
    laws = ", ".join(f"{law} x {count}" for law, count in outcome.verdict.violated.items())
    _say(f"FAILED {outcome.scenario} seed {outcome.seed}: {laws}")
    for violation in outcome.verdict.violations[:SHOWN]:
        _say(f"  {violation}")
    _say(f"  replay: python -m plimsoll.simulator --scenario {outcome.scenario} --seed {outcome.seed} -v")
    sys.stdout.flush()


def _tell_sums(sums: dict[str, Sum], seconds: float) -> None:
    _say(HEADINGS)
    total = Sum()
    for name, each in sums.items():
        _tell_row(name, each)
        for what in ("runs", "events", "deliveries", "excused", "gaps", "uncertain"):
            setattr(total, what, getattr(total, what) + getattr(each, what))
        total.faults.update(each.faults)
        total.failed += each.failed
    _tell_row("all", total)
    _say(f"{seconds:.1f} s, {total.events / max(seconds, 1e-9):,.0f} events/s")


def _tell_row(name: str, each: Sum) -> None:
    _say(
        f"{name:20} {each.runs:6} {each.events:10} {each.deliveries:10} {each.excused:8} {each.uncertain:9} "
        f"{sum(each.faults.values()):7} {len(each.failed)}"
    )
