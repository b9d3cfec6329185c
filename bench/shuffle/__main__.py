"""Shuffle plans compared with the optimum, with LPT and with no plan: `python -m bench.shuffle [--quick]`.

In small fleets every assignment is tried, which finds the optimum. In large ones the time of a plan and the highest
load before and after it are measured.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time

from bench.shuffle.fleets import Places, ShuffleFleet, after, large, small

from plimsoll.core.policies.model.parameters import BalancingParameters, ImbalanceTrigger
from plimsoll.core.policies.shuffle import Shuffle

EXACT = Shuffle(BalancingParameters(local_trigger=ImbalanceTrigger(0.0, 0.0)))
"""Any difference between brokers triggers it."""

SIZES = ((500, 4, 100), (2_000, 4, 300), (2_000, 4, 2_000), (5_000, 10, 1_000), (10_000, 20, 1_000))


def moved(before: Places, then: Places) -> int:
    """How many subscribers have changed their broker."""
    return sum(before[name] != then[name] for name in before)


def best_of(fleet: ShuffleFleet, places: Places) -> tuple[float, int]:
    """The optimum: the highest metric of the best assignment, and the fewest moves that come within 0.001 of it."""
    names = sorted(places)
    tried = (dict(zip(names, at, strict=True)) for at in itertools.product(fleet.costs, repeat=len(names)))
    found = [(fleet.high(then), moved(places, then)) for then in tried]
    best = min(high for high, _ in found)
    return best, min(moves for high, moves in found if high <= best + 0.001)


def small_fleets(seeds: int) -> None:
    """Print how far each plan is from the optimum."""
    gaps: dict[str, list[float]] = {}
    moves: dict[str, list[int]] = {}
    for seed in range(seeds):
        fleet, places = small(seed)
        best, fewest = best_of(fleet, places)
        moves.setdefault("optimum", []).append(fewest)
        gaps.setdefault("optimum", []).append(0.0)
        loads, profiles = fleet.loads(places), fleet.profiles(places)
        for name, then in (
            ("shuffle", after(places, Shuffle().plan(loads, profiles))),
            ("shuffle, trigger 0", after(places, EXACT.plan(loads, profiles))),
            ("LPT", fleet.lpt()),
            ("no plan", places),
        ):
            gaps.setdefault(name, []).append(fleet.high(then) / best - 1)
            moves.setdefault(name, []).append(moved(places, then))
    print(f"{seeds} fleets of 3 brokers and 6 subscribers; all 729 assignments of each were tried:\n")
    print("| plan | highest load above the optimum: mean, worst | optimum found | moves |")
    print("|---|---|---|---|")
    for name, found in gaps.items():
        exact = sum(each < 0.001 for each in found) / seeds
        print(f"| {name} | {statistics.mean(found):.1%}, {max(found):.0%} | {exact:.0%} |"
              f" {statistics.mean(moves[name]):.2f} |")  # fmt: skip
    print()


def large_fleets(sizes: tuple[tuple[int, int, int], ...]) -> None:
    """Print a table with a row for each size."""
    print("| subscribers, edges, sets | before | shuffle: forecast, actual | LPT | moves: shuffle, LPT | CPU time |")
    print("|---|---|---|---|---|---|")
    for subscribers, brokers, keys in sizes:
        fleet, places = large(1, subscribers, brokers, keys)
        loads, profiles = fleet.loads(places), fleet.profiles(places)
        began = time.process_time()
        plan = Shuffle().plan(loads, profiles)
        took = time.process_time() - began
        then, plain = after(places, plan), fleet.lpt()
        print(f"| {subscribers:,}, {brokers}, {keys:,} | {plan.high_before:.3f} | {plan.high_after:.3f},"
              f" {fleet.high(then):.3f} | {fleet.high(plain):.3f} | {moved(places, then):,}, {moved(places, plain):,} |"
              f" {took:.1f} s |", flush=True)  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench.shuffle", description=__doc__)
    options.add_argument(
        "--quick", action="store_true", help="20 small fleets instead of 200, large ones up to 2,000 subscribers"
    )
    quick = options.parse_args().quick
    small_fleets(20 if quick else 200)
    large_fleets(SIZES[:2] if quick else SIZES)


if __name__ == "__main__":
    main()
