"""`python -m plimsoll.sparkjobs similarity`: pairs of subscribers and brokers that overlap, and of items.

Overlap is that of bit vectors, weighted by rate: the rate of the items that both take, divided by the rate of all items
that either takes. Subscribers that overlap cost one broker less than two (PADRES 2006, 4.1), and a subscriber moves
cheaply between brokers that overlap (BAD 2019, similarity-based migration). Pairs of subscribers in a large fleet are
found by MinHash, which finds similar pairs with a higher probability; recall is measured on a sample.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from plimsoll.sparkjobs import tables
from plimsoll.sparkjobs.spark_session import make_spark_session

SEED: Final = 20060101
HASH_TABLES: Final = 8
"""A pair of Jaccard similarity s is found with probability 1 - (1 - s)^8: 0.996 at one half."""
HASH_PRIME: Final = 2_038_074_743
"""Hashes of items are below this prime; products of two of them fit into 63 bits."""
ITEM_BLOCKS: Final = 8
"""Parts of the items of brokers that are multiplied on their own, so that no process has all of them."""
PARTIAL_COLUMNS: Final = "a STRING, b STRING, shared BIGINT, shared_rate DOUBLE"
_PARTIAL_SCHEMA: Final = pa.schema(
    [("a", pa.string()), ("b", pa.string()), ("shared", pa.int64()), ("shared_rate", pa.float64())]
)


@dataclass(frozen=True, slots=True)
class SimilarityOptions:
    """`threshold`: the least Jaccard similarity of a pair; `sample`: the number of sets to measure recall with."""

    threshold: float = 0.5
    sample: int = 500
    hash_tables: int = HASH_TABLES


def distinct_sets(subscribers: DataFrame) -> DataFrame:
    """name, items, subscribers: each distinct set, named by its first subscriber. Empty sets are left out."""
    return (
        subscribers.select("subscriber", F.array_sort(F.array_distinct("items")).alias("items"))
        .where(F.size("items") > 0)
        .groupBy("items")
        .agg(F.min("subscriber").alias("name"), F.count(F.lit(1)).alias("subscribers"))
    )


def broker_sets(subscribers: DataFrame) -> DataFrame:
    """name, items: the input of each broker, the union of its subscribers' items."""
    taken = subscribers.select(F.col("broker").alias("name"), F.explode("items").alias("item"))
    return taken.groupBy("name").agg(F.array_sort(F.collect_set("item")).alias("items"))


def exact_overlaps(sets: DataFrame, items: DataFrame, others: DataFrame | None = None) -> DataFrame:
    """a, b, shared, united, jaccard, shared_rate, united_rate, overlap of every pair with a common item, exactly.

    `overlap` is shared_rate / united_rate. With `others`, a is from `sets` and b from `others`.
    """
    one, other = _weighted_items(sets, items), _weighted_items(sets if others is None else others, items)
    pairs = (
        one.alias("x")
        .join(other.alias("y"), (F.col("x.item") == F.col("y.item")) & (_different_names(others)))
        .groupBy(F.col("x.name").alias("a"), F.col("y.name").alias("b"))
        .agg(F.count(F.lit(1)).alias("shared"), F.sum("x.rate").alias("shared_rate"))
    )
    return _overlaps_of_pairs(pairs, one, other)


def _overlaps_of_pairs(pairs: DataFrame, one: DataFrame, other: DataFrame) -> DataFrame:
    """The columns of `exact_overlaps` from pairs with shared and shared_rate, and the weighted items of either side."""
    totals = one.groupBy(F.col("name").alias("a")).agg(
        F.count(F.lit(1)).alias("size"), F.sum("rate").alias("total")
    )  # fmt: skip
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


def _different_names(others: DataFrame | None) -> Any:
    return F.col("x.name") < F.col("y.name") if others is None else F.col("x.name") != F.col("y.name")


def _weighted_items(sets: DataFrame, items: DataFrame) -> DataFrame:
    return sets.select("name", F.explode("items").alias("item")).join(items, "item")


