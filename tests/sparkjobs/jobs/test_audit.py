"""The audit over tables has the same counts as the audit in one process, for sound runs and for planted faults."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.core.verify.test_audit import FAULTS, damage, world
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.core.verify import Observation, audit_journal
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.oracle import filter_key, matches
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.sparkjobs import audit_tables
from plimsoll.sparkjobs.jobs.audit import audit_counts, filter_matcher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNTS = ("accepted", "expected", "delivered", "lost", "excused", "duplicated", "reordered", "unwanted")
NAMES = ("subscriber", "publisher", "head")


def frames(spark: SparkSession, runs: Iterable[list[Observation]]) -> list[DataFrame]:
    """Many runs as one: names get the number of their run."""
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in audit_tables.TABLES}
    for number, run in enumerate(runs):
        for name, rows in audit_tables.table_rows(run).items():
            columns = [column.strip().split(" ")[0] for column in audit_tables.TABLES[name].split(",")]
            for row in rows:
                named: dict[str, Any] = {key: f"{number}/{row[key]}" for key in NAMES if row.get(key) is not None}
                # No subscription matches publications of another run.
                if "attributes" in row:
                    named["attributes"] = json.dumps(json.loads(row["attributes"]) | {"run": number})
                if "predicates" in row:
                    named["predicates"] = json.dumps([*json.loads(row["predicates"]), ["run", "=", number]])
                if "not_from" in row:
                    named["not_from"] = [f"{number}/{head}" for head in row["not_from"]]
                found[name].append(tuple((row | named)[column] for column in columns))
    return [spark.createDataFrame(found[name], columns) for name, columns in audit_tables.TABLES.items()]


def by_one_process(runs: Iterable[list[Observation]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for run in runs:
        found = audit_journal(run).as_dict()
        total.update({name: found[name] for name in COUNTS})
    return {name: total[name] for name in COUNTS}


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_counts_are_those_of_the_audit_in_one_process_with_and_without_faults(spark: SparkSession):
    runs = [world(seed) for seed in range(4)]
    for number, fault in enumerate(FAULTS):
        for seed in (10, 20):
            run = world(seed + number)
            places = [i for i, one in enumerate(run) if isinstance(one, seen.DeliveryObserved)]
            if fault != "invent":  # a publication that never existed has no row in the table `accepted`
                damage(run, random.Random(seed).choice(places), fault)
            runs.append(run)
    for scenario in ("far-apart", "lossy", "clients"):
        simulation = SimulationRun(SCENARIOS[scenario], 3)
        simulation.go()
        runs.append(simulation.journal.all)
    counts, absent = audit_counts(*frames(spark, runs))
    wanted = by_one_process(runs)
    undecided = counts.pop("undecided")
    assert counts == wanted
    assert undecided == absent.where("verdict = 'undecided'").count()
    assert min(wanted[name] for name in ("lost", "duplicated", "reordered", "unwanted")) > 0
    lost = absent.where("verdict = 'lost'").collect()
    assert len(lost) == wanted["lost"]
    assert all(row["subscriber"] and row["origin_offset"] for row in lost)


def test_missing_deliveries_within_a_reported_gap_are_excused_and_the_others_are_lost(spark: SparkSession):
    run: list[Observation] = [
        seen.SubscriptionObserved("s", 1, 1, [("k", "exists", None)], 0.0),
        seen.AcknowledgementObserved("s", 1, [1], "h", [], 0.5),
    ]
    for seq in range(1, 9):
        run += [
            seen.PublicationObserved("p", 1, seq, {"k": seq}, float(seq)),
            seen.LogEntryObserved("h", 1, seq, ("p", 1, seq), ("h", 1, seq), seq + 0.1),
            seen.AnswerObserved("p", 1, seq, "accepted", seq + 0.2),
        ]
    run += [
        seen.DeliveryObserved("s", 1, ("p", 1, 1), ("h", 1, 1), 1.5),
        seen.DeliveryObserved("s", 1, ("p", 1, 3), ("h", 1, 3), 3.5),  # 2 is lost: it was due before the gap
        seen.GapObserved("s", 1, "h", 1, 4, 1, 6, [("h", 1, 6)], "evicted", 6.5),
        seen.DeliveryObserved("s", 1, ("p", 1, 8), ("h", 1, 8), 8.5),  # 7 is lost: it comes after the gap
    ]
    counts, absent = audit_counts(*frames(spark, [run]))
    assert counts.pop("undecided") == 0
    assert counts == by_one_process([run])
    found = {row["seq"]: row["verdict"] for row in absent.collect()}
    assert found == {2: "lost", 4: "excused", 5: "excused", 6: "excused", 7: "lost"}


def test_matching_by_columns_is_that_of_the_oracle():
    """Values of all kinds, absent attributes, and constants that are equal but of another kind."""
    draw = random.Random(3)
    values: list[Any] = [0, 1, 1.0, True, False, "", "a", "ab", "ba", -2, 2.5, 10**17 + 1, 1e17]
    operators = ["=", "!=", "<", "<=", ">", ">=", "prefix", "suffix", "contains", "in", "exists"]
    publications = [
        {name: draw.choice(values) for name in draw.sample("xyz", draw.randrange(4))} for _ in range(400)
    ]  # fmt: skip

    def predicate() -> list[Any]:
        operator = draw.choice(operators)
        wanted = draw.sample(values, 3) if operator == "in" else draw.choice(values)
        if operator in ("prefix", "suffix", "contains"):
            wanted = draw.choice(["", "a", "b"])
        return [draw.choice("xyzw"), operator, wanted]

    filters = [[predicate() for _ in range(draw.randint(0, 3))] for _ in range(200)]
    texts = sorted({json.dumps(one) for one in filters})
    columns = ["p"] * 400, [1] * 400, list(range(400)), [json.dumps(one) for one in publications]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(each) for each in columns], ["publisher", "publisher_incarnation", "seq", "attributes"]
    )
    (found,) = filter_matcher(texts)(iter([batch]))
    pairs = {(row["seq"], row["predicates"]) for row in found.to_pylist()}
    wanted = {
        (seq, text)
        for text in texts
        for seq, one in enumerate(publications)
        if matches(filter_key(json.loads(text)), one)
    }
    assert pairs == wanted
    assert len(found) == len(pairs) > 1000
    (none,) = filter_matcher([])(iter([batch]))
    assert none.num_rows == 0
