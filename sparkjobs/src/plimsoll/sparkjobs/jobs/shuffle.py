"""`python -m plimsoll.sparkjobs shuffle`: a fleet-wide placement of all subscribers, and the moves that it needs.

Spark groups subscribers with the same items and counts them by broker: a million subscribers become some ten thousand
groups. The driver makes the plan from these (`placement_solver`), and Spark turns it into moves of subscribers. It is a
proposal: sessions move subscribers, and check each request.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from plimsoll.sparkjobs import tables
from plimsoll.sparkjobs.placement_solver import (
    PlacementProblem,
    SubscriberGroup,
    SubscriberPlacement,
    lower_bound,
    pack_lpt,
    pack_sharing_input,
    relabel_brokers,
)
from plimsoll.sparkjobs.spark_session import make_spark_session

PLACEMENT_METHODS: dict[str, Callable[[PlacementProblem, float], SubscriberPlacement]] = {
    "lpt": lambda problem, bound: pack_lpt(problem),
    "sharing": lambda problem, bound: relabel_brokers(problem, pack_sharing_input(problem, bound)),
    "keep": lambda problem, bound: pack_sharing_input(problem, bound, keep=True),
}
QUOTA_COLUMNS = "items ARRAY<INT>, broker STRING, target STRING, low BIGINT, high BIGINT"
_QUOTAS_TYPES = {
    "items": pa.list_(pa.int32()), "broker": pa.string(), "target": pa.string(), "low": pa.int64(), "high": pa.int64(),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoadCosts:
    """The load of a publication as input, and of one delivery, in the unit of the capacities."""

    input: float = 1.0
    output: float = 1.0


def group_subscribers(subscribers: DataFrame) -> DataFrame:
    """items, broker, number: the number of subscribers of a broker that take exactly these items."""
    return (
        subscribers.select(F.array_sort(F.array_distinct("items")).alias("items"), "broker")
        .groupBy("items", "broker")
        .agg(F.count(F.lit(1)).alias("number"))
    )


def placement_problem(
    groups: DataFrame, items: DataFrame, brokers: DataFrame, costs: LoadCosts
) -> tuple[PlacementProblem, list[str]]:
    """The placement problem, and the names of the brokers by number.

    Raises:
        JobTableError: a subscriber has a broker or an item that is missing from its table.

    """
    names, capacities = _columns(brokers.orderBy("broker"), "broker", "capacity")
    numbers = {name: number for number, name in enumerate(names)}
    known, rates = _columns(items.orderBy("item"), "item", "rate")
    places = {item: place for place, item in enumerate(known)}
    found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for takes, broker, number in zip(*_columns(groups, "items", "broker", "number"), strict=True):
        if broker not in numbers:
            raise tables.JobTableError(
                f"subscribers are at broker {broker!r}, which is missing from the table of brokers"
            )
        if unknown := [item for item in takes if item not in places]:
            raise tables.JobTableError(f"subscribers take item {unknown[0]}, which is missing from the table of items")
        found.setdefault(tuple(places[item] for item in takes), []).append((numbers[broker], number))
    listed = tuple(SubscriberGroup(takes, tuple(sorted(at))) for takes, at in sorted(found.items()))
    problem = PlacementProblem(np.array(rates, float), np.array(capacities, float), listed, costs.input, costs.output)
    return problem, names


def _columns(frame: DataFrame, *names: str) -> list[list[Any]]:
    """Columns of a frame as lists. Through Arrow: row objects for a million rows take minutes."""
    table = frame.select(*names).toArrow()
    return [table.column(name).to_pylist() for name in names]


def placement_quotas(
    problem: PlacementProblem, placement: SubscriberPlacement, names: Sequence[str], known: Sequence[int]
) -> list[tuple[Any, ...]]:
    """Rows of QUOTA_COLUMNS: of the subscribers of a group at a broker, in order of their names, numbers low+1 to high
    go to target. Those that stay come first."""
    rows: list[tuple[Any, ...]] = []
    for group, placed in zip(problem.groups, placement.placed, strict=True):
        items = [known[place] for place in group.items]
        wanted = dict(placed)
        left: list[tuple[int, int, int]] = []
        for broker, here in group.count_by_broker:
            if stay := min(here, wanted.get(broker, 0)):
                rows.append((items, names[broker], names[broker], 0, stay))
                wanted[broker] -= stay
            left.append((broker, stay, here))
        open_places = [(target, number) for target, number in sorted(wanted.items()) if number]
        for broker, low, here in left:
            while low < here:
                target, number = open_places.pop()
                taken = min(number, here - low)
                rows.append((items, names[broker], names[target], low, low + taken))
                low += taken
                if number > taken:
                    open_places.append((target, number - taken))
    return rows


def quota_table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows of QUOTA_COLUMNS as an Arrow table: Spark takes a second for it, and minutes for a million tuples."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_QUOTAS_TYPES)
    return pa.table({name: pa.array(columns[i], kind) for i, (name, kind) in enumerate(_QUOTAS_TYPES.items())})


def subscriber_moves(subscribers: DataFrame, quota: DataFrame) -> DataFrame:
    """subscriber, source, target of every move."""
    order = Window.partitionBy("items", "broker").orderBy("subscriber")
    ranked = subscribers.select(
        "subscriber", "broker", F.array_sort(F.array_distinct("items")).alias("items")
    ).withColumn("place", F.row_number().over(order))
    return (
        ranked.join(quota, ["items", "broker"])
        .where("place > low and place <= high and broker != target")
        .select("subscriber", F.col("broker").alias("source"), "target")
    )


def placement_report(
    problem: PlacementProblem, placement: SubscriberPlacement, bound: float, seconds: float
) -> dict[str, Any]:
    """The figures of a plan; utilisations are ratios of capacity."""
    loads = placement.utilizations(problem)
    return {
        "highest": float(loads.max()),
        "aboveBound": float(loads.max()) / bound if bound else 1.0,
        "mean": float(loads.mean()),
        "deviation": float(loads.std() / loads.mean()) if loads.mean() else 0.0,
        "moves": placement.moves(problem),
        "seconds": round(seconds, 3),
    }


def current_placement(problem: PlacementProblem) -> SubscriberPlacement:
    """The placement as it is now."""
    return SubscriberPlacement([dict(group.count_by_broker) for group in problem.groups])


def run(spark: SparkSession, folder: Path, output: Path, plan: str, costs: LoadCosts) -> Mapping[str, Any]:
    """Read `subscribers`, `items` and `brokers` below the folder; write `moves` (Parquet) and `plan.json`."""
    started = time.monotonic()
    subscribers = tables.read_table(spark, folder / "subscribers", tables.SUBSCRIBERS)
    items = tables.read_table(spark, folder / "items", tables.ITEMS)
    brokers = tables.read_table(spark, folder / "brokers", tables.BROKERS)
    problem, names = placement_problem(group_subscribers(subscribers), items, brokers, costs)
    known = sorted(_columns(items, "item")[0])
    read_seconds = time.monotonic() - started
    bound = lower_bound(problem)
    found: dict[str, Any] = {
        "subscribers": sum(group.count for group in problem.groups),
        "groups": len(problem.groups),
        "brokers": len(names),
        "items": len(known),
        "bound": bound,
        "readSeconds": round(read_seconds, 3),
        "plan": plan,
        "plans": {"now": placement_report(problem, current_placement(problem), bound, 0.0)},
    }
    chosen = None
    for name in dict.fromkeys(("lpt", plan)):  # LPT always, for comparison
        began = time.monotonic()
        placement = PLACEMENT_METHODS[name](problem, bound)
        found["plans"][name] = placement_report(problem, placement, bound, time.monotonic() - began)
        chosen = placement if name == plan else chosen
    assert chosen is not None  # noqa: S101  # `plan` is in the loop
    quota = spark.createDataFrame(
        quota_table(placement_quotas(problem, chosen, names, known)), tables.struct_type(QUOTA_COLUMNS)
    )
    subscriber_moves(subscribers, quota).write.mode("overwrite").parquet(str(output / "moves"))
    found["seconds"] = round(time.monotonic() - started, 3)
    tables.write_json(output / "plan.json", found)
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs shuffle", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with the tables subscribers, items and brokers")
    parser.add_argument("output", type=Path, help="folder for moves and plan.json")
    parser.add_argument(
        "--plan", choices=sorted(PLACEMENT_METHODS), default="keep",
        help="`keep` moves few subscribers, `sharing` has the lowest load, `lpt` is plain LPT (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--input-cost", type=float, default=1.0, help="load of a publication as input")
    parser.add_argument("--output-cost", type=float, default=1.0, help="load of a delivery")
    asked = parser.parse_args(arguments)
    costs = LoadCosts(asked.input_cost, asked.output_cost)
    with make_spark_session("plimsoll-shuffle") as spark:
        run(spark, asked.folder, asked.output, asked.plan, costs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
