"""Shuffles beside the best there is, beside LPT, and beside nothing: `python -m bench.shuffle [--quick]`.

Small fleets: every assignment is tried. Large ones: how long a plan takes, and what it makes of the highest load.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time

from bench.shuffle.fleets import Fleet, Places, after, large, small

from plimsoll.core.policies.model.parameters import BalancingParameters, ImbalanceTrigger
from plimsoll.core.policies.shuffle import Shuffle

EXACT = Shuffle(BalancingParameters(local_trigger=ImbalanceTrigger(0.0, 0.0)))
"""With nothing that brokers may differ by."""

SIZES = ((500, 4, 100), (2_000, 4, 300), (2_000, 4, 2_000), (5_000, 10, 1_000), (10_000, 20, 1_000))


def moved(before: Places, then: Places) -> int:
    """How many are somewhere else."""
    return sum(before[name] != then[name] for name in before)


def best_of(fleet: Fleet, places: Places) -> tuple[float, int]:
    """The lowest highest metric of all assignments, and the fewest moves that reach it within a thousandth."""
    names = sorted(places)
    tried = (dict(zip(names, at, strict=True)) for at in itertools.product(fleet.costs, repeat=len(names)))
    found = [(fleet.high(then), moved(places, then)) for then in tried]
    best = min(high for high, _ in found)
    return best, min(moves for high, moves in found if high <= best + 0.001)


def small_fleets(seeds: int) -> None:
    """Gaps to the best of all assignments."""
    gaps: dict[str, list[float]] = {}
    moves: dict[str, list[int]] = {}
    for seed in range(seeds):
        fleet, places = small(seed)
        best, fewest = best_of(fleet, places)
        moves.setdefault("the best of all", []).append(fewest)
        gaps.setdefault("the best of all", []).append(0.0)
        loads, profiles = fleet.loads(places), fleet.profiles(places)
        for name, then in (
            ("shuffle", after(places, Shuffle().plan(loads, profiles))),
            ("shuffle, trigger 0", after(places, EXACT.plan(loads, profiles))),
            ("LPT", fleet.lpt()),
            ("nothing", places),
        ):
            gaps.setdefault(name, []).append(fleet.high(then) / best - 1)
            moves.setdefault(name, []).append(moved(places, then))
    print(f"{seeds} fleets of 3 brokers and 6 subscribers, all 729 assignments of each tried:\n")
    print("| plan | highest load above the best: mean, worst | the best itself | moves |")
    print("|---|---|---|---|")
    for name, found in gaps.items():
        exact = sum(each < 0.001 for each in found) / seeds
        print(f"| {name} | {statistics.mean(found):.1%}, {max(found):.0%} | {exact:.0%} |"
              f" {statistics.mean(moves[name]):.2f} |")  # fmt: skip
    print()


def large_fleets(sizes: tuple[tuple[int, int, int], ...]) -> None:
    """A line for each size, as a table."""
    print("| subscribers, edges, sets | before | shuffle: promised, real | LPT | moves: shuffle, LPT | CPU time |")
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
    """Both."""
    options = argparse.ArgumentParser(prog="python -m bench.shuffle", description=__doc__)
    options.add_argument("--quick", action="store_true", help="few small fleets, and no large ones beyond 2,000")
    quick = options.parse_args().quick
    small_fleets(20 if quick else 200)
    large_fleets(SIZES[:2] if quick else SIZES)


if __name__ == "__main__":
    main()
