"""PADRES 2006, 6.3: four clusters in a chain with two edges each; all load comes to the first one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import fmean
from typing import Any, Final

from msgspec import structs

from plimsoll.demo.quotes import Quotes
from plimsoll.demo.workload import DemoScenario
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.experiments.stock_world import ClusterPlan, Machine, PolicyPlan, resources, traffic
from plimsoll.experiments.world_run import WorldRun, run_world, thinned
from plimsoll.pages.charts import Chart, ChartLine

NAME: Final = "padres-global"
SCENARIO: Final = DemoScenario(
    seconds=10_000.0, rate_factor=1.0, zero_traffic=0.2, join_from=10 / 10_000, join_to=11 / 10_000, prefer="b11",
    step_at=0.8,
)  # fmt: skip
HEAD, SMALLER_HEAD, EDGE = Machine(3000, 10, 1024), Machine(2000, 10, 512), Machine(500, 3, 128)
GLOBAL_SECONDS: Final = 30.0
CHAIN: Final = 4
CHAINS: Final = (1, 2, 3, 4, 5, 6)
GLOBAL_TRIGGER: Final = 0.15
METRICS: Final = (
    ("8a", "input_utilization", "Input utilization", "ratio", 1.0),
    ("8b", "match_delay_seconds", "Matching delay", "ms", 1000.0),
    ("8c", "output_utilization", "Output utilization", "ratio", 1.0),
)


def clusters(count: int, head: Machine = HEAD) -> list[ClusterPlan]:
    """A chain of clusters with two edges of 500 MHz each."""
    return [
        ClusterPlan(f"c{n}", head, {f"b{n}1": EDGE, f"b{n}2": EDGE}, (f"c{n - 1}",) if n > 1 else ())
        for n in range(1, count + 1)
    ]


def run(
    quotes: Quotes, policy: PolicyPlan, seed: int, *, scenario: DemoScenario = SCENARIO, sweeps: bool = True
) -> ExperimentResult:
    """All figures of the section. `sweeps`: also 8d, which takes a run for each length of the chain."""
    scenario = structs.replace(scenario, seed=seed)
    policy = PolicyPlan(policy.block, GLOBAL_SECONDS)
    balanced = run_world(
        resources(clusters(CHAIN), policy), traffic(scenario, quotes, "c1"), scenario.seconds, seed
    )  # fmt: skip
    loads = {metric: _cluster_means(balanced, metric, CHAIN) for _, metric, *_ in METRICS}
    claims, numbers = _claims(scenario, balanced, loads)
    figures = [_figure(*entry, loads[entry[1]]) for entry in METRICS]
    runs: list[dict[str, Any]] = [balanced.row("chain of 4")]
    if sweeps:
        claim, figure, rows = lengths(quotes, policy, scenario)
        claims, figures, runs = [*claims, claim], [*figures, figure], [*runs, *rows]
    title = "PADRES 2006, 6.3: balancing between clusters"
    return ExperimentResult(NAME, title, policy.name, seed, claims, figures, numbers, NOTES, runs=runs)


NOTES: Final = (
    "The text does not give the hardware of the edges of figures 8a to 8c; here it is that of figure 8d, 500 MHz and "
    "3 Mbit/s.",
    "2,000 subscribers join the first cluster's first edge within a second, at 10 s.",
)

Points = list[tuple[float, float]]


def _cluster_means(run: WorldRun, metric: str, count: int) -> list[Points]:
    """The mean of a metric over the edges of each cluster."""
    found = []
    for n in range(1, count + 1):
        one, other = run.column(f"b{n}1", metric), run.column(f"b{n}2", metric)
        found.append([(a[0], (a[1] + b[1]) / 2) for a, b in zip(one, other, strict=False)])
    return found


def _late(points: Points, start: float, end: float) -> float:
    values = [value for at, value in points if start <= at < end]
    return fmean(values) if values else 0.0


def _claims(
    scenario: DemoScenario, run: WorldRun, loads: dict[str, list[Points]]
) -> tuple[list[Claim], dict[str, Any]]:
    step, scale = scenario.step_seconds, scenario.seconds / SCENARIO.seconds
    inputs = loads["input_utilization"]
    settled = [_late(points, 0.9 * step, step) for points in inputs]
    final = [_late(points, 0.95 * scenario.seconds, scenario.seconds) for points in inputs]
    converged = _converged_at(inputs, step)
    apart = max(abs(a - b) for a, b in itertools.pairwise(settled))
    numbers = {
        "input_before_step": settled, "input_at_end": final, "converged_at_seconds": converged,
        "output_before_step": [_late(points, 0.9 * step, step) for points in loads["output_utilization"]],
        "output_at_end": [_late(p, 0.95 * scenario.seconds, scenario.seconds) for p in loads["output_utilization"]],
        "sessions": len(run.sessions), "moved": sum(each.subscribers for each in run.sessions),
    }  # fmt: skip
    falling = all(later <= earlier + 0.02 for earlier, later in itertools.pairwise(settled))
    said = " / ".join(f"{value:.2f}" for value in settled)
    claims = [
        Claim("Clusters converge, slower than edges of one (8a)", "at 4,500 s",
              "never" if converged is None else f"at {converged:,.0f} s",
              converged is not None and converged <= 4500 * scale),
        Claim("Clusters further away have less load (8a)", "yes", said, falling),
        Claim("Neighbours differ by no more than the global trigger", "0.15", f"{apart:.3f}", apart <= GLOBAL_TRIGGER),
        Claim("After the rates doubled input is more balanced (8a)", "yes",
              f"spread {max(settled) - min(settled):.3f} before, {max(final) - min(final):.3f} after",
              max(final) - min(final) <= max(settled) - min(settled) + 0.02),
    ]  # fmt: skip
    return claims, numbers


def _converged_at(inputs: Sequence[Points], until: float) -> float | None:
    """From when on neighbouring clusters differ by no more than the trigger, smoothed over 100 s."""
    since: float | None = None
    for start in range(0, int(until), 100):
        means = [_late(points, start, start + 100) for points in inputs]
        near = all(abs(a - b) <= GLOBAL_TRIGGER for a, b in itertools.pairwise(means))
        since = (since if since is not None else float(start)) if near and max(means) > 0 else None
    return since


def _figure(name: str, metric: str, title: str, unit: str, scale: float, loads: Sequence[Points]) -> Figure:
    lines = [
        ChartLine(f"cluster {n}", n, [(t, v * scale) for t, v in thinned(points) if v is not None])
        for n, points in enumerate(loads, 1)
    ]
    return Figure(name, Chart(f"{title} by cluster", unit, lines), f"PADRES 2006, figure {name}: means of edges.")


def lengths(
    quotes: Quotes, policy: PolicyPlan, scenario: DemoScenario, counts: Sequence[int] = CHAINS
) -> tuple[Claim, Figure, list[dict[str, Any]]]:
    """8d: the delay by the length of the chain."""
    short = structs.replace(
        scenario, seconds=scenario.seconds / 2, join_from=2 * scenario.join_from, join_to=2 * scenario.join_to,
        step_at=1.0,
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for count in counts:
        run = run_world(
            resources(clusters(count, SMALLER_HEAD), policy), traffic(short, quotes, "c1"), short.seconds, short.seed
        )
        late = run.delays.between(0.8 * short.seconds, short.seconds)
        rows.append({**run.row(f"chain of {count}"), "clusters": count, "delay_mean_seconds": late.mean})
    means = [row["delay_mean_seconds"] or 0.0 for row in rows]
    gained = means[min(3, len(means) - 1)]
    rest = [abs(mean - gained) / gained for mean in means[4:]] if gained else []
    said = ", ".join(f"{row['clusters']}: {mean * 1000:,.0f} ms" for row, mean in zip(rows, means, strict=True))
    held = means[0] > gained and all(share <= 0.1 for share in rest)
    claim = Claim("Clusters more than 3 hops away no longer lower the delay (8d)", "yes", said, held)
    line = ChartLine("mean", 1, [(row["clusters"], mean * 1000) for row, mean in zip(rows, means, strict=True)])
    chart = Chart("Mean delivery delay by clusters", "ms", [line], logarithmic=True, along=("clusters", ""))
    return claim, Figure("8d", chart, "PADRES 2006, figure 8d: global trigger 0.15."), rows
