"""Overlap, exact and by MinHash; items that are taken together; publishers with correlated rates."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs import tables
from plimsoll.sparkjobs.jobs import similarity
from plimsoll.sparkjobs.jobs.similarity import SimilarityOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATES = {item: 1.0 + item % 4 for item in range(60)}


def subscribers(seed: int, count: int = 150) -> list[tuple[str, str, list[int]]]:
    """Families of sets with small differences, so that there are pairs of every similarity."""
    generator = random.Random(seed)
    bases = [set(generator.sample(range(60), 12)) for _ in range(12)]
    rows = []
    for number in range(count):
        items = set(generator.choice(bases))
        for item in generator.sample(range(60), generator.randint(0, 5)):
            items ^= {item}
        rows.append((f"s{number:03}", f"b{number % 4}", sorted(items)))
    return rows


def exact(sets: dict[str, set[int]]) -> dict[tuple[str, str], tuple[float, float]]:
    """(Jaccard, overlap by rate) of every pair with a common item."""
    found = {}
    for a in sets:
        for b in sets:
            shared, united = sets[a] & sets[b], sets[a] | sets[b]
            if a < b and shared:
                weight = sum(RATES[i] for i in shared) / sum(RATES[i] for i in united)
                found[a, b] = (len(shared) / len(united), weight)
    return found


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_overlap_is_exact_and_minhash_finds_nearly_all_pairs_and_no_wrong_ones(spark: SparkSession, tmp_path: Path):
    rows = subscribers(1)
    spark.createDataFrame([*rows, ("zz", "b0", [])], tables.SUBSCRIBERS).write.parquet(str(tmp_path / "subscribers"))
    spark.createDataFrame(list(RATES.items()), tables.ITEMS).write.parquet(str(tmp_path / "items"))
    asked = SimilarityOptions(threshold=0.6, sample=40, hash_tables=10)
    report = similarity.run(spark, tmp_path, tmp_path / "out", asked)

    distinct: dict[frozenset[int], str] = {}
    for name, _, items in rows:
        distinct.setdefault(frozenset(items), name)
    pairs = exact({name: set(items) for items, name in distinct.items()})
    wanted = {pair for pair, (jaccard, _) in pairs.items() if jaccard >= 0.6}
    found = {
        (one["a"], one["b"]): one["jaccard"] for one in spark.read.parquet(str(tmp_path / "out" / "alike")).collect()
    }
    assert set(found) <= wanted
    assert all(found[pair] == pytest.approx(pairs[pair][0]) for pair in found)
    assert len(found) >= 0.95 * len(wanted) > 20
    assert report["sets"] == len(distinct)
    assert report["pairs"] == len(found)
    assert report["sampledPairs"] > 0
    assert 0.9 <= report["recall"] <= 1.0
    assert (report["precision"], report["sampledWrong"]) == (1.0, 0)

    brokers: dict[str, set[int]] = {}
    for _, broker, items in rows:
        brokers.setdefault(broker, set()).update(items)
    by_broker = {
        (one["a"], one["b"]): (one["jaccard"], one["overlap"])
        for one in spark.read.parquet(str(tmp_path / "out" / "brokers")).collect()
    }
    assert by_broker == {pair: pytest.approx(values) for pair, values in exact(brokers).items()}


@pytest.mark.slow
def test_dense_overlaps_equal_exact_overlaps(spark: SparkSession):
    generator = random.Random(2)
    rows = [(f"b{i}", generator.sample(range(60), generator.randint(0, 40))) for i in range(12)]
    sets = spark.createDataFrame([*rows, ("alone", [99]), ("unknown", [1000])], "name STRING, items ARRAY<INT>")
    items = spark.createDataFrame([*RATES.items(), (99, 0.0)], tables.ITEMS)
    found = {(one["a"], one["b"]): one for one in similarity.dense_overlaps(sets, items).collect()}
    wanted = {(one["a"], one["b"]): one.asDict() for one in similarity.exact_overlaps(sets, items).collect()}
    assert set(found) == set(wanted)
    for pair, values in wanted.items():
        assert {name: found[pair][name] for name in values} == pytest.approx(values)
    none = similarity.dense_overlaps(sets.limit(0), items)
    assert (none.count(), none.columns) == (0, similarity.exact_overlaps(sets, items).columns)


def test_equal_sets_have_equal_hashes_and_pairs_agree_as_often_as_they_are_similar(spark: SparkSession):
    """The least hashes of two sets are equal with the probability of their Jaccard similarity, here 1/3."""
    sets = [(1, list(range(40))), (2, list(range(39, -1, -1))), (3, list(range(20, 60))), (4, [-5, 2**31 - 1])]
    frame = spark.createDataFrame(sets, "number INT, items ARRAY<INT>")
    hashes = {one["number"]: one["h"] for one in frame.select(
        "number", similarity.min_hashes("items", 200).alias("h")).collect()}  # fmt: skip
    assert hashes[1] == hashes[2]
    assert 40 < sum(a == b for a, b in zip(hashes[1], hashes[3], strict=True)) < 95
    assert all(0 <= value < similarity.HASH_PRIME for value in hashes[4])


@pytest.mark.sweep
def test_found_pairs_that_are_not_similar_are_counted(spark: SparkSession):
    sets = spark.createDataFrame([("a", [1, 2]), ("b", [1, 2, 3]), ("c", [3])], "name STRING, items ARRAY<INT>")
    items = spark.createDataFrame(list(RATES.items()), tables.ITEMS)
    found = spark.createDataFrame([("b", "c", 0.9)], "a STRING, b STRING, jaccard DOUBLE")
    assert similarity.sampled_recall(sets, items, found, SimilarityOptions(threshold=0.5, sample=3)) == (1, 0, 1)


@pytest.mark.sweep
def test_lift_is_how_much_more_often_items_are_taken_together_than_by_chance(spark: SparkSession):
    rows = [("a", "b", [1, 2]), ("b", "b", [1, 2]), ("c", "b", [1]), ("d", "b", [3]), ("e", "b", [2, 3])]
    sets = similarity.distinct_sets(spark.createDataFrame(rows, tables.SUBSCRIBERS))
    found = {
        (row["a"], row["b"]): (row["both"], row["lift"]) for row in similarity.item_cooccurrence(sets, 1).collect()
    }
    assert found == {(1, 2): (2, pytest.approx(2 * 5 / (3 * 3))), (2, 3): (1, pytest.approx(5 / (3 * 2)))}
