"""How long the fleet-wide plan and the search for the like take, from tables to tables, and how good they are.

`python -m bench.telemetry.plans --subscribers 10000 100000 1000000`: what subscribers take is drawn by popularity, most
of them take what others take, too, and they are spread over brokers at random.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plimsoll.sparkjobs import shuffle, similarity
from plimsoll.sparkjobs.session import make_session

SIZES = {10_000: (100, 500, 2_000), 100_000: (300, 2_000, 10_000), 1_000_000: (1_000, 5_000, 30_000)}
"""Subscribers: brokers, items, distinct sets."""


def tables(folder: Path, subscribers: int) -> None:
    """A fleet of that size."""
    brokers, items, sets = SIZES[subscribers]
    draw = np.random.default_rng(1)
    popularity = 1.0 / np.arange(1, items + 1) ** 0.7
    popularity /= popularity.sum()
    rates = 1.0 / np.arange(1, items + 1) ** 0.8
    rates *= items / rates.sum()
    taken = [np.unique(draw.choice(items, size=draw.integers(1, 8), p=popularity)).tolist() for _ in range(sets)]
    weights = 1.0 / np.arange(1, sets + 1) ** 0.9
    chosen = draw.choice(sets, size=subscribers, p=weights / weights.sum())
    spread = draw.integers(0, brokers, subscribers)
    columns = {
        "subscribers": {
            "subscriber": pa.array([f"s{i}" for i in range(subscribers)]),
            "broker": pa.array([f"b{i}" for i in spread]),
            "items": pa.array([taken[i] for i in chosen], pa.list_(pa.int32())),
        },
        "items": {"item": pa.array(range(items), pa.int32()), "rate": pa.array(rates)},
        "brokers": {"broker": pa.array([f"b{i}" for i in range(brokers)]), "capacity": pa.array(np.full(brokers, 1e5))},
    }
    for name, of_table in columns.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(pa.table(of_table), folder / name / "a.parquet")


def measure(subscribers: int, plans: Sequence[str], with_similarity: bool) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="plimsoll-bench-"))
    found: dict[str, Any] = {"subscribers": subscribers}
    try:
        tables(folder, subscribers)
        with make_session("bench", {"spark.driver.memory": "3g"}) as spark:
            for plan in plans:
                began = time.monotonic()
                told = shuffle.run(spark, folder, folder / "out", plan, shuffle.Costs())
                found |= {name: told[name] for name in ("groups", "brokers", "items", "bound", "readSeconds")}
                found.setdefault("plans", {}).update(told["plans"])
                found[f"{plan}Seconds"] = round(time.monotonic() - began, 1)
            if with_similarity:
                found["similarity"] = similarity.run(spark, folder, folder / "like", similarity.Asked(sample=200))
    finally:
        shutil.rmtree(folder)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.telemetry.plans", description=__doc__)
    parser.add_argument("--subscribers", type=int, nargs="+", default=sorted(SIZES), choices=sorted(SIZES))
    parser.add_argument("--plans", nargs="+", default=["sharing", "keep"], choices=sorted(shuffle.PLANS))
    parser.add_argument("--no-similarity", action="store_true")
    asked = parser.parse_args(arguments)
    for subscribers in asked.subscribers:
        print(json.dumps(measure(subscribers, asked.plans, not asked.no_similarity)), flush=True)


if __name__ == "__main__":
    main()
