"""The key space and its partition: Pulsar 2023, "Topics are assigned to brokers at the bundle level"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.model.hash_ranges import BUNDLES_AT_MOST, HashRange, Partition, partition_of
from plimsoll.core.protocol.topic_units import HASH_END

HASHES = st.integers(0, HASH_END)


def test_the_text_s_two_bundles():
    first, second = Partition((0, 0x80000000, HASH_END)).ranges
    assert Partition.of_count(2).ranges == (first, second)
    assert Partition.of_count(2).range_of(0x0000000F) == first
    assert Partition.of_count(2).range_of(0x7FFFFFFF) == first
    assert Partition.of_count(2).range_of(0x80000000) == second
    assert Partition.of_count(2).range_of(HASH_END) == second, "the last range has its end"
    assert second.holds(HASH_END)
    assert not first.holds(0x80000000)


@given(st.integers(1, 64), st.lists(HASHES, max_size=60), st.lists(HASHES, max_size=20))
def test_any_sequence_of_splits_partitions_the_space(bundles: int, points: list[int], topics: list[int]):
    parted = Partition.of_count(bundles)
    for at in points:
        bundle = parted.range_of(at)
        if bundle.low < at < bundle.high:
            parted = parted.split(bundle, at)
    assert parted.ranges[0].low == 0
    assert parted.ranges[-1].end == 1 << 32
    assert all(one.end == next_one.low for one, next_one in zip(parted.ranges, parted.ranges[1:], strict=False))
    for topic in topics:
        assert [each for each in parted.ranges if each.holds(topic)] == [parted.range_of(topic)]


def test_a_split_is_of_one_of_the_bundles_and_between_its_ends():
    parted = Partition.of_count(4)
    with pytest.raises(ValueError, match="not a bundle of this cluster"):
        parted.split(HashRange(0, 0x80000000), 0x100)
    for at in (0, 0x40000000):
        with pytest.raises(ValueError, match="is not inside 0x00000000_0x40000000"):
            parted.split(parted.ranges[0], at)


@given(st.tuples(HASHES, HASHES).filter(lambda each: each[0] < each[1]))
def test_a_bundle_is_known_by_its_name(ends: tuple[int, int]):
    assert HashRange.of_name(HashRange(*ends).name) == HashRange(*ends)


@pytest.mark.parametrize("name", ["", "0x0_0x1", "0x00000001_0x00000000", "hot", "0x00000000-0x80000000", "0x0_" * 99])
def test_another_name_is_refused_with_an_example(name: str):
    with pytest.raises(ValueError, match="write its range, such as 0x00000000_0x80000000"):
        HashRange.of_name(name)


@pytest.mark.parametrize(
    "found",
    [None, 7, "0,1", [], [0], [0, HASH_END - 1], [1, HASH_END], [0, 5, 5, HASH_END], [0, True, HASH_END],
     [0, "8", HASH_END], [0, *range(1, BUNDLES_AT_MOST + 2), HASH_END]],
)  # fmt: skip
def test_what_is_no_partition_is_none(found: object):
    assert partition_of(found) is None


def test_a_stored_partition_comes_back():
    parted = Partition.of_count(5)
    assert partition_of(list(parted.boundaries)) == parted
