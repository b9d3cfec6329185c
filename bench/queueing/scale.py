"""`python -m bench.queueing.scale`: what a run of the queueing model costs by the size of the fleet.

Fleets of 1 to 100 edges in clusters of at most ten, in a tree, with 20 subscribers at each edge; PADRES balances. Half
of the subscribers of an edge want what a publisher of their own cluster says, half want a quarter of everything. A
message is a publication served by a broker, or a delivery. The cost should grow with the messages, whatever the number
of brokers: the last column is the cost of a message by that of the smallest fleet in the same run.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from plimsoll.core.spec import SourceDocument, parse
from plimsoll.simulator.queueing.fleet import QueueingFleet
from plimsoll.simulator.worlds.world_spec import parse_world
from plimsoll.simulator.worlds.world_traffic import traffic_of

SIZES: Final = (1, 3, 10, 30, 100)
EDGES_PER_CLUSTER: Final = 10
SUBSCRIBERS_PER_EDGE: Final = 20
SYMBOLS: Final = 20
API: Final = "plimsoll.dev/v1alpha1"


def documents(edges: int) -> Iterator[dict[str, Any]]:
    """The fleet: clusters in a binary tree."""
    yield _object("BrokerFleet", "scale", {"defaults": {"policy": {"type": "Padres"}}})
    emulation = {"base": "200us", "perSubscription": "20us"}
    yield _object("HardwareProfile", "edge", {"cpu": "1", "memory": "512Mi", "emulation": emulation})
    yield _object("HardwareProfile", "head", {"cpu": "1", "memory": "512Mi"})
    for number, own in enumerate(_clusters(edges)):
        spec: dict[str, Any] = {
            "head": {"profile": "head"},
            "edges": [{"name": f"c{number}-e", "profile": "edge", "replicas": own}],
        }
        if number:
            spec["neighbors"] = [{"name": f"c{(number - 1) // 2}"}]
        yield _object("BrokerCluster", f"c{number}", spec)


def world(edges: int, seconds: float) -> dict[str, Any]:
    """Two publishers in each cluster, and the subscribers."""
    clusters = _clusters(edges)
    publishers = [
        {
            "name": f"p{number}", "count": 2, "cluster": f"c{number}", "rates": [{"perSecond": 5}],
            "publications": [json.dumps({"of": number, "symbol": symbol}) for symbol in range(SYMBOLS)],
        }
        for number in range(len(clusters))
    ]  # fmt: skip
    subscribers = []
    for number, own in enumerate(clusters):
        for kind, text in (("local", f"[of,=,{number}]"), ("wide", f"[symbol,<,{SYMBOLS // 4}]")):
            subscribers.append({
                "name": f"{kind}{number}", "count": own * SUBSCRIBERS_PER_EDGE // 2, "cluster": f"c{number}",
                "subscriptions": [text],
            })  # fmt: skip
    return {"duration": f"{seconds:g}s", "publishers": publishers, "subscribers": subscribers}


def _clusters(edges: int) -> list[int]:
    """The number of edges of each cluster."""
    return [min(EDGES_PER_CLUSTER, edges - at) for at in range(0, edges, EDGES_PER_CLUSTER)]


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def run(edges: int, seconds: float, seed: int) -> dict[str, Any]:
    """One fleet, as a row."""
    resources = parse([SourceDocument(each, "<scale>") for each in documents(edges)])
    fleet = QueueingFleet(resources, traffic_of(parse_world(world(edges, seconds)), seed), seed=seed)
    began = time.process_time()
    fleet.run(seconds)
    spent = time.process_time() - began
    served = sum(broker.meter.total_served for broker in [*fleet.heads.values(), *fleet.edges.values()])
    messages = served + fleet.counts.delivered
    return {
        "edges": edges, "brokers": edges + len(fleet.heads), "subscribers": edges * SUBSCRIBERS_PER_EDGE,
        "served": served, "delivered": fleet.counts.delivered, "seconds": spent,
        "microseconds_per_message": 1e6 * spent / messages,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.queueing.scale", description=__doc__)
    parser.add_argument("--edges", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seconds", type=float, default=120.0, help="virtual time of each run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("bench-report/queueing-scale.json"))
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(
        f"{'edges':>6} {'brokers':>8} {'served':>10} {'delivered':>10} {'processor':>10} {'a message':>10} {'ratio':>6}"
    )
    for edges in options.edges:
        row = run(edges, options.seconds, options.seed)
        rows.append(row)
        ratio = row["microseconds_per_message"] / rows[0]["microseconds_per_message"]
        print(
            f"{edges:>6} {row['brokers']:>8} {row['served']:>10,} {row['delivered']:>10,} {row['seconds']:>8.2f} s "
            f"{row['microseconds_per_message']:>7.2f} us {ratio:>6.2f}", flush=True,
        )  # fmt: skip
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
