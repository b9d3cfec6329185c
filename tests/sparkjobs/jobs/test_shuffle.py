"""The job around the solver: moves of subscribers, from tables to tables."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs import tables
from plimsoll.sparkjobs.jobs.shuffle import LoadCosts, group_subscribers, placement_problem, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def fleet(folder: Path, spark: SparkSession, subscribers: int = 400) -> list[tuple[str, str, list[int]]]:
    generator = random.Random(1)
    sets = [generator.sample(range(3, 30), generator.randint(1, 4)) for _ in range(40)]
    rows = [(f"s{i}", f"b{generator.choice([0, 0, 0, 1, 2])}", generator.choice(sets)) for i in range(subscribers)]
    spark.createDataFrame(rows, tables.SUBSCRIBERS).write.parquet(str(folder / "subscribers"))
    spark.createDataFrame([(i, 1.0 + i % 3) for i in range(3, 30)], tables.ITEMS).write.parquet(str(folder / "items"))
    brokers = [(f"b{i}", 1000.0) for i in range(4)]
    spark.createDataFrame(brokers, tables.BROKERS).write.parquet(str(folder / "brokers"))
    return rows


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("plan", ["keep", "sharing"])
def test_moves_result_in_the_loads_of_the_plan(spark: SparkSession, tmp_path: Path, plan: str):
    rows = fleet(tmp_path, spark)
    found = run(spark, tmp_path, tmp_path / "out", plan, LoadCosts(input=5.0))
    moves = spark.read.parquet(str(tmp_path / "out" / "moves")).collect()
    assert len({row["subscriber"] for row in moves}) == len(moves) == found["plans"][plan]["moves"]
    at = {name: broker for name, broker, _ in rows}
    assert all(at[row["subscriber"]] == row["source"] != row["target"] for row in moves)
    at |= {row["subscriber"]: row["target"] for row in moves}

    # The loads of the plan, computed again from the placement of subscribers alone.
    takes = {name: items for name, _, items in rows}
    loads = {}
    for broker in ("b0", "b1", "b2", "b3"):
        mine = [name for name in at if at[name] == broker]
        taken = {item for name in mine for item in takes[name]}
        output = sum(1.0 + item % 3 for name in mine for item in takes[name])
        loads[broker] = (5 * sum(1.0 + item % 3 for item in taken) + output) / 1000
    assert max(loads.values()) == pytest.approx(found["plans"][plan]["highest"])
    assert found["bound"] <= max(loads.values()) <= (1.4 if plan == "keep" else 1.2) * found["bound"]
    assert max(loads.values()) < found["plans"]["now"]["highest"]
    assert found["plans"]["lpt"]["highest"] >= found["bound"]
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["subscribers"] == len(rows)


def test_groups_count_subscribers_with_the_same_items_by_broker(spark: SparkSession, tmp_path: Path):
    rows = [("a", "b0", [2, 1]), ("b", "b0", [1, 2, 2]), ("c", "b1", [1, 2]), ("d", "b1", [])]
    frame = spark.createDataFrame(rows, tables.SUBSCRIBERS)
    counted = Counter(
        {(tuple(row["items"]), row["broker"]): row["number"] for row in group_subscribers(frame).collect()}
    )
    assert counted == {((1, 2), "b0"): 2, ((1, 2), "b1"): 1, ((), "b1"): 1}
    items = spark.createDataFrame([(1, 1.0), (2, 1.0)], tables.ITEMS)
    brokers = spark.createDataFrame([("b0", 1.0)], tables.BROKERS)
    with pytest.raises(tables.JobTableError, match="at broker 'b1'"):
        placement_problem(group_subscribers(frame), items, brokers, LoadCosts())
    with pytest.raises(tables.JobTableError, match="take item 2"):
        placement_problem(
            group_subscribers(frame.where("broker = 'b0'")), items.where("item = 1"), brokers, LoadCosts()
        )
