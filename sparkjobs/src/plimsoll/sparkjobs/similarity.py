"""`python -m plimsoll.sparkjobs.similarity`: who takes nearly the same, and what is published together.

Overlap is that of bit vectors, weighed by rate: of what two take together, the share that both take. Subscribers that
overlap much cost a broker less together (PADRES 2006, 4.1); brokers that do are where a subscriber moves cheaply (BAD
2019, similarity-based migration). Between all pairs of a large fleet that is asked by MinHash, which finds a pair the
more surely the more alike it is; the job says of a sample how many of the pairs that are there it has found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.ml.feature import CountVectorizerModel, MinHashLSH
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from plimsoll.sparkjobs import tables
from plimsoll.sparkjobs.session import make_session

SEED: Final = 20060101
HASH_TABLES: Final = 8
"""A pair of Jaccard similarity s is found with 1 - (1 - s)^8: 0.996 at one half."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`threshold`: the least Jaccard similarity of a pair; `sample`: how many sets recall is measured with."""

    threshold: float = 0.5
    sample: int = 500
    hash_tables: int = HASH_TABLES


def distinct_sets(subscribers: DataFrame) -> DataFrame:
    """name, items, subscribers: each set that is asked for, named by its first subscriber. Empty ones are like none."""
    return (
        subscribers.select("subscriber", F.array_sort(F.array_distinct("items")).alias("items"))
        .where(F.size("items") > 0)
        .groupBy("items")
        .agg(F.min("subscriber").alias("name"), F.count(F.lit(1)).alias("subscribers"))
    )


def broker_sets(subscribers: DataFrame) -> DataFrame:
    """name, items: what each broker takes in, which is what any of its subscribers takes."""
    taken = subscribers.select(F.col("broker").alias("name"), F.explode("items").alias("item"))
    return taken.groupBy("name").agg(F.array_sort(F.collect_set("item")).alias("items"))


def overlaps(sets: DataFrame, items: DataFrame, others: DataFrame | None = None) -> DataFrame:
    """a, b, shared, united, jaccard, shared_rate, united_rate, overlap of every pair that shares an item, exactly.

    `overlap` is shared_rate / united_rate. With `others`, a is of `sets` and b is of them.
    """
    one, other = _weighed(sets, items), _weighed(sets if others is None else others, items)
    sums = [F.count(F.lit(1)).alias("size"), F.sum("rate").alias("total")]
    pairs = (
        one.alias("x")
        .join(other.alias("y"), (F.col("x.item") == F.col("y.item")) & (_apart(others)))
        .groupBy(F.col("x.name").alias("a"), F.col("y.name").alias("b"))
        .agg(F.count(F.lit(1)).alias("shared"), F.sum("x.rate").alias("shared_rate"))
    )
    totals = one.groupBy(F.col("name").alias("a")).agg(*sums)
    other_totals = other.groupBy(F.col("name").alias("b")).agg(
        F.count(F.lit(1)).alias("other_size"), F.sum("rate").alias("other_total")
    )
    united = F.col("size") + F.col("other_size") - F.col("shared")
    united_rate = F.col("total") + F.col("other_total") - F.col("shared_rate")
    return (
        pairs.join(totals, "a").join(other_totals, "b")
        .select("a", "b", "shared", united.alias("united"), (F.col("shared") / united).alias("jaccard"),
                "shared_rate", united_rate.alias("united_rate"))
        .withColumn("overlap", F.when(F.col("united_rate") > 0, F.col("shared_rate") / F.col("united_rate"))
                    .otherwise(0.0))
    )  # fmt: skip


def _apart(others: DataFrame | None) -> Any:
    return F.col("x.name") < F.col("y.name") if others is None else F.col("x.name") != F.col("y.name")


def _weighed(sets: DataFrame, items: DataFrame) -> DataFrame:
    return sets.select("name", F.explode("items").alias("item")).join(items, "item")


def alike(sets: DataFrame, asked: Asked) -> DataFrame:
    """a, b, jaccard of pairs at or above the threshold, found by MinHash: none that is wrong, and not surely all."""
    vocabulary = sorted(row["item"] for row in sets.select(F.explode("items").alias("item")).distinct().collect())
    if not vocabulary:
        return sets.select(F.col("name").alias("a"), F.col("name").alias("b"), F.lit(0.0).alias("jaccard")).limit(0)
    texts = sets.select("name", F.col("items").cast("array<string>").alias("texts"))
    vectors = CountVectorizerModel.from_vocabulary(list(map(str, vocabulary)), "texts", "features").setBinary(True)
    features = vectors.transform(texts).select("name", "features").cache()
    hashing = MinHashLSH(inputCol="features", outputCol="hashes", numHashTables=asked.hash_tables, seed=SEED)
    model = hashing.fit(features)
    # The join keeps what is strictly nearer than the distance it is given.
    near = model.approxSimilarityJoin(features, features, 1.0 - asked.threshold + 1e-9, "distance")
    return near.where("datasetA.name < datasetB.name").select(
        F.col("datasetA.name").alias("a"), F.col("datasetB.name").alias("b"), (1 - F.col("distance")).alias("jaccard")
    )


