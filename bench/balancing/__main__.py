"""`python -m bench.balancing`: figures 6g and 6h of PADRES 2006, in virtual time.

The figures need many runs, so the runs are simulated: the machines and policies of the product and the plan of the
demo without its step of rates, one run for each number of edges and each triggering threshold. A subscriber puts more
load on its edge if there are fewer than the paper's 2,000. The program prints a table and writes `sweep.json` and
`sweep.html`.
"""

import argparse
import gc
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from bench.balancing.settings import documents
from bench.balancing.world import Outcome, World

from plimsoll.demo import quotes
from plimsoll.demo.analysis import convergence
from plimsoll.demo.analysis.delays import percentile
from plimsoll.demo.options import BALANCING_SCENARIO
from plimsoll.demo.workload import DemoScenario
from plimsoll.pages.charts import Chart, ChartLine, svg
from plimsoll.pages.style import STYLE

EDGES = (1, 2, 3, 4, 6, 8)
TRIGGERS = (0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4)
JOIN_TO = 0.4
LAST_SECONDS = 30.0
"""Figures are of the last seconds of each run, when all subscribers have joined."""


def run(scenario: DemoScenario, subscribers: int, trigger: float | None = None, edges: int = 0) -> dict[str, Any]:
    """One run, as a row."""
    gc.collect()
    world = World(scenario, documents(subscribers, trigger, edges), quotes.load(), "padres")
    return {"edges": edges or 4, "trigger": trigger, **row(world.run(), scenario.seconds)}


def row(outcome: Outcome, seconds: float) -> dict[str, Any]:
    """The figures of the last seconds of a run."""
    since, balance = seconds - LAST_SECONDS, outcome.balance
    late = sorted(delay for at, delay in outcome.delays if at > since)
    widest = [
        convergence.largest_differences(sample, balance.limits) for sample in balance.samples if sample.seconds > since
    ]
    found: dict[str, Any] = {
        "converged_at_seconds": balance.converged_at,
        "joined_at_seconds": balance.joined_at,
        "delay_mean_seconds": statistics.fmean(late) if late else None,
        **{f"delay_p{share}_seconds": percentile(late, share / 100) for share in (50, 99)},
        "sessions": len(balance.sessions),
        "moved": sum(each.subscribers for each in balance.sessions),
        "deliveries": outcome.delivered,
    }
    for metric in ("input", "match", "output"):
        values = [each[metric] for each in widest]
        found[f"difference_{metric}"] = statistics.fmean(values) if values else None
        found[f"largest_{metric}"] = max(values, default=None)
    return found


