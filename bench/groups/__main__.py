"""Consumer groups measured: items per second beside plain subscriptions, joins, moves, decisions, groups of others.

    python -m bench.groups [--quick] [--json FILE]

A head and an edge, a publisher and the consumers are processes of this machine. Each item reaches one consumer, as each
publication reaches one of the plain subscribers that share the same slices; runs of both alternate, and medians of
their ratios count. Processor time is by item and process: it depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from bench.broker.processes import Child
from bench.groups.decisions import decisions
from bench.groups.fleet import PATIENCE_SECONDS, BenchFleet, takers
from bench.groups.move_costs import moves_added
from bench.groups.moves import await_shares, joined, moved
from bench.groups.others import GROUPS, beside_groups

SLICES = 200


def counted(children: list[Child]) -> tuple[int, float]:
    """Items and processor seconds of all takers so far."""
    found = [child.ask("count") for child in children]
    return sum(items for items, _ in found), sum(seconds for _, seconds in found)


def await_items(children: list[Child], items: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (have := counted(children)[0]) < items:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{have} of {items} items after {PATIENCE_SECONDS:g} s")
        time.sleep(0.005)


def run(fleet: BenchFleet, children: list[Child], kind: str, items: int) -> dict[str, float]:
    """Publish, and wait until all is taken: items per second, and processor microseconds per item."""
    before, (had, seconds) = fleet.cpu(), counted(children)
    began = time.monotonic()
    fleet.publisher.pipe.send(("go", kind, items, SLICES))
    await_items(children, had + items)
    wall = time.monotonic() - began
    fleet.publisher.ask()
    after, (_, taken) = fleet.cpu(), counted(children)
    costs = {name: (after[name] - before[name]) / items * 1e6 for name in before}
    return {"items_per_second": items / wall, **costs, "consumers": (taken - seconds) / items * 1e6}


def throughput(consumers: int, items: int, rounds: int) -> dict[str, Any]:
    """A group and plain subscriptions in turn."""
    fleet = BenchFleet()
    children: list[Child] = []
    try:
        fleet.make_group(SLICES)
        group = takers(fleet, "group", consumers, SLICES)
        plain = takers(fleet, "", consumers, SLICES)
        children = [*group, *plain]
        await_shares(group, consumers, SLICES)
        runs: dict[str, list[dict[str, float]]] = {"group": [], "plain": []}
        for kind, its in (("group", group), ("plain", plain)):
            run(fleet, its, kind, max(items // 10, SLICES))  # warm, and everything is attached
        for _ in range(rounds):
            for kind, its in (("group", group), ("plain", plain)):
                runs[kind].append(run(fleet, its, kind, items))
    finally:
        for child in children:
            child.end()
        fleet.end()
    return summed(runs)


def summed(runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Medians of each kind, and of their ratios by round."""
    medians = {
        kind: {name: round(statistics.median(one[name] for one in found), 1) for name in found[0]}
        for kind, found in runs.items()
    }
    pairs = list(zip(runs["group"], runs["plain"], strict=True))
    ratios = sorted(one["items_per_second"] / other["items_per_second"] for one, other in pairs)
    cost = [
        sum(v for k, v in one.items() if k != "items_per_second")
        / sum(v for k, v in other.items() if k != "items_per_second")
        for one, other in pairs
    ]
    return {
        **medians, "ratio": round(statistics.median(ratios), 3), "ratios": [round(each, 3) for each in ratios],
        "cost_ratio": round(statistics.median(cost), 3),
    }  # fmt: skip


def main() -> int:
    """Measure, print, and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.groups", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer items and rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--consumers", type=int, nargs="+", default=[1, 10, 100], metavar="N")
    options = parser.parse_args()
    items, rounds = (5_000, 2) if options.quick else (20_000, 5)
    figures: dict[str, Any] = {"decisions": decisions(1_000, 10_000), "throughput": {}}
    for name, one in figures["decisions"].items():
        print(f"1,000 consumers, 10,000 slices, {name}: {one['milliseconds']:,} ms, {one['moves']:,} moves", flush=True)
    figures["moves"] = moves_added()
    for name, one in figures["moves"].items():
        print(f"a slice that moves, {name}: {json.dumps(one)}", flush=True)
    for consumers in options.consumers:
        found = figures["throughput"][str(consumers)] = throughput(consumers, items, rounds)
        print(f"{consumers} consumers: {json.dumps(found)}", flush=True)
    figures["join"] = joined(1_000, 50)
    print(f"1,000 slices, 50 consumers: {json.dumps(figures['join'])}", flush=True)
    figures["moves"] = moved(3 if options.quick else 15)
    print(f"moves: {json.dumps(figures['moves'])}", flush=True)
    figures["others"] = [beside_groups(count, items // 10) for count in (0, GROUPS)]
    print(f"a publisher beside groups of others: {json.dumps(figures['others'])}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
