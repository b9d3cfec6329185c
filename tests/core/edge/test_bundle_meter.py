"""What an edge counts of bundles."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.edge import remembered_topics
from plimsoll.core.edge.bundle_meter import BundleMeter
from plimsoll.core.policies.model.bundle_load import reported_bundles
from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.policies.pulsar.splitting import topics_middle
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash, unit_name
from plimsoll.core.spec.types.policy import BundlesSpec, PulsarParameters

OWN = PulsarParameters(topic_attribute="topic", bundles=BundlesSpec(initial=2))


def meter(now: float = 0.0) -> BundleMeter:
    return BundleMeter(OWN, now)


def table(partition: Partition, version: int = 1, mediator: int = 1, *released: tuple[int, int]) -> msg.BundleTable:
    return msg.BundleTable(
        mediator, version, list(partition.boundaries), [], [msg.ReleasedBundle(*each) for each in released]
    )


def test_publications_are_counted_by_bundle_and_second():
    found = meter(10.0)
    for _ in range(6):
        found.note({"topic": "a", "n": 1}, 100, 3)
    found.note({"n": 1}, 100, 3)
    (load,) = reported_bundles(found.report([], 12.0))
    assert load.bundle.holds(topic_hash("a"))
    assert (load.input_rate, load.output_rate, load.input_bytes, load.output_bytes) == (3.0, 9.0, 300.0, 900.0)
    assert reported_bundles(found.report([], 14.0)) == (), "each report is of its own interval"


def test_subscribers_are_counted_by_topic():
    names = [unit_name(name, topic) for name in ("s", "t") for topic in (1, 9)] + [unit_name("u", 9), "whole"]
    (load,) = reported_bundles(meter().report(names, 1.0))
    assert (load.topics, load.sessions, load.middle, load.input_rate) == (2, 5, 5, 0.0)


def test_one_and_true_are_two_topics():
    found, parted = meter(), Partition.of_count(1024)
    found.take_ranges(table(parted))
    for topic in (1, True, 1.0, True, 1):
        found.note({"topic": topic}, 1, 0)
    rates = {load.bundle: load.input_rate for load in reported_bundles(found.report([], 1.0))}
    assert rates == {parted.range_of(topic_hash(1)): 3.0, parted.range_of(topic_hash(True)): 2.0}


def test_memory_is_bounded_whatever_is_published(monkeypatch: Any):
    monkeypatch.setattr(remembered_topics, "REMEMBERED_TOPICS", 10)
    found = meter()
    for number in range(1000):
        found.note({"topic": f"t{number}"}, 1, 0)
        found.note({"topic": "x" * 1000 + str(number)}, 1, 0)
    assert len(found._of_topic) <= 10
    assert all(len(str(topic)) <= remembered_topics.REMEMBERED_CHARACTERS for topic in found._of_topic)
    assert sum(load.input_rate for load in reported_bundles(found.report([], 1.0))) == 2000.0


def test_ranges_are_those_of_the_newest_table():
    found = meter()
    found.note({"topic": "a"}, 1, 0)
    found.take_ranges(table(Partition.of_count(4), 2))
    assert reported_bundles(found.report([], 1.0)) == (), "what was counted by other ranges is dropped"
    found.take_ranges(table(Partition.of_count(8), 1))
    found.take_ranges(msg.BundleTable(9, 9, [0, 1]))
    assert (len(found.partition), found.version) == (4, (1, 2))


def test_a_release_counts_once():
    found, parted = meter(), Partition.of_count(2)
    assert found.released(table(parted, 1, 1, (5, 7))) == [parted.ranges[0]]
    assert found.released(table(parted, 1, 1, (5, 7))) == []
    assert found.released(table(parted, 1, 1, (5, 8), (0x80000000, 8))) == list(parted.ranges)


def test_the_units_of_a_released_bundle_are_to_leave_once():
    found, parted = meter(), Partition.of_count(2)
    names = [unit_name("s", 1), unit_name("t", 0x80000001), "whole"]
    assert found.take(table(parted), names) == []
    assert found.take(table(parted, 1, 1, (5, 7)), names) == [unit_name("s", 1)]
    assert found.take(table(parted, 1, 1, (5, 7)), names) == []


def test_releases_that_were_seen_are_told_to_the_next_life_of_the_head():
    found, parted = meter(), Partition.of_count(2)
    assert found.seen_releases() == []
    for number in (7, 8):
        found.released(table(parted, 1, 1, (0, number)))
    found.released(table(parted, 1, 1, (0x80000000, 8)))
    assert found.seen_releases() == [msg.ReleasedBundle(0, 8), msg.ReleasedBundle(0x80000000, 8)]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 0xFFFFFFFF) | st.sampled_from((0, 0x80000000, 0xFFFFFFFF)))),
    st.integers(1, 64),
)
def test_what_is_counted_at_once_is_what_is_counted_one_by_one(units: list[tuple[int, int]], bundles: int):
    """Names that come and go between reports count as they are now."""
    parted, found = Partition.of_count(bundles), meter()
    found.take_ranges(table(parted))
    names = sorted({unit_name(f"s{number}", topic) for number, topic in units})
    found.report(names[::2], 1.0)
    loads = {load.bundle: load for load in reported_bundles(found.report([*names, "whole"], 2.0))}
    for bundle in parted.ranges:
        here = [int(name[-8:], 16) for name in names if bundle.holds(int(name[-8:], 16))]
        if not here:
            assert bundle not in loads
        else:
            assert (loads[bundle].sessions, loads[bundle].topics) == (len(here), len(set(here)))
            assert loads[bundle].middle == topics_middle(here)
