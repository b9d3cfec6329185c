"""BAD 2019, the prototype: 400 subscribers, five brokers, seven channels of emergencies, eight arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from plimsoll.experiments.bad import arm_figures
from plimsoll.experiments.bad.arm import ArmRun, BadArm, run_arm
from plimsoll.experiments.bad.channels import ChannelWorld
from plimsoll.experiments.bad.emergency_world import EmergencyPlan, emergency_world
from plimsoll.experiments.result import Claim, ExperimentResult

NAME: Final = "bad-prototype"
PLAN: Final = EmergencyPlan()
SCHEMES: Final = (("No LB", "None", "None"), ("LDM", "LoadBased", "None"), ("SDM", "SimilarityBased", "None"),
                  ("LDM + GSH", "LoadBased", "Greedy"))  # fmt: skip
PLACEMENTS: Final = (("NR", "Nearest"), ("RR", "RoundRobin"))
OURS: Final = "NR + our shuffle"
STEADY_FROM: Final = 0.6
"""Share of the time from which on a run counts as steady: by then all have joined, and early plans are over."""

SIMILAR: Final = 0.25
"""Numbers of migrations are similar if they differ by no more than this part of the larger one."""

AS_MANY: Final = 0.1
"""How far the counts of the world may be from the paper's."""


def arms(seconds: float) -> list[BadArm]:
    """The eight arms of the slides, and our own shuffle, asked for once in the middle."""
    found = [
        BadArm(f"{short} + {scheme}", placement, migration, shuffle)
        for short, placement in PLACEMENTS for scheme, migration, shuffle in SCHEMES
    ]  # fmt: skip
    return [*found, BadArm(OURS, "Nearest", ours_at=seconds / 2)]


def run(seed: int, *, plan: EmergencyPlan = PLAN) -> ExperimentResult:
    """All arms in the same world."""
    world = emergency_world(plan, seed)
    runs = {arm.name: run_arm(world, arm, seed) for arm in arms(plan.seconds)}
    steady = (STEADY_FROM * plan.seconds, plan.seconds)
    nearest, in_turn = (
        [one for name, one in runs.items() if name.startswith(short) and name != OURS] for short, _ in PLACEMENTS
    )
    figures = [
        *arm_figures.comparison("nearest ", nearest, "nearest broker"),
        *arm_figures.comparison("round robin ", in_turn, "round robin"),
        *(arm_figures.brokers(f"brokers {n}", runs[name])
          for n, name in enumerate(("NR + No LB", "NR + LDM", "NR + LDM + GSH", OURS), 1)),
    ]  # fmt: skip
    numbers = {
        "front_end_subscriptions": world.front_end, "back_end_subscriptions": world.back_end,
        "steady_from_seconds": steady[0],
    }  # fmt: skip
    title = "BAD 2019: the prototype"
    return ExperimentResult(
        NAME, title, "Bad", seed, _claims(world, runs, steady), figures, numbers, NOTES,
        runs=[one.row(*steady) for one in runs.values()],
    )  # fmt: skip


NOTES: Final = (
    "NR: nearest broker, RR: round robin; LDM: load-based migration, SDM: similarity-based; GSH: the shuffle by the "
    "letter, above gamma. Loads are what brokers measure, means over the last 40 % of the time.",
    "The text gives no map. Here subscribers gather around three places of a plane of 4 x 4 areas and do not move; "
    "near is an area with those around it, and a shelter adds 100 bytes to a result.",
    "The last arm is our own shuffle, asked for once by a session in the middle of the run. It balances utilization, "
    "not F; edges may send 500 kB/s.",
)


def _claims(world: ChannelWorld, runs: Mapping[str, ArmRun], steady: tuple[float, float]) -> list[Claim]:
    first = runs["NR + LDM + GSH"].first_plan_at()
    later = [runs[f"NR + {name}"].moved_between(first, steady[1]) for name in ("LDM", "LDM + GSH")]
    moved = [runs[f"RR + {name}"].moved for name in ("LDM", "SDM")]
    return [
        _count("Front-end subscriptions", 2200, world.front_end),
        _count("Back-end subscriptions", 610, world.back_end),
        _lower(runs, steady, "NR", "highest", ("LDM", "SDM", "LDM + GSH")),
        _lower(runs, steady, "NR", "cov", ("LDM", "SDM", "LDM + GSH")),
        Claim("An early shuffle needs fewer migrations later (nearest)", "yes",
              f"{later[1]} after the first plan at {first:,.0f} s, {later[0]} with LDM alone", later[1] < later[0]),
        _lower(runs, steady, "RR", "highest", ("LDM", "SDM")),
        _lower(runs, steady, "RR", "cov", ("LDM", "SDM")),
        Claim("LDM and SDM need about as many migrations (round robin)", "yes", f"{moved[0]} and {moved[1]}",
              max(moved) > 0 and abs(moved[0] - moved[1]) <= SIMILAR * max(moved)),
    ]  # fmt: skip


def _count(what: str, paper: int, ours: int) -> Claim:
    return Claim(what, f"{paper:,}", f"{ours:,}", abs(ours - paper) <= AS_MANY * paper)


def _lower(
    runs: Mapping[str, ArmRun], steady: tuple[float, float], placement: str, value: str, schemes: tuple[str, ...]
) -> Claim:
    """Whether each of these schemes lowers a value of the arm without balancing."""
    found = {
        name: runs[f"{placement} + {name}"].highest(*steady) / arm_figures.KILO if value == "highest"
        else runs[f"{placement} + {name}"].cov(*steady)
        for name in ("No LB", *schemes)
    }  # fmt: skip
    where = "nearest" if placement == "NR" else "round robin"
    what, form = ("the highest load", "{:,.1f} kB/s") if value == "highest" else ("cov", "{:.3f}")
    said = ", ".join(f"{name}: {form.format(each)}" for name, each in found.items())
    held = all(found[name] < found["No LB"] for name in schemes)
    return Claim(f"{' and '.join(schemes)} lower {what} ({where})", "yes", said, held)


def small(plan: EmergencyPlan = PLAN) -> EmergencyPlan:
    """A tenth of the subscribers in a third of the time: to see it work, not to judge."""
    return replace(plan, subscribers=40, reports=1500, seconds=plan.seconds / 3, joined_seconds=plan.joined_seconds / 3)