def dense_overlaps(sets: DataFrame, items: DataFrame) -> DataFrame:
    """The same as `exact_overlaps`, for few sets of many items, like those of brokers: nearly all pairs share an item.

    A join would have a row for each pair and shared item: a thousand million at 1,000 brokers. Here blocks of items are
    multiplied as matrices where they are, and what the pairs share is added up over the blocks.
    """
    weighted = _weighted_items(sets, items)
    block = F.pmod(F.col("item"), F.lit(ITEM_BLOCKS)).alias("block")
    partial = weighted.select("name", "item", "rate", block).groupBy("block").applyInArrow(
        block_overlaps, PARTIAL_COLUMNS
    )  # fmt: skip
    pairs = partial.groupBy("a", "b").agg(F.sum("shared").alias("shared"), F.sum("shared_rate").alias("shared_rate"))
    return _overlaps_of_pairs(pairs, weighted, weighted)


def block_overlaps(block: pa.Table) -> pa.Table:
    """PARTIAL_COLUMNS of all pairs that share one of the block's items; `block` has name, item and rate."""
    names, row = np.unique(block.column("name").to_numpy().astype(str), return_inverse=True)
    known, first, column = np.unique(block.column("item").to_numpy(), return_index=True, return_inverse=True)
    rates = block.column("rate").to_numpy()[first]
    takes = np.zeros((len(names), len(known)))
    takes[row, column] = 1.0
    found: list[pa.Table] = []
    for one in range(len(names) - 1):
        shared = takes[one + 1 :] @ takes[one]
        others = np.flatnonzero(shared)
        shared_rate = (takes[one + 1 :] @ (takes[one] * rates))[others]
        texts = ([str(names[one])] * len(others), names[one + 1 :][others].tolist())
        found.append(pa.table([*texts, shared[others].astype(np.int64), shared_rate], schema=_PARTIAL_SCHEMA))
    return pa.concat_tables(found) if found else _PARTIAL_SCHEMA.empty_table()


def min_hashes(items: str, tables_of_hashes: int) -> Column:
    """The least hash of an array of items by each of some random functions (Broder 1997): one place for each."""
    draw = np.random.default_rng(SEED)
    factors, terms = draw.integers(1, HASH_PRIME, tables_of_hashes), draw.integers(0, HASH_PRIME, tables_of_hashes)

    def least(factor: int, term: int) -> Column:
        def hashed(item: Column) -> Column:
            return F.pmod(F.pmod(item.cast("bigint"), F.lit(HASH_PRIME)) * factor + term, F.lit(HASH_PRIME))

        return F.array_min(F.transform(items, hashed))

    return F.array(*(least(int(factor), int(term)) for factor, term in zip(factors, terms, strict=True)))


def similar_pairs(sets: DataFrame, asked: SimilarityOptions) -> DataFrame:
    """a, b, jaccard of pairs at or above the threshold, found by MinHash: each is correct, but some may be missing.

    Candidates are names until duplicates are removed; only then are they compared by their items.
    """
    of_set = F.posexplode(min_hashes("items", asked.hash_tables)).alias("table", "hash")
    hashes = sets.select("name", F.size("items").alias("size"), of_set).cache()
    # Sets of very different sizes cannot reach the threshold, and most candidates are such pairs.
    fits = F.least("x.size", "y.size") + 1e-9 >= F.lit(asked.threshold) * F.greatest("x.size", "y.size")
    candidates = (
        hashes.alias("x").join(hashes.alias("y"), ["table", "hash"]).where(F.expr("x.name < y.name") & fits)
        .select(F.col("x.name").alias("a"), F.col("y.name").alias("b")).distinct()
    )  # fmt: skip
    one, other = (sets.select(F.col("name").alias(name), F.col("items").alias(f"items_{name}")) for name in ("a", "b"))
    shared = F.size(F.array_intersect("items_a", "items_b"))
    jaccard = shared / (F.size("items_a") + F.size("items_b") - shared)
    return (
        candidates.join(one, "a").join(other, "b")
        .select("a", "b", jaccard.alias("jaccard")).where(F.col("jaccard") >= asked.threshold)
    )  # fmt: skip


