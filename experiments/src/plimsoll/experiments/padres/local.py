"""PADRES 2006, 6.2: four unequal edges, 2,000 subscribers that join the weakest, rates that double at 3,000 s."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from msgspec import structs

from plimsoll.demo.analysis import convergence, overhead
from plimsoll.demo.analysis.balancing_result import BalancingResult
from plimsoll.demo.quotes import Quotes
from plimsoll.demo.workload import DemoScenario
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.experiments.stock_world import ClusterPlan, Machine, PolicyPlan, resources, traffic
from plimsoll.experiments.world_run import WorldRun, run_world, thinned
from plimsoll.pages.charts import Chart, ChartLine

NAME: Final = "padres-local"
SCENARIO: Final = DemoScenario(
    seconds=4000.0, rate_factor=1.0, join_from=10 / 4000, join_to=1010 / 4000, prefer="b1", step_at=0.75
)
HEAD: Final = Machine(2000, 10, 256)
EDGES: Final = {
    "b1": Machine(100, 0.6, 64), "b2": Machine(200, 1.2, 128), "b3": Machine(400, 2.4, 256),
    "b4": Machine(1000, 6, 640),
}  # fmt: skip
ALIKE: Final = Machine(500, 3, 128)
SCALING_EDGES: Final = (1, 2, 3, 4, 6, 8)
TRIGGERS: Final = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
STEADY_FROM: Final = 0.9
"""Share of the time before the rates double from which on a run counts as steady."""


def clusters(edges: Mapping[str, Machine]) -> list[ClusterPlan]:
    return [ClusterPlan("quotes", HEAD, edges)]


def run(
    quotes: Quotes, policy: PolicyPlan, seed: int, *, scenario: DemoScenario = SCENARIO, sweeps: bool = True
) -> ExperimentResult:
    """All figures of the section. `sweeps`: also those that take many runs, 6g and 6h."""
    scenario = structs.replace(scenario, seed=seed)
    fleet = resources(clusters(EDGES), policy)
    balanced = run_world(fleet, traffic(scenario, quotes, "quotes"), scenario.seconds, seed)
    result = balanced.balance(policy.name.lower(), scenario, fleet)
    alone = run_world(
        resources(clusters(EDGES), PolicyPlan(None)), traffic(scenario, quotes, "quotes"), scenario.seconds, seed
    )
    claims, numbers = _claims(scenario, balanced, alone, result)
    figures = _figures(scenario, balanced, alone, result)
    runs = [balanced.row("balanced"), alone.row("not balanced")]
    if sweeps:
        more = (scaling(quotes, policy, scenario), thresholds(quotes, policy, scenario))
        for claim, figure, rows in more:
            claims, figures, runs = [*claims, *claim], [*figures, figure], [*runs, *rows]
    title = "PADRES 2006, 6.2: balancing in one cluster"
    return ExperimentResult(NAME, title, policy.name, seed, claims, figures, numbers, NOTES, runs=runs)


NOTES: Final = (
    "The paper does not say what a publication costs on its hardware. Here it is 4 ms at 100 MHz and 0.16 ms for each "
    "subscription, so absolute delays cannot be compared, and ratios can.",
)


# ---------------------------------------------------------------- 6a to 6f


def _claims(
    scenario: DemoScenario, balanced: WorldRun, alone: WorldRun, result: BalancingResult
) -> tuple[list[Claim], dict[str, Any]]:
    step, scale = scenario.step_seconds, scenario.seconds / SCENARIO.seconds
    joined = scenario.join_to * scenario.seconds
    b1 = [value for at, value in balanced.column("b1", "input_utilization") if at <= joined]
    steady = balanced.delays.between(STEADY_FROM * step, step).mean or 0.0
    worst = max(each.mean or 0.0 for each in balanced.delays.intervals.values())
    worst_alone = max(each.mean or 0.0 for each in alone.delays.intervals.values())
    late = (_seconds_above(balanced, 10 * steady), _seconds_above(alone, 10 * steady))
    counts = [sum(edge == name for edge in balanced.owners.values()) for name in EDGES]
    shares = [count / max(counts[0], 1) for count in counts]
    moving = overhead.overhead_ratio(_window(balanced, joined, min(2 * joined, step)))
    resting = overhead.overhead_ratio(_window(balanced, STEADY_FROM * step, step))
    numbers = {
        "converged_at_seconds": result.converged_at, "again_at_seconds": result.again_at,
        "delay_steady_seconds": steady,
        "delay_worst_seconds": worst, "delay_worst_unbalanced_seconds": worst_alone, "seconds_late": late[0],
        "seconds_late_unbalanced": late[1], "subscribers": dict(zip(EDGES, counts, strict=True)),
        "overhead_moving": moving, "overhead_resting": resting, "sessions": len(result.sessions),
        "accuracy": result.plain()["estimation_accuracy"],
    }  # fmt: skip
    again = None if result.again_at is None else result.again_at - step
    found = [
        Claim("B1 is overloaded while subscribers join (6a)", "yes", f"input up to {max(b1):.2f}", max(b1) > 0.95),
        Claim("All differences are within 0.1 (6a to 6c)", "at 1,800 s", _at(result.converged_at),
              result.converged_at is not None and result.converged_at <= 1800 * scale),
        Claim("Balanced again after the rates doubled (6a to 6c)", "after 400 s", _after(again),
              again is not None and again <= 400 * scale),
        Claim("An overloaded broker raises the delay by far (6d)", "750 times", _times(worst_alone, steady),
              steady > 0 and worst_alone > 100 * steady),
        Claim("Balancing shortens the time of high delays (6d)", "dramatically",
              f"{late[0]:.0f} s above 10 times the steady delay, {late[1]:.0f} s without", late[0] < late[1] / 4),
        Claim("B2 serves twice as many subscribers as B1 (6e)", "2", f"{shares[1]:.2f}", 1.5 <= shares[1] <= 2.5),
        Claim("B3 serves four times as many (6e)", "4", f"{shares[2]:.2f}", 3 <= shares[2] <= 5),
        Claim("B4 serves ten times as many (6e)", "10", f"{shares[3]:.2f}", 7.5 <= shares[3] <= 12.5),
        Claim("Overhead while balancing, 1,000 to 2,000 s (6f)", "1.5 %", _percent(moving),
              moving is not None and moving <= 0.015),
        Claim("Overhead after it has converged (6f)", "0.2 %", _percent(resting),
              resting is not None and resting <= 0.002),
    ]  # fmt: skip
    return found, numbers


def _window(run: WorldRun, start: float, end: float) -> dict[str, int]:
    return overhead.counts_between(run.series.ledger, (start, end))


def _seconds_above(run: WorldRun, limit: float) -> float:
    """How long the mean delay was above a limit."""
    intervals = run.delays.intervals.values()
    return run.delays.interval_seconds * sum((each.mean or 0.0) > limit for each in intervals)


def _at(seconds: float | None) -> str:
    return "never" if seconds is None else f"at {seconds:,.0f} s"


def _after(seconds: float | None) -> str:
    return "never" if seconds is None else f"after {seconds:,.0f} s"


def _times(high: float, low: float) -> str:
    return "-" if not low else f"{high / low:,.0f} times"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def _figures(scenario: DemoScenario, balanced: WorldRun, alone: WorldRun, result: BalancingResult) -> list[Figure]:
    found = []
    for name, metric, title, unit, scale in (
        ("6a", "input_utilization", "Input utilization", "ratio", 1.0),
        ("6b", "match_delay_seconds", "Matching delay", "ms", 1000.0),
        ("6c", "output_utilization", "Output utilization", "ratio", 1.0),
        ("6e", "subscribers", "Subscribers", "count", 1.0),
    ):
        lines = [
            ChartLine(edge, look, [(t, v * scale) for t, v in thinned(balanced.column(edge, metric)) if v is not None])
            for look, edge in enumerate(balanced.edges, 1)
        ]
        found.append(Figure(name, Chart(title, unit, lines), f"PADRES 2006, figure {name}."))
    delays = [
        ChartLine("balanced", 1, _delay_points(balanced)), ChartLine("not balanced", 2, _delay_points(alone)),
    ]  # fmt: skip
    chart = Chart("Mean delivery delay", "ms", delays, logarithmic=True)
    found.append(Figure("6d", chart, "PADRES 2006, figure 6d: with balancing and without."))
    points = [
        (at, None if share is None else 100 * share)
        for at, share in zip(result.overhead_series["seconds"], result.overhead_series["ratio"], strict=True)
        if at is not None and at % 20 == 0
    ]  # fmt: skip
    found.append(
        Figure("6f", Chart("Overhead", "% of messages", [ChartLine("overhead", 1, points)]), "PADRES 2006, figure 6f.")
    )
    return found


def _delay_points(run: WorldRun) -> list[tuple[float, float | None]]:
    size = run.delays.interval_seconds
    return [
        ((number + 0.5) * size, None if each.mean is None else each.mean * 1000)
        for number, each in sorted(run.delays.intervals.items())
    ]


# ---------------------------------------------------------------- 6g and 6h

Sweep = tuple[list[Claim], Figure, list[dict[str, Any]]]


def scaling(quotes: Quotes, policy: PolicyPlan, scenario: DemoScenario, edges: Sequence[int] = SCALING_EDGES) -> Sweep:
    """6g: the delay by the number of edges of 500 MHz."""
    short = structs.replace(
        scenario, seconds=scenario.seconds * 0.5, join_from=scenario.join_from * 2, join_to=scenario.join_to * 2,
        step_at=1.0,
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for count in edges:
        alike = {f"b{number}": ALIKE for number in range(1, count + 1)}
        run = run_world(
            resources(clusters(alike), policy), traffic(short, quotes, "quotes"), short.seconds, scenario.seed
        )
        late = run.delays.between(0.8 * short.seconds, short.seconds)
        rows.append({**run.row(f"{count} edges"), "edges": count, "delay_mean_seconds": late.mean})
    means = [row["delay_mean_seconds"] or 0.0 for row in rows]
    held = all(later <= earlier * 1.02 for earlier, later in itertools.pairwise(means))
    said = ", ".join(f"{row['edges']}: {mean * 1000:,.1f} ms" for row, mean in zip(rows, means, strict=True))
    claim = Claim("The delay falls with the number of edges (6g)", "yes", said, held)
    line = ChartLine("mean", 1, [(row["edges"], mean * 1000) for row, mean in zip(rows, means, strict=True)])
    chart = Chart("Mean delivery delay by edges", "ms", [line], logarithmic=True, along=("edges", ""))
    return [claim], Figure("6g", chart, "PADRES 2006, figure 6g: edges of 500 MHz and 3 Mbit/s."), rows


def thresholds(
    quotes: Quotes, policy: PolicyPlan, scenario: DemoScenario, triggers: Sequence[float] = TRIGGERS
) -> Sweep:
    """6h: how far apart edges are by the triggering threshold, once all have joined."""
    short = structs.replace(
        scenario, seconds=scenario.seconds * 0.5, join_from=scenario.join_from * 2, join_to=scenario.join_to * 2,
        step_at=1.0,
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for trigger in triggers if policy.block is not None else ():
        rows.append(_threshold_row(quotes, policy, short, trigger))
    held = bool(rows) and all(row["input"] <= row["trigger"] for row in rows)
    said = ", ".join(f"{row['trigger']:g}: {row['input']:.3f}" for row in rows)
    over, wider = ([row for row in rows if row["output"] > row[name]] for name in ("trigger", "input"))
    claims = [
        Claim("Input differs by less than the threshold (6h)", "always", said, held),
        Claim("Output may differ by more, for stability (6h)", "yes",
              f"at {len(over)} of {len(rows)} thresholds", bool(over)),
        Claim("Output differs by more than input (6h)", "yes",
              f"at {len(wider)} of {len(rows)} thresholds", len(wider) > len(rows) / 2),
    ]  # fmt: skip
    lines = [
        ChartLine(name, look, [(row["trigger"], row[name]) for row in rows])
        for look, name in enumerate(("input", "match", "output", "trigger"), 1)
    ]
    chart = Chart("Largest difference of two edges", "ratio", lines, along=("thresholds", ""))
    return claims, Figure("6h", chart, "PADRES 2006, figure 6h: means over the last fifth of each run."), rows


def _threshold_row(quotes: Quotes, policy: PolicyPlan, scenario: DemoScenario, trigger: float) -> dict[str, Any]:
    written = f"{round(1000 * trigger)}m"
    block = dict(policy.block or {})
    block["detection"] = {**block.get("detection", {}), "localTrigger": {"ratio": written, "delay": written}}
    fleet = resources(clusters(EDGES), PolicyPlan(block))
    run = run_world(fleet, traffic(scenario, quotes, "quotes"), scenario.seconds, scenario.seed)
    result = run.balance(policy.name.lower(), scenario, fleet)
    widest = [
        convergence.largest_differences(each, result.limits)
        for each in result.samples if each.seconds > 0.8 * scenario.seconds
    ]  # fmt: skip
    means = {name: fmean(each[name] for each in widest) for name in ("input", "match", "output")}
    return {**run.row(f"trigger {trigger:g}"), "trigger": trigger, **means}
