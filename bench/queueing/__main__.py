"""`python -m bench.queueing`: how far the queueing model agrees with the machines, and how much faster it is.

For each seed the plan of the demo runs twice on the same resources: record by record, with the machines of brokers and
clients, and in the queueing model. Compared are each edge's utilization and the delivery delay over the same stretches,
and the first sessions. The program prints a table, and writes `queueing.json`.
"""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from bench.balancing.settings import documents
from bench.balancing.world import CLIENTS, POLL_SECONDS, READY_SECONDS, World

from plimsoll.core.spec import parse
from plimsoll.demo import quotes
from plimsoll.demo.analysis.balancing_result import with_policy
from plimsoll.demo.analysis.delays import percentile
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.analysis.session_outcomes import ReportedSession
from plimsoll.demo.options import BALANCING_SCENARIO
from plimsoll.demo.workload import DemoScenario
from plimsoll.experiments.stock_world import traffic
from plimsoll.experiments.world_run import run_world
from plimsoll.simulator.queueing.fleet import LinkDelays

EDGES = ("b1", "b2", "b3", "b4")
METRICS = ("input_utilization", "output_utilization")
FLEET_SUBSCRIBERS = 400
"""For which hardware is scaled: each stands for five of the paper's."""
FIRST_SESSIONS = 3
WITHIN_POINTS = 0.02
WITHIN_DELAY = 0.1
HOP_SECONDS = POLL_SECONDS + 0.0003
"""A hop of the machines: until the next round of a process, and the delay of the link with its mean jitter."""
BEFORE_BALANCING = 0.1
"""The share of the run in which both see the same subscribers at the same edges: sessions have hardly begun."""


def record_level(scenario: DemoScenario, streams: quotes.Quotes, policy: str) -> dict[str, Any]:
    """One run with the machines."""
    began = time.process_time()
    found = with_policy(documents(FLEET_SUBSCRIBERS), policy)
    outcome = World(scenario, found, streams, policy).run()
    delays = sorted(delay for _, delay in outcome.delays)
    return {
        "processor_seconds": time.process_time() - began, "series": outcome.series, "delivered": outcome.delivered,
        "sessions": outcome.balance.sessions, "delay_p50": percentile(delays, 0.5),
    }  # fmt: skip


def modelled(scenario: DemoScenario, streams: quotes.Quotes, policy: str) -> dict[str, Any]:
    """One run in the model."""
    began = time.process_time()
    plan = traffic(scenario, streams, "quotes", publishing_from=0.0).shifted(READY_SECONDS)
    run = run_world(
        parse(with_policy(documents(FLEET_SUBSCRIBERS), policy)), plan, scenario.seconds, scenario.seed,
        start=READY_SECONDS, links=LinkDelays(HOP_SECONDS, HOP_SECONDS), spread_reports=False, clients=CLIENTS,
    )  # fmt: skip
    whole = run.delays.between(0.0, scenario.seconds + READY_SECONDS)
    return {
        "processor_seconds": time.process_time() - began, "series": run.series, "delivered": whole.count,
        "sessions": run.sessions, "delay_p50": whole.percentile(0.5),
    }  # fmt: skip


def mean_load(series: LoadSeries, edge: str, metric: str, start: float, end: float) -> float:
    columns = series.of(edge)
    values = [v for t, v in zip(columns["seconds"], columns[metric], strict=True) if start <= t < end]
    return statistics.fmean(values) if values else 0.0


def first(sessions: Sequence[ReportedSession]) -> list[tuple[str, str, str]]:
    """The first sessions that moved something: source, target and metric."""
    return [(one.source, one.target, one.metric) for one in sessions if one.subscribers][:FIRST_SESSIONS]