def sampled_recall(
    sets: DataFrame, items: DataFrame, found: DataFrame, asked: SimilarityOptions
) -> tuple[int, int, int]:
    """Counts for a sample of the sets, by exact overlap: similar pairs, those of them that were found, and wrong pairs
    that were found."""
    sample = sets.orderBy(F.xxhash64("name", F.lit(SEED))).limit(asked.sample).cache()
    exact = (
        exact_overlaps(sample, items.withColumn("rate", F.lit(1.0)), sets)
        .where(F.col("jaccard") >= asked.threshold)
        .select(F.least("a", "b").alias("a"), F.greatest("a", "b").alias("b"))
        .distinct()
        .cache()
    )
    names = sample.select("name")
    sampled = found.join(names, found["a"] == names["name"], "left_semi").union(
        found.join(names, found["b"] == names["name"], "left_semi")
    )
    wrong = sampled.select("a", "b").distinct().join(exact, ["a", "b"], "left_anti").count()
    return exact.count(), exact.join(found, ["a", "b"], "left_semi").count(), wrong


def item_cooccurrence(sets: DataFrame, least: int = 2) -> DataFrame:
    """a, b, both, lift of pairs of items: how much more often subscribers take both than they would by chance."""
    rows = sets.select("name", "subscribers", F.explode("items").alias("item"))
    all_subscribers = sets.agg(F.sum("subscribers")).first()
    total = int(all_subscribers[0] or 0) if all_subscribers else 0
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


def run(spark: SparkSession, folder: Path, output: Path, asked: SimilarityOptions) -> dict[str, Any]:
    """Read `subscribers` and `items`; write `alike`, `brokers` and `together` (Parquet) and `similarity.json`."""
    started = time.monotonic()
    subscribers = tables.read_table(spark, folder / "subscribers", tables.SUBSCRIBERS)
    items = tables.read_table(spark, folder / "items", tables.ITEMS)
    sets = distinct_sets(subscribers).cache()
    found = similar_pairs(sets, asked).cache()
    found.write.mode("overwrite").parquet(str(output / "alike"))
    hashed_seconds = time.monotonic() - started
    dense_overlaps(broker_sets(subscribers), items).write.mode("overwrite").parquet(str(output / "brokers"))
    item_cooccurrence(sets).write.mode("overwrite").parquet(str(output / "together"))
    rest_seconds = time.monotonic() - started
    similar, hits, wrong = sampled_recall(sets, items, found, asked)
    report = {
        "subscribers": subscribers.count(), "sets": sets.count(), "threshold": asked.threshold,
        "hashTables": asked.hash_tables, "pairs": found.count(), "sampledPairs": similar, "sampledFound": hits,
        "recall": hits / similar if similar else 1.0, "sampledWrong": wrong,
        "precision": hits / (hits + wrong) if hits + wrong else 1.0, "hashSeconds": round(hashed_seconds, 3),
        "checkSeconds": round(time.monotonic() - started - rest_seconds, 3),
        "seconds": round(time.monotonic() - started, 3),
    }  # fmt: skip
    tables.write_json(output / "similarity.json", report)
    return report


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs similarity", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with the tables subscribers and items")
    parser.add_argument("output", type=Path, help="folder for the results")
    parser.add_argument("--threshold", type=float, default=0.5, help="least Jaccard similarity of a pair")
    parser.add_argument("--hash-tables", type=int, default=HASH_TABLES, help="more find more pairs, and take longer")
    parser.add_argument("--sample", type=int, default=500, help="number of sets to measure recall with")
    asked = parser.parse_args(arguments)
    with make_spark_session("plimsoll-similarity") as spark:
        run(spark, asked.folder, asked.output, SimilarityOptions(asked.threshold, asked.sample, asked.hash_tables))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
