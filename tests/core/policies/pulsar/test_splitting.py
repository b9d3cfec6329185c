"""When and where bundles are split: Pulsar 2023, sections 2 to 4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.model.bundle_load import BundleLoad
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition
from plimsoll.core.policies.pulsar.splitting import Split, SplitLimits, split_point, splits_wanted, topics_middle

FIRST = HashRange(0x0000, 0x8000)


def test_range_equally_divide_halves_the_range():
    assert split_point(BundleLoad(FIRST, topics=6), "RangeEquallyDivide") == 0x4000


def test_topic_count_equally_divide_halves_the_topics():
    middle = topics_middle([0x00, 0x05, 0x10, 0x15, 0x20, 0x25])
    assert middle == 0x12
    assert split_point(BundleLoad(FIRST, topics=6, middle=middle), "TopicCountEquallyDivide") == 0x12


@given(st.sets(st.integers(0, 0xFFFFFFFF), min_size=2, max_size=30))
def test_the_middle_has_as_many_topics_on_both_sides(topics: set[int]):
    """Also where two topics have neighbouring hashes: halfway between them lies the first one itself."""
    middle = topics_middle(topics)
    below = sum(topic < middle for topic in topics)
    assert below == len(topics) // 2


@pytest.mark.parametrize("topics", [[], [7], [7, 7]])
def test_fewer_than_two_topics_have_no_middle(topics: list[int]):
    assert topics_middle(topics) == 0


@pytest.mark.parametrize("algorithm", ["RangeEquallyDivide", "TopicCountEquallyDivide"])
def test_a_bundle_of_one_topic_is_not_split(algorithm: str):
    why = split_point(BundleLoad(FIRST, topics=1), algorithm)  # type: ignore[arg-type]  # one of its literals
    assert isinstance(why, str)
    assert "1 topics; one edge serves all of a topic" in why


def test_a_bundle_of_one_hash_is_not_split():
    why = split_point(BundleLoad(HashRange(5, 6), topics=9), "RangeEquallyDivide")
    assert why == "0x00000005_0x00000006 holds a single hash"


def test_the_halves_are_the_text_s():
    assert Split(FIRST, 0x4000, "hot").halves == (HashRange(0, 0x4000), HashRange(0x4000, 0x8000))
    parted = Partition((0, 0x8000, 0xFFFFFFFF)).split(FIRST, 0x4000)
    assert parted.boundaries == (0, 0x4000, 0x8000, 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (BundleLoad(FIRST, topics=1001), "1001 topics"),
        (BundleLoad(FIRST, sessions=1001), "1001 sessions"),
        (BundleLoad(FIRST, input_rate=1e4, output_rate=20_001.0), "3e+04 messages/s"),
        (BundleLoad(FIRST, input_bytes=1e8, output_bytes=1.0), "1e+08 B/s"),
    ],
)
def test_each_limit_asks_for_a_split(load: BundleLoad, why: str):
    assert why in SplitLimits().exceeded(load)
    at_the_limit = BundleLoad(FIRST, 1000, 1000, input_rate=1e4, output_rate=2e4, input_bytes=1e8)
    assert SplitLimits().exceeded(at_the_limit) == ""


def test_no_split_at_the_most_bundles_and_the_busiest_first():
    parted = Partition.of_count(4)
    loads = [BundleLoad(bundle, topics=2000, input_rate=float(number)) for number, bundle in enumerate(parted.ranges)]
    wanted = [load.bundle for load, _ in splits_wanted(parted, loads, SplitLimits(most_bundles=6))]
    assert wanted == [parted.ranges[3], parted.ranges[2]]
    assert splits_wanted(parted, loads, SplitLimits(most_bundles=4)) == ()
    assert splits_wanted(Partition.of_count(2), loads, SplitLimits()) == (), "ranges of before a split do not count"