def compared(
    name: str, scenario: DemoScenario, machines: Mapping[str, Any], model: Mapping[str, Any], start: float, end: float
) -> dict[str, Any]:
    """One row. Loads are means over a stretch, in shares of the run."""
    low, high = start * scenario.seconds, end * scenario.seconds
    off = max(
        abs(mean_load(machines["series"], edge, m, low, high) - mean_load(model["series"], edge, m, low, high))
        for edge in EDGES
        for m in METRICS
    )
    return {
        "world": name, "seed": scenario.seed, "off": off,
        "delay_p50_machines": machines["delay_p50"], "delay_p50_model": model["delay_p50"],
        "delay_ratio": model["delay_p50"] / machines["delay_p50"],
        "first_machines": first(machines["sessions"]), "first_model": first(model["sessions"]),
        "same_first": first(machines["sessions"]) == first(model["sessions"]),
        "delivered_machines": machines["delivered"], "delivered_model": model["delivered"],
        "processor_machines": machines["processor_seconds"], "processor_model": model["processor_seconds"],
    }  # fmt: skip


def shown(row: Mapping[str, Any]) -> str:
    return (
        f"{row['world']:>10} {row['seed']:>6} {row['off']:>8.3f} {row['delay_p50_machines'] * 1000:>9.2f} ms "
        f"{row['delay_p50_model'] * 1000:>9.2f} ms {'same' if row['same_first'] else 'other':>9} "
        f"{row['delivered_machines']:>9,} {row['delivered_model']:>9,} "
        f"{row['processor_machines']:>8.1f} s {row['processor_model']:>8.1f} s"
    )


def rows_of(scenario: DemoScenario, streams: quotes.Quotes) -> Iterator[dict[str, Any]]:
    """A seed's rows: all at the strongest edge, and a quarter at the weakest, which is too many; then balanced.

    With more at the weakest, clients of the machines lose patience and join elsewhere; the model has no such clients.
    """
    for name, edge, share in (("strongest", "b4", 1), ("weakest", "b1", 4)):
        fixed = msgspec.structs.replace(scenario, prefer=edge, subscribers=scenario.subscribers // share)
        yield compared(
            name, fixed, record_level(fixed, streams, "off"), modelled(fixed, streams, "off"), 0.3, 1.0
        )  # fmt: skip
    yield compared(
        "balanced", scenario, record_level(scenario, streams, "padres"), modelled(scenario, streams, "padres"),
        0.0, BEFORE_BALANCING,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.queueing", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="(default %(default)s)")
    parser.add_argument("--subscribers", type=int, default=400, help="(default %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="virtual time of a run (default %(default)s)")
    parser.add_argument("--report", type=Path, default=Path("bench-report"), help="folder (default %(default)s)")
    options = parser.parse_args()
    streams, rows = quotes.load(), list[dict[str, Any]]()
    print(
        f"{'world':>10} {'seed':>6} {'load off':>8} {'median delay':>12} {'model':>12} {'first 3':>9} {'delivered':>9} "
        f"{'model':>9} {'processor':>10} {'model':>10}"
    )
    for seed in range(2006, 2006 + options.seeds):
        gc.collect()
        scenario = msgspec.structs.replace(
            BALANCING_SCENARIO, seconds=options.seconds, subscribers=options.subscribers, seed=seed, step_at=1.0
        )
        for row in rows_of(scenario, streams):
            rows.append(row)
            print(shown(row), flush=True)
            if not row["same_first"]:
                print(f"       machines {row['first_machines']}\n       model    {row['first_model']}")
    for name in ("strongest", "weakest", "balanced"):
        print(summary(name, [row for row in rows if row["world"] == name]))
    options.report.mkdir(parents=True, exist_ok=True)
    (options.report / "queueing.json").write_text(json.dumps(rows, indent=1))


def summary(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    near = sum(abs(row["delay_ratio"] - 1) <= WITHIN_DELAY for row in rows)
    return (
        f"{name}: loads within 0.02 in {sum(row['off'] <= WITHIN_POINTS for row in rows)} of {len(rows)}, median delay "
        f"within 10 % in {near}, same first sessions in {sum(row['same_first'] for row in rows)}; the model is faster "
        f"by {statistics.median(row['processor_machines'] / row['processor_model'] for row in rows):.0f} times"
    )


if __name__ == "__main__":
    main()
