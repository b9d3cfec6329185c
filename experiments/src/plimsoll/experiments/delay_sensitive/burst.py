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
OURS, TEXT = "DelaySensitive", "DelaySensitive, text"
LONG_LINKS = "DelaySensitive, all links of 0.1 s"
ALONE, PEER, PADRES, NONE = "DelaySensitive, its own placer", "PADRES, all join b1", "PADRES", "nothing"

TOLERANCE: Final = 1.0


@dataclass(frozen=True)
class BurstPlan:
    """`runs`: those that are made, all if it is empty."""

    times: world.CrisisTimes = world.CrisisTimes()  # noqa: RUF009  # a frozen value
    runs: tuple[str, ...] = ()


PLAN: Final = BurstPlan()


def small(plan: BurstPlan = PLAN) -> BurstPlan:
    """The burst comes as soon as all have joined, and little of what follows is seen: to see it work, not to judge."""
    return replace(plan, times=replace(plan.times, burst_at=17.0, ends_at=23.0), runs=(OURS, NONE))


def run(seed: int, *, plan: BurstPlan = PLAN) -> ExperimentResult:
    """The same world under each policy."""
    names = plan.runs or (OURS, LONG_LINKS, TEXT, ALONE, PEER, PADRES, NONE)
    runs = {name: _run(name, seed, plan) for name in names}
    claims = _claims(runs, plan)
    rows = [each.row() for each in runs.values()]
    return ExperimentResult(
        NAME, "A burst, a deadline in danger, and the topic that moves", "DelaySensitive", seed, claims,
        _figures(runs), {"cleared_at": {name: one.cleared_at("b1", IN_DANGER) for name, one in runs.items()}}, NOTES,
        runs=rows,
    )  # fmt: skip


def _run(name: str, seed: int, plan: BurstPlan) -> CrisisRun:
    times = plan.times
    if name in (PEER, PADRES):
        return run_crisis(name, world.padres(), seed, GIVEN, times, prefer="b1" if name == PEER else "")
    if name == NONE:
        return run_crisis(name, None, seed, GIVEN, times)
    if name == LONG_LINKS:
        times = replace(times, link_seconds=world.TEXT_LINK_SECONDS)
    if name == TEXT:  # in the text nothing is balanced before
        first = times.burst_at + 1.0
        return run_crisis(name, world.delay_sensitive(rules="Text"), seed, GIVEN, times, balanced_from=first)
    return run_crisis(name, world.delay_sensitive(), seed, {} if name == ALONE else GIVEN, times)


NOTES: Final = (
    "At 15 s b1 is taken to serve topics 1, 3, 8 and 14, as in figure 3; of the other topics the text does not "
    "say where they are. The output of an edge is shared by its topics fairly, which is how topic 8 alone gets a "
    "queue.",
    "Looks come every second, and messages take 0.3 s over links, as in the text. It has no figure for t_LB, and says "
    "that the notification of subscribers decides: two links of 0.1 s. Our hand-over takes some nine messages one "
    "after the other. In the first run links between brokers and to subscribers are so short that these take 0.2 s, "
    "and the way to the heads takes what is left of 0.3 s. In the second run all links take 0.1 s, and a hand-over "
    "0.9 s: until topic 1 has left, the queue of topic 8 grows seven times as fast as it drains afterwards, so 0.7 s "
    "more until then are 6 s more until it is gone.",
)


def _claims(runs: Mapping[str, CrisisRun], plan: BurstPlan) -> list[Claim]:
    shift = plan.times.burst_at - BURST_AT
    claims = _course(runs[OURS], shift)
    if (none := runs.get(NONE)) is not None:
        late = none.late.get(IN_DANGER, 0)
        claims.append(
            Claim("Without balancing topic 8 misses its deadline", "yes", f"{late:,} messages late", late > 0)
        )
    if (peer := runs.get(PEER)) is not None:
        claims.append(_peer_claim(peer, plan.times.burst_at, shift))
    if (long := runs.get(LONG_LINKS)) is not None:
        of = LONG_LINKS.removeprefix(f"{OURS}, ")
        claims += [replace(each, claim=f"{each.claim}; {of}") for each in _course(long, shift)]
    return claims


def _course(one: CrisisRun, shift: float) -> list[Claim]:
    """The course of figures 3 and 4. `shift`: how much later the burst comes than in the text."""
    first = one.moves[0] if one.moves else None
    at, clear = first.at if first else None, one.cleared_at("b1", IN_DANGER)
    what = "; ".join(each.text() for each in one.moves)
    whole = {MOVED: TOPICS[MOVED].subscribers}
    is_exact = len(one.moves) == 1 and first is not None and (first.source, first.target, dict(first.topics)) == (
        "b1", "b0", whole)  # fmt: skip
    return [
        Claim("The deadline of topic 8 triggers balancing (figure 3)", f"at {TRIGGER_AT + shift:g} s",
              "never" if at is None else f"at {at:.1f} s", at is not None and _near(at, TRIGGER_AT + shift)),
        Claim("Exactly topic 1, with its eight subscribers, goes to b0 (figure 3)", "yes", what or "nothing moved",
              is_exact),
        Claim("The queue of topic 8 is gone (figure 4)", f"at {CLEAR_AT + shift:g} s",
              "not by the end" if clear is None else f"at {clear:.1f} s",
              clear is not None and _near(clear, CLEAR_AT + shift)),
        Claim("No message is later than required", "yes", f"{sum(one.late.values()):,} of {one.delivered:,}",
              not sum(one.late.values())),
    ]  # fmt: skip


def _peer_claim(peer: CrisisRun, burst_at: float, shift: float) -> Claim:
    soon = [each for each in peer.moves if burst_at < each.at <= burst_at + 4.0]
    told = ", ".join(f"{each.source} to {each.target} at {each.at:.1f} s" for each in soon) or "none"
    is_near = any(_near(each.at, 31.0 + shift) or _near(each.at, 33.0 + shift) for each in soon)
    return Claim("PEER moves before the deadline is in danger (figure 5)", "at 31 and 33 s", told, is_near)


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
        for look, (name, one) in enumerate(runs.items()) if name in (OURS, LONG_LINKS, TEXT)
    ]  # fmt: skip
    chart = Chart("Messages of topic 8 that wait at b1, for each subscriber", "messages", depths)
    return [*found, Figure("4", chart, "It grows from the burst on, and drains once topic 1 has left.")]


def _uplinks(one: CrisisRun) -> Chart:
    lines = [ChartLine(edge, look, list(sampled(points))) for look, (edge, points) in enumerate(one.uplinks.items())]
    return Chart(f"Use of the uplinks, {one.name}", "ratio", lines)