def recall(sets: DataFrame, items: DataFrame, found: DataFrame, asked: Asked) -> tuple[int, int]:
    """Of the pairs that a sample of the sets is in: how many are alike, and how many of those were found."""
    sample = sets.orderBy(F.xxhash64("name", F.lit(SEED))).limit(asked.sample)
    exact = (
        overlaps(sample, items.withColumn("rate", F.lit(1.0)), sets)
        .where(F.col("jaccard") >= asked.threshold)
        .select(F.least("a", "b").alias("a"), F.greatest("a", "b").alias("b"))
        .distinct()
        .cache()
    )
    return exact.count(), exact.join(found, ["a", "b"], "left_semi").count()


def taken_together(sets: DataFrame, least: int = 2) -> DataFrame:
    """a, b, both, lift of pairs of items: how much oftener the same subscriber takes both than chance would have it."""
    rows = sets.select("name", "subscribers", F.explode("items").alias("item"))
    everyone = sets.agg(F.sum("subscribers")).first()
    total = int(everyone[0] or 0) if everyone else 0
    alone = rows.groupBy("item").agg(F.sum("subscribers").alias("takers"))
    pairs = (
        rows.alias("x").join(rows.alias("y"), "name").where("x.item < y.item")
        .groupBy(F.col("x.item").alias("a"), F.col("y.item").alias("b"))
        .agg(F.sum("x.subscribers").alias("both"))
        .where(F.col("both") >= least)
    )  # fmt: skip
    lift = F.col("both") * F.lit(float(total)) / (F.col("takers_a") * F.col("takers_b"))
    return (
        pairs.join(alone.select(F.col("item").alias("a"), F.col("takers").alias("takers_a")), "a")
        .join(alone.select(F.col("item").alias("b"), F.col("takers").alias("takers_b")), "b")
        .select("a", "b", "both", lift.alias("lift"))
    )


def correlations(rates: DataFrame, bucket_seconds: int, publishers_at_most: int = 500) -> DataFrame:
    """a, b, correlation, n of pairs of publishers: Pearson, of their mean rates per bucket in which both spoke."""
    bucketed = (
        rates.withColumn("bucket", F.expr(f"at_us div {bucket_seconds * 1_000_000}"))
        .groupBy("publisher", "bucket")
        .agg(F.avg("publications_per_second").alias("rate"))
    )
    busiest = bucketed.groupBy("publisher").agg(F.sum("rate").alias("sum")).orderBy(F.desc("sum"), "publisher")
    kept = bucketed.join(busiest.limit(publishers_at_most).select("publisher"), "publisher").cache()
    return (
        kept.alias("x").join(kept.alias("y"), "bucket").where("x.publisher < y.publisher")
        .groupBy(F.col("x.publisher").alias("a"), F.col("y.publisher").alias("b"))
        .agg(F.corr("x.rate", "y.rate").alias("correlation"), F.count(F.lit(1)).alias("n"))
    )  # fmt: skip


def rates_of(loads: DataFrame) -> DataFrame:
    """RATES, from the load reports of heads."""
    each = loads.where("role = 'head'").select("at_us", F.explode("publisher_rates").alias("one"))
    return each.select("one.publisher", "at_us", "one.publications_per_second")


def run(spark: SparkSession, folder: Path, output: Path, asked: Asked) -> dict[str, Any]:
    """Reads `subscribers` and `items`; writes `alike`, `brokers` and `together` (Parquet) and `similarity.json`."""
    started = time.monotonic()
    subscribers = tables.read(spark, folder / "subscribers", tables.SUBSCRIBERS)
    items = tables.read(spark, folder / "items", tables.ITEMS)
    sets = distinct_sets(subscribers).cache()
    found = alike(sets, asked).cache()
    found.write.mode("overwrite").parquet(str(output / "alike"))
    hashed_seconds = time.monotonic() - started
    overlaps(broker_sets(subscribers), items).write.mode("overwrite").parquet(str(output / "brokers"))
    taken_together(sets).write.mode("overwrite").parquet(str(output / "together"))
    there, of_them = recall(sets, items, found, asked)
    report = {
        "subscribers": subscribers.count(), "sets": sets.count(), "threshold": asked.threshold,
        "hashTables": asked.hash_tables, "pairs": found.count(), "sampledPairs": there, "sampledFound": of_them,
        "recall": of_them / there if there else 1.0, "hashSeconds": round(hashed_seconds, 3),
        "seconds": round(time.monotonic() - started, 3),
    }  # fmt: skip
    tables.write_json(output / "similarity.json", report)
    return report


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs.similarity", description=__doc__)
    parser.add_argument("folder", type=Path, help="with tables subscribers and items")
    parser.add_argument("output", type=Path)
    parser.add_argument("--threshold", type=float, default=0.5, help="least Jaccard similarity of a pair")
    parser.add_argument("--hash-tables", type=int, default=HASH_TABLES)
    parser.add_argument("--sample", type=int, default=500, help="sets that recall is measured with")
    asked = parser.parse_args(arguments)
    with make_session("plimsoll-similarity") as spark:
        run(spark, asked.folder, asked.output, Asked(asked.threshold, asked.sample, asked.hash_tables))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
