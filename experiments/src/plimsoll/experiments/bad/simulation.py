"""BAD 2019, the simulation: 10 brokers, 10,000 subscribers, 200,000 front-end and 1,000 back-end subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from plimsoll.experiments.bad import arm_figures
from plimsoll.experiments.bad.arm import ArmRun, BadArm
from plimsoll.experiments.bad.channels import ChannelWorld
from plimsoll.experiments.bad.counted_fleet import run_counted
from plimsoll.experiments.bad.large_world import LargePlan, large_world
from plimsoll.experiments.result import Claim, ExperimentResult

NAME: Final = "bad-simulation"
PLAN: Final = LargePlan()
NONE, SHUFFLE, SIMILARITY = "NR + No LB", "NR + LDM + GSH", "NR + SDM"
ALPHAS: Final = {"0.3": "300m", "0.15": "150m", "0.05": "50m"}
PAPER_ALPHA: Final = "0.15"
STEADY_FROM: Final = 0.5
ROUGHLY_HALF: Final = (0.4, 0.6)
AS_GOOD: Final = 0.02
"""Two covs are as good as each other if they differ by no more than this."""

AS_MANY: Final = 0.02


def by_alpha(alpha: str) -> str:
    """The name of the arm of LDM with this alpha."""
    return f"NR + LDM, alpha {alpha}"


def arms() -> list[BadArm]:
    """Nearest with each scheme and each alpha; random and round robin without balancing, to compare."""
    return [
        BadArm(NONE, "Nearest"),
        *(BadArm(by_alpha(name), "Nearest", "LoadBased", alpha=alpha) for name, alpha in ALPHAS.items()),
        BadArm(SIMILARITY, "Nearest", "SimilarityBased"),
        BadArm(SHUFFLE, "Nearest", "LoadBased", "Greedy"),
        BadArm("RND + No LB", "Random"),
        BadArm("RR + No LB", "RoundRobin"),
    ]


def run(seed: int, *, plan: LargePlan = PLAN) -> ExperimentResult:
    """All arms in the same world."""
    world = large_world(plan, seed)
    runs = {arm.name: run_counted(world, arm, seed) for arm in arms()}
    steady = (STEADY_FROM * plan.seconds, plan.seconds)
    paper = [runs[name] for name in (NONE, by_alpha(PAPER_ALPHA), SHUFFLE)]
    tuned = [*(runs[by_alpha(alpha)] for alpha in ALPHAS), runs[SHUFFLE]]
    figures = [
        *(arm_figures.brokers(f"brokers {letter}", one) for letter, one in zip("abc", paper, strict=True)),
        *arm_figures.comparison("schemes ", [*paper, runs[SIMILARITY]], "nearest broker"),
        *arm_figures.comparison("alpha ", tuned, "by alpha"),
    ]
    numbers: dict[str, Any] = {
        "front_end_subscriptions": world.front_end, "back_end_subscriptions": world.back_end,
        "steady_from_seconds": steady[0],
        "last_move_at_seconds": {name: one.last_move_at() for name, one in runs.items()},
    }  # fmt: skip
    return ExperimentResult(
        NAME, "BAD 2019: the simulation", "Bad", seed, _claims(world, plan, runs, steady), figures, numbers, NOTES,
        runs=[one.row(*steady) for one in runs.values()],
    )  # fmt: skip


NOTES: Final = (
    "Loads are means over the second half of the run. All subscribers join in the first ten seconds; the text does not "
    "say when.",
    "Placers and policy are the product's own; loads are counted exactly by broker, back-end subscription and "
    "interval. Sessions and hand-overs are not modelled: a plan is carried out by the next interval.",
    "Rates are measured, by what was published in the last 600 s. In the first plan that is little, so it knows the "
    "rates of slow channels badly.",
)


def _claims(
    world: ChannelWorld, plan: LargePlan, runs: Mapping[str, ArmRun], steady: tuple[float, float]
) -> list[Claim]:
    ldm, shuffle = runs[by_alpha(PAPER_ALPHA)], runs[SHUFFLE]
    covs = {name: one.cov(*steady) for name, one in runs.items()}
    later = shuffle.moved_between(shuffle.first_plan_at(), plan.seconds)
    tuned = [runs[by_alpha(alpha)] for alpha in ALPHAS]
    smallest = by_alpha(list(ALPHAS)[-1])
    moved, ends = [one.moved for one in tuned], [covs[one.arm.name] for one in tuned]
    return [
        _count("Front-end subscriptions", 200_000, world.front_end),
        _count("Back-end subscriptions", 1000, world.back_end),
        _halved("LDM", runs[NONE], ldm, steady),
        _halved("The shuffle", runs[NONE], shuffle, steady),
        Claim("The shuffle is more even than LDM", "yes", f"cov {covs[SHUFFLE]:.3f}, {covs[ldm.arm.name]:.3f} with LDM",
              covs[SHUFFLE] < covs[ldm.arm.name]),
        Claim("The shuffle needs no further migration", "0", f"{later:,} after {shuffle.moved - later:,}",
              shuffle.moved > 0 and later == 0),
        Claim("The smaller alpha, the more migrations", "yes", _by_alpha(f"{each:,}" for each in moved),
              all(one < other for one, other in pairwise(moved))),
        Claim("The smaller alpha, the more even", "yes", _by_alpha(f"cov {each:.3f}" for each in ends),
              all(one > other for one, other in pairwise(ends))),
        Claim("With a small alpha LDM gets as good as the shuffle", "yes",
              f"cov {covs[smallest]:.3f}, {covs[SHUFFLE]:.3f} with the shuffle",
              moved[-1] > 0 and covs[smallest] <= covs[SHUFFLE] + AS_GOOD),
        Claim("but takes longer to converge", "yes",
              f"last move at {runs[smallest].last_move_at():,.0f} s, {shuffle.last_move_at():,.0f} s with the shuffle",
              runs[smallest].last_move_at() > shuffle.last_move_at()),
    ]  # fmt: skip


def _by_alpha(values: Any) -> str:
    return ", ".join(f"{alpha}: {value}" for alpha, value in zip(ALPHAS, values, strict=True))


def _count(what: str, paper: int, ours: int) -> Claim:
    return Claim(what, f"{paper:,}", f"{ours:,}", abs(ours - paper) <= AS_MANY * paper)


def _halved(what: str, without: ArmRun, balanced: ArmRun, steady: tuple[float, float]) -> Claim:
    before, after = (one.highest(*steady) / arm_figures.KILO for one in (without, balanced))
    share = after / before if before else 1.0
    low, high = ROUGHLY_HALF
    return Claim(f"{what} lowers the highest load by roughly half", "to 0.5",
                 f"to {share:.2f}, from {before:,.0f} to {after:,.0f} kB/s", low <= share <= high)  # fmt: skip


def small(plan: LargePlan = PLAN) -> LargePlan:
    """Fewer subscribers in a third of the time: to see it work, not to judge."""
    return replace(plan, subscribers=200, parameters_per_channel=10, seconds=plan.seconds / 3)