def scalability(scenario: DemoScenario, subscribers: int, edges: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Figure 6g: the same subscribers on an increasing number of edges of 500 MHz."""
    for count in edges:
        yield run(scenario, subscribers, edges=count)


def thresholds(scenario: DemoScenario, subscribers: int, triggers: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Figure 6h: the demo's fleet with each triggering threshold."""
    for trigger in triggers:
        yield run(scenario, subscribers, trigger)


def shown(row: dict[str, Any]) -> str:
    def ms(name: str) -> str:
        value = row[name]
        return "-" if value is None else f"{value * 1000:,.1f} ms"

    def ratio(name: str) -> str:
        return "-" if row[name] is None else f"{row[name]:.3f}"

    at = row["converged_at_seconds"]
    trigger = "demo's" if row["trigger"] is None else f"{row['trigger']:g}"
    apart = " ".join(f"{ratio(f'difference_{m}'):>7} /{ratio(f'largest_{m}'):>6}" for m in ("input", "match", "output"))
    return (
        f"{row['edges']:>5} {trigger:>8} {ms('delay_mean_seconds'):>12} {ms('delay_p50_seconds'):>12} "
        f"{ms('delay_p99_seconds'):>12}  {apart} {'never' if at is None else f'{at:.0f} s':>10} {row['moved']:>7,}"
    )


HEADS = (
    f"{'edges':>5} {'trigger':>8} {'delay mean':>12} {'p50':>12} {'p99':>12}  "
    + " ".join(f"{name:>15}" for name in ("input, largest", "match, largest", "output, largest"))
    + f" {'converged':>10} {'moved':>7}"
)


def page(report: dict[str, Any]) -> str:
    """Both figures as one HTML file."""
    delay = [
        ChartLine(name, look, [(one["edges"], _scaled(one[f"delay_{key}_seconds"], 1000)) for one in report["6g"]])
        for look, (name, key) in enumerate((("p50", "p50"), ("mean", "mean"), ("p99", "p99")), 1)
    ]
    apart = [
        ChartLine(name, look, [(one["trigger"], one[f"difference_{name}"]) for one in report["6h"]])
        for look, name in enumerate(("input", "match", "output"), 1)
    ]
    own = ChartLine("threshold", 7, [(one["trigger"], one["trigger"]) for one in report["6h"]])
    figures = [
        (Chart("Delivery delay by number of edges", "ms", delay, logarithmic=True, along=("edges", "")),
         "figure 6g: edges of 500 MHz and 3 Mbit/s, 12.5 times as fast."),
        (Chart("Largest difference of two edges by threshold", "ratio", [*apart, own], along=("thresholds", "")),
         "figure 6h: means over the last seconds. Output may differ more: the stability rule ends balancing earlier."),
    ]  # fmt: skip
    body = "".join(
        f"<figure><h3>{chart.title} <span class='dim'>({chart.unit})</span></h3>{svg(chart)}"
        f"<figcaption>PADRES 2006, {caption}</figcaption></figure>"
        for chart, caption in figures
    )
    lines = "\n".join([HEADS, *(shown(one) for one in [*report["6g"], *report["6h"]])])
    what = f"simulated; {report['subscribers']:,} subscribers, seed {report['seed']}, {report['seconds']:g} s each"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Plimsoll: a sweep of balancing</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>A sweep of balancing</h1>\n<p class='dim'>{what}</p>\n<div class='charts'>{body}</div>\n"
        f"<pre>{lines}</pre>\n</body>\n</html>\n"
    )


def _scaled(value: float | None, times: float) -> float | None:
    return None if value is None else value * times


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.balancing", description=__doc__)
    parser.add_argument("--subscribers", type=int, default=1000, help="(default %(default)s)")
    parser.add_argument("--seconds", type=float, default=120.0, help="virtual time of each run (default %(default)s)")
    parser.add_argument("--seed", type=int, default=BALANCING_SCENARIO.seed, help="(default %(default)s)")
    parser.add_argument("--edges", type=int, nargs="*", default=list(EDGES), help="numbers of edges, figure 6g")
    parser.add_argument("--triggers", type=float, nargs="*", default=list(TRIGGERS), help="thresholds, figure 6h")
    parser.add_argument("--report", type=Path, default=Path("demo-report"), help="folder (default %(default)s)")
    options = parser.parse_args()
    scenario = msgspec.structs.replace(
        BALANCING_SCENARIO,
        seconds=options.seconds,
        subscribers=options.subscribers,
        seed=options.seed,
        join_to=JOIN_TO,
        step_at=1.0,
    )
    report: dict[str, Any] = {
        "subscribers": options.subscribers, "seconds": options.seconds, "seed": options.seed, "6g": [], "6h": [],
    }  # fmt: skip
    print(HEADS)
    gc.disable()  # a run creates hardly any cycles; `run` collects between runs
    sweeps = {
        "6g": scalability(scenario, options.subscribers, options.edges),
        "6h": thresholds(scenario, options.subscribers, options.triggers),
    }
    options.report.mkdir(parents=True, exist_ok=True)
    for name, rows in sweeps.items():
        for one in rows:
            report[name].append(one)
            print(shown(one), flush=True)
            (options.report / "sweep.json").write_text(json.dumps(report, indent=1))
    (options.report / "sweep.html").write_text(page(report))
    print(f"\nAll figures: {options.report / 'sweep.html'} and sweep.json")


if __name__ == "__main__":
    main()
