"""A burst in the crisis world: the topic that moves, and when; PADRES and no balancing beside it.

Tao, Poslad, Bigham 2013, section V, figures 3, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.demo.crisis_tables import BURST_AT, CLEAR_AT, GIVEN, IN_DANGER, MOVED, TOPICS, TRIGGER_AT
from plimsoll.experiments.delay_sensitive import crisis_world as world
from plimsoll.experiments.delay_sensitive.crisis_run import CrisisRun, run_crisis, sampled
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.pages.charts import Chart, ChartLine

NAME: Final = "delay-sensitive"
OURS, SECOND, TEXT = "DelaySensitive", "DelaySensitive, looks of a second", "DelaySensitive, text"
ALONE, PEER, PADRES, NONE = "DelaySensitive, its own placer", "PADRES, all join b1", "PADRES", "nothing"

TOLERANCE: Final = 1.0


TIMES: Final = world.CrisisTimes(look_seconds=0.25)


@dataclass(frozen=True)
class BurstPlan:
    """`balancing_seconds`: t_LB before one is measured. `runs`: those that are made, all if it is empty."""

    times: world.CrisisTimes = TIMES
    balancing_seconds: float = 0.25
    runs: tuple[str, ...] = ()


PLAN: Final = BurstPlan()


def small(plan: BurstPlan = PLAN) -> BurstPlan:
    """The burst comes as soon as all have joined, and little of what follows is seen: to see it work, not to judge."""
    return replace(plan, times=replace(plan.times, burst_at=17.0, ends_at=23.0), runs=(OURS, NONE))


def run(seed: int, *, plan: BurstPlan = PLAN) -> ExperimentResult:
    """The same world under each policy."""
    names = plan.runs or (OURS, SECOND, TEXT, ALONE, PEER, PADRES, NONE)
    runs = {name: _run(name, seed, plan) for name in names}
    claims = _claims(runs[OURS], runs.get(NONE), runs.get(PEER), plan)
    rows = [each.row() for each in runs.values()]
    return ExperimentResult(
        NAME, "A burst, a deadline in danger, and the topic that moves", "DelaySensitive", seed, claims,
        _figures(runs), {"cleared_at": {name: one.cleared_at("b1", IN_DANGER) for name, one in runs.items()}}, NOTES,
        runs=rows,
    )  # fmt: skip


def _run(name: str, seed: int, plan: BurstPlan) -> CrisisRun:
    times, mean = plan.times, plan.balancing_seconds
    ours = world.delay_sensitive(times.look_seconds, mean)
    if name == SECOND:
        slow = replace(times, look_seconds=1.0)
        return run_crisis(name, world.delay_sensitive(1.0, 0.1), seed, GIVEN, slow)
    if name == TEXT:
        return run_crisis(name, world.delay_sensitive(times.look_seconds, mean, rules="Text"), seed, GIVEN, times)
    if name == ALONE:
        return run_crisis(name, ours, seed, {}, times)
    if name in (PEER, PADRES):
        return run_crisis(
            name, world.padres(times.look_seconds), seed, GIVEN, times, prefer="b1" if name == PEER else ""
        )  # fmt: skip
    return run_crisis(name, None if name == NONE else ours, seed, GIVEN, times)


NOTES: Final = (
    "At 15 s b1 is taken to serve topics 1, 3, 8 and 14, as in figure 3; of the other topics the text does not say "
    "where they are. The output of an edge is shared by its topics fairly, which is how topic 8 alone gets a queue.",
    "Our hand-over takes three trips over links of 0.1 s before a topic leaves its edge, and the text's takes no time. "
    "Each second in which the queue grows takes seven to drain. So the policy looks each quarter of a second and "
    "reckons with a balancing of a quarter of a second; the run with looks of a second and 0.1 s shows what becomes of "
    "the text's figures.",
)


def _claims(ours: CrisisRun, none: CrisisRun | None, peer: CrisisRun | None, plan: BurstPlan) -> list[Claim]:
    shift = plan.times.burst_at - BURST_AT
    first = ours.moves[0] if ours.moves else None
    at, clear = first.at if first else None, ours.cleared_at("b1", IN_DANGER)
    what = "; ".join(each.text() for each in ours.moves)
    whole = {MOVED: TOPICS[MOVED].subscribers}
    is_exact = len(ours.moves) == 1 and first is not None and (first.source, first.target, dict(first.topics)) == (
        "b1", "b0", whole)  # fmt: skip
    claims = [
        Claim("The deadline of topic 8 triggers balancing (figure 3)", f"at {TRIGGER_AT + shift:g} s",
              "never" if at is None else f"at {at:.1f} s", at is not None and _near(at, TRIGGER_AT + shift)),
        Claim("Exactly topic 1, with its eight subscribers, goes to b0 (figure 3)", "yes", what or "nothing moved",
              is_exact),
        Claim("The queue of topic 8 is gone (figure 4)", f"at {CLEAR_AT + shift:g} s",
              "not by the end" if clear is None else f"at {clear:.1f} s",
              clear is not None and _near(clear, CLEAR_AT + shift)),
        Claim("No message is later than required", "yes", f"{sum(ours.late.values()):,} of {ours.delivered:,}",
              not sum(ours.late.values())),
    ]  # fmt: skip
    if none is not None:
        late = none.late.get(IN_DANGER, 0)
        claims.append(
            Claim("Without balancing topic 8 misses its deadline", "yes", f"{late:,} messages late", late > 0)
        )
    if peer is not None:
        soon = [each for each in peer.moves if plan.times.burst_at < each.at <= plan.times.burst_at + 4.0]
        told = ", ".join(f"{each.source} to {each.target} at {each.at:.1f} s" for each in soon) or "none"
        claims.append(
            Claim(
                "PEER moves before the deadline is in danger (figure 5)",
                "at 31 and 33 s",
                told,
                any(_near(each.at, 31.0 + shift) or _near(each.at, 33.0 + shift) for each in soon),
            )
        )
    return claims


def _near(found: float, wanted: float) -> bool:
    return abs(found - wanted) <= TOLERANCE


def _figures(runs: Mapping[str, CrisisRun]) -> list[Figure]:
    names = {OURS: "3", PEER: "5"}
    found = [
        Figure(number, _uplinks(runs[name]), f"Use of the uplinks under {name}; above 1 a queue builds up.")
        for name, number in names.items() if name in runs
    ]  # fmt: skip
    depths = [
        ChartLine(name, look, list(sampled(one.depths["b1", IN_DANGER])))
        for look, (name, one) in enumerate(runs.items()) if name in (OURS, SECOND, TEXT)
    ]  # fmt: skip
    chart = Chart("Messages of topic 8 that wait at b1, for each subscriber", "messages", depths)
    return [*found, Figure("4", chart, "It grows from the burst on, and drains once topic 1 has left.")]


def _uplinks(one: CrisisRun) -> Chart:
    lines = [ChartLine(edge, look, list(sampled(points))) for look, (edge, points) in enumerate(one.uplinks.items())]
    return Chart(f"Use of the uplinks, {one.name}", "ratio", lines)
