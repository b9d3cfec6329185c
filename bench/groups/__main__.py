"""Consumer groups measured: items per second beside plain subscriptions, what a move adds, decisions of large groups.

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

from bench.broker.processes import PLAIN_KEYS, Child, serve
from bench.groups.clients import publish, take
from bench.groups.decisions import decisions
from bench.groups.moves import moves_added

from plimsoll.client import Connection

SLICES = 200
PROCESSES = 2
"""Over which consumers are spread."""
PATIENCE_SECONDS = 180.0


class BenchFleet:
    """A head, an edge and a publisher. `end` kills them."""

    def __init__(self) -> None:
        self.head = Child(serve, "head", ("", ""), PLAIN_KEYS, {})
        data, control, _ = self.head.ask()
        self.endpoint = data
        self.edge = Child(serve, "edge", (data, control), PLAIN_KEYS, {})
        self.edge.ask()
        self.publisher = Child(publish, data)
        self.publisher.ask()

    def cpu(self) -> dict[str, float]:
        """Processor seconds of the brokers so far."""
        return {name: child.ask("cpu")[0].process for name, child in (("head", self.head), ("edge", self.edge))}

    def end(self) -> None:
        for child in (self.publisher, self.edge, self.head):
            child.end()


def shares_of(consumers: int) -> list[list[int]]:
    return [list(range(SLICES))[i::consumers] for i in range(consumers)]


def takers(fleet: BenchFleet, group: str, consumers: int) -> list[Child]:
    """Consumers of a group, or with an empty name plain subscribers, in processes."""
    shares, kind = shares_of(consumers), group or "plain"
    parts = [range(consumers)[i::PROCESSES] for i in range(min(PROCESSES, consumers))]
    children = [
        Child(take, fleet.endpoint, group, [f"{kind}-{consumers}-{i}" for i in part], [shares[i] for i in part])
        for part in parts
    ]
    for child in children:
        child.ask()
    return children


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


def await_slices(children: list[Child], consumers: int) -> float:
    """Seconds until all consumers together have all slices, and each at least half of an even share."""
    began = time.monotonic()
    while True:
        having = [slices for child in children for slices in child.ask("slices")]
        if len(having) == consumers and sum(having) == SLICES and 2 * min(having) * consumers >= SLICES:
            return time.monotonic() - began
        if time.monotonic() > began + PATIENCE_SECONDS:
            raise TimeoutError(
                f"{len(having)} consumers have {sum(having)} slices, the fewest {min(having, default=0)}"
            )
        time.sleep(0.02)


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
        with Connection(fleet.endpoint, security="plain", name="bench-maker") as connection:
            group_of_all = connection.group(
                "group", slices=SLICES, filter="[class,=,'group']", function="Modulo", by="g", balancing="None"
            )
            maker = group_of_all.subscribe(name="maker", timeout=60.0)
            group = takers(fleet, "group", consumers)
            plain = takers(fleet, "", consumers)
            children = [*group, *plain]
            maker.close()
        await_slices(group, consumers)
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
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
