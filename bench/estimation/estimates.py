"""Errors of Ring and Press: at constant rates, and after half of the publishers have doubled their rates."""

import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from bench.estimation.worlds import Arrival, Error, World, errors

from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.profiling.press import PressEstimator
from plimsoll.core.profiling.ring import RingEstimator

SIZES = (1, 20, 200)
SETS = 10
WARM_SECONDS = 1200.0
AFTER_SECONDS = (2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0, 600.0)
NEXT_SECONDS = 60.0
Estimate = Callable[[World, random.Random], tuple[SubscriptionProfile, float]]
Table = dict[str, Any]


def no_other_interest(attributes: object) -> bool:
    return False


def feed(estimator: RingEstimator | PressEstimator, arrivals: Sequence[Arrival]) -> None:
    for now, publisher, attributes in arrivals:
        estimator.note(publisher, attributes, 134, now)


def ring(width: int, window_seconds: float, by_clock: bool = False) -> Estimate:
    """A ring that has sampled for two windows and is read at a random time."""

    def estimate(world: World, seeded: random.Random) -> tuple[SubscriptionProfile, float]:
        found, end = RingEstimator(width, window_seconds), 2 * window_seconds + seeded.uniform(0.0, 60.0)
        feed(found, world.arrivals(0.0, end, seeded, by_clock))
        return found.profile(world.rows, world.matching, no_other_interest, end), 0.0

    return estimate


def press(samples: int, timeout_seconds: float = 30.0, by_clock: bool = False) -> Estimate:
    def estimate(world: World, seeded: random.Random) -> tuple[SubscriptionProfile, float]:
        found = PressEstimator(samples, timeout_seconds)
        feed(found, world.arrivals(0.0, timeout_seconds, seeded, by_clock))
        return found.profile(world.rows, world.matching, no_other_interest, timeout_seconds), found.ends_at()

    return estimate


def coming(world: World, seeded: random.Random, by_clock: bool) -> SubscriptionProfile:
    """Every publication of the next minute."""
    found = PressEstimator(10**9, NEXT_SECONDS)
    feed(found, world.arrivals(0.0, NEXT_SECONDS, seeded, by_clock))
    return found.profile(world.rows, world.matching, no_other_interest, NEXT_SECONDS, most_bytes=2**62)


STATIONARY: dict[str, Estimate] = {
    "Press N=10": press(10),
    "Press N=50": press(50),
    "Press N=200": press(200),
    "Press N=1000, T=120 s": press(1000, 120.0),
    "Press N=50, by the clock": press(50, by_clock=True),
    "Ring W=16, window 120 s": ring(16, 120.0),
    "Ring W=64, window 120 s": ring(64, 120.0),
    "Ring W=64, window 600 s": ring(64, 600.0),
    "Ring W=64, 600 s, by the clock": ring(64, 600.0, by_clock=True),
}


def drawn(world: World, seeded: random.Random, size: int) -> list[list[str]]:
    return [seeded.sample(world.loud, size) for _ in range(SETS)]


def accuracy(found: Sequence[Error]) -> Table:
    """One minus the mean absolute error; the mean signed error; the 95th percentile of absolute errors."""
    output, taken = [abs(each.output) for each in found], [abs(each.input) for each in found]
    return {
        "output": 1.0 - statistics.mean(output),
        "input": 1.0 - statistics.mean(taken),
        "output_bias": statistics.mean(each.output for each in found),
        "output_p95_error": sorted(output)[len(output) * 95 // 100],
        "input_p95_error": sorted(taken)[len(taken) * 95 // 100],
    }


def stationary(worlds: int, runs: int, names: Sequence[str] = tuple(STATIONARY), sizes: Sequence[int] = SIZES) -> Table:
    """By estimator: seconds of sampling, and accuracy by size of set.

    `truth` compares with the true mean rates, `next` with the publications of the next minute, which no estimator can
    predict exactly.
    """
    waits: dict[str, list[float]] = {name: [] for name in names}
    found: dict[str, dict[str, dict[int, list[Error]]]] = {
        name: {against: {size: [] for size in sizes} for against in ("truth", "next")} for name in names
    }
    for seed in range(worlds):
        world = World(seed)
        truth = world.true_profile()
        for run in range(runs):
            following = {
                by_clock: coming(world, random.Random(f"{seed} {run} next"), by_clock) for by_clock in (False, True)
            }
            sets = {size: drawn(world, random.Random(f"{seed} {run} {size}"), size) for size in sizes}
            for name in names:
                profile, wait = STATIONARY[name](world, random.Random(f"{seed} {run} stationary"))
                waits[name].append(wait)
                actual = {"truth": truth, "next": following["clock" in name]}
                for against, by_size in found[name].items():
                    for size, each in by_size.items():
                        each += errors(actual[against], profile, sets[size])
    return {
        name: {"wait_seconds": statistics.mean(waits[name])}
        | {against: {str(size): accuracy(each) for size, each in of.items()} for against, of in found[name].items()}
        for name in names
    }


def stepped(worlds: int, runs: int, sizes: Sequence[int] = (20, 200)) -> Table:
    """By estimator and seconds since the step: accuracy by size of set, against the rates after the step.

    Press starts so that it ends at that time: it has the last N publications before it.
    """
    found: dict[str, dict[float, dict[int, list[Error]]]] = {
        name: {after: {size: [] for size in sizes} for after in AFTER_SECONDS}
        for name in ("Press N=50", "Ring W=64, window 600 s", "Ring W=64, window 120 s")
    }
    for seed in range(worlds):
        for run in range(runs):
            _one_step(World(seed), random.Random(f"{seed} {run} step"), sizes, found)
    return {
        name: {str(after): {str(n): accuracy(each) for n, each in by_size.items()} for after, by_size in table.items()}
        for name, table in found.items()
    }


def _one_step(before: World, seeded: random.Random, sizes: Sequence[int], found: dict[str, Any]) -> None:
    after = before.doubled(seeded)
    first = before.arrivals(0.0, WARM_SECONDS, seeded)
    then = after.arrivals(WARM_SECONDS, WARM_SECONDS + AFTER_SECONDS[-1], seeded)
    rings = {f"Ring W=64, window {window} s": RingEstimator(64, float(window)) for window in (600, 120)}
    for each in rings.values():
        feed(each, first)
    at, truth = 0, after.true_profile()
    for seconds in AFTER_SECONDS:
        now = WARM_SECONDS + seconds
        until = next((i for i in range(at, len(then)) if then[i][0] > now), len(then))
        last = (first[-60:] + then[:until])[-51:]
        press_now = PressEstimator(50, 1e9, now=last[0][0])
        feed(press_now, last[1:])
        profiles = {"Press N=50": press_now.profile(after.rows, after.matching, no_other_interest, now)}
        for name, each in rings.items():
            feed(each, then[at:until])
            profiles[name] = each.profile(after.rows, after.matching, no_other_interest, now)
        at = until
        for size in sizes:
            sets = drawn(after, seeded, size)
            for name, profile in profiles.items():
                found[name][seconds][size] += errors(truth, profile, sets)


def recovered(table: Table, size: int, least: float) -> float | None:
    """The first of `AFTER_SECONDS` from which the accuracy of input and output stays at or above `least`, or None."""
    since = None
    for after in AFTER_SECONDS:
        row = table[str(after)][str(size)]
        if min(row["input"], row["output"]) < least:
            since = None
        elif since is None:
            since = after
    return since
