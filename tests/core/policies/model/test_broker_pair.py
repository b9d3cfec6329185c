"""Two brokers while moves are considered: what is filled in, what goes alone, what ranks first, what is bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.policies.hand import Broker, World, named

from plimsoll.core.policies.model.broker_pair import UniqueSamples, calibrated_loads
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import PlanRejection, bounded_rejections
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.ranking import FULL_SCAN_AT_MOST, RankKey, RowRanking
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic


def row(key: str, bits: int) -> ProfileRow:
    return ProfileRow(key, bits, (key,))


def test_an_empty_target_is_taken_to_be_like_the_source_by_its_capacity():
    """s takes 0.01 s per subscription; t is five times as fast: 0.002 s for each that comes."""
    world = World(1, {"a": 1}, {"s": Broker(0.01, served={"a": named("a", 10)}), "t": Broker(0.002)})
    source, target = calibrated_loads(world.load("s"), world.load("t"), world.profile("s", "t"), BalancingParameters())
    assert target.delay is not None
    assert target.match_delay_seconds == 0.0
    assert source.match_delay_seconds == pytest.approx(0.1)


def test_of_an_overloaded_source_what_is_asked_counts_and_not_what_it_does():
    """s sends 1000 B/s, as much as it can; 30 subscribers want 100 B/s each."""
    world = World(1, {"a": 1}, {"s": Broker(0.001, 1000.0, {"a": named("a", 30)}), "t": Broker()})
    told = replace(world.load("s"), output_bytes_per_second=1000.0, output_utilization=1.0)
    source, _ = calibrated_loads(told, world.load("t"), world.profile("s", "t"), BalancingParameters())
    assert source.output_utilization == pytest.approx(3.0)
    calm = replace(told, output_bytes_per_second=500.0, output_utilization=0.5)
    source, _ = calibrated_loads(calm, world.load("t"), world.profile("s", "t"), BalancingParameters())
    assert source.output_utilization == pytest.approx(0.5)


@pytest.mark.parametrize(("reported", "expected"), [(40.0, 60.0), (55.0, 55.0), (80.0, 80.0)])
def test_a_report_of_a_time_in_which_publishers_began_is_not_what_comes_now(reported: float, expected: float):
    """The mean of five seconds has 40/s, and 60/s come now; 55/s may be chance, and 80/s is what came."""
    rows = (ProfileRow("all", (1 << 64) - 1, named("s", 24)),)
    profile = SubscriptionProfile(SampledTraffic([SampleBlock(64, 60.0 / 64, 100.0)]), rows)
    source = BrokerLoad(
        name="s", subscribers=24, subscriptions=24, input_rate=reported, match_delay_seconds=0.0048,
        input_utilization=0.0048 * reported, output_rate=24 * reported, output_bytes_per_second=2400 * reported,
    )  # fmt: skip
    found, _ = calibrated_loads(source, BrokerLoad(name="t"), profile, BalancingParameters())
    assert found.input_rate == pytest.approx(expected)
    assert found.input_utilization == pytest.approx(0.0048 * expected)
    assert found.output_bytes_per_second == pytest.approx(2400 * expected)


def test_memory_is_a_line_through_both():
    """0.5 for 200 subscribers and 0.1 for none: 0.002 each. Where more take less, in proportion."""
    empty = SubscriptionProfile(SampledTraffic([SampleBlock(1, 1.0)]), ())
    source = BrokerLoad(name="s", subscribers=200, memory_ratio=0.5)
    target = BrokerLoad(name="t", memory_ratio=0.1)
    assert calibrated_loads(source, target, empty, BalancingParameters())[1].memory_per_subscriber == pytest.approx(
        0.002
    )
    fuller = replace(target, subscribers=300)
    assert calibrated_loads(source, fuller, empty, BalancingParameters())[1].memory_per_subscriber == pytest.approx(
        0.0025
    )


@given(st.lists(st.integers(0, 63), max_size=12), st.integers(0, 63), st.data())
def test_what_a_row_alone_matches_is_kept_up(bits: list[int], rest: int, data: st.DataObject):
    left = {str(number): row(str(number), each) for number, each in enumerate(bits)}
    alone = UniqueSamples(rest, tuple(left.values()))
    while True:
        expected = 0
        for sample in range(6):
            matching = sum(each.bits >> sample & 1 for each in left.values())
            expected |= (matching == 1 and not rest >> sample & 1) << sample
        assert alone.samples == expected
        if not left:
            break
        gone = left.pop(data.draw(st.sampled_from(sorted(left))))
        alone.remove(gone)


@pytest.mark.parametrize("count", [FULL_SCAN_AT_MOST, FULL_SCAN_AT_MOST + 1, 4 * FULL_SCAN_AT_MOST])
def test_ranking_finds_the_best_whether_few_or_many(count: int):
    """Each choice makes all others worth a little less, in proportion, and one of them worth nothing."""
    worth = {f"r{number:04d}": float(number * 7919 % 1009) for number in range(count)}
    scale = [1.0]

    def look(one: ProfileRow) -> tuple[RankKey, str] | None:
        value = worth[one.key] * scale[0]
        return ((-value, 0.0, 0.0, 0, one.key), one.key) if value > 5 else None

    rows = {key: row(key, 1) for key in worth}
    ranking = RowRanking(look)
    chosen = []
    while (found := ranking.best(rows)) is not None:
        chosen.append(found)
        del rows[found]
        scale[0] *= 0.99
    assert chosen == sorted(chosen, key=lambda key: (-worth[key], key))
    assert chosen


def test_what_becomes_worth_more_is_looked_at_again():
    worth = {f"r{number:04d}": 100.0 + number for number in range(2 * FULL_SCAN_AT_MOST)}
    rows = {key: row(key, 1) for key in worth}
    ranking = RowRanking(lambda one: ((-worth[one.key], 0.0, 0.0, 0, one.key), one.key))
    assert ranking.best(rows) == "r0127"
    worth["r0003"] = 999.0
    ranking.invalidate(["r0003"])
    assert ranking.best(rows) == "r0003"


def test_many_rejections_are_summed_by_kind():
    some = [PlanRejection("NoBetter" if n % 2 else "Staying", f"k{n}", n, f"reason {n}") for n in range(101)]
    assert bounded_rejections(some[:100]) == tuple(some[:100])
    summed = bounded_rejections(some)
    assert [(each.kind, each.rows, each.subscribers) for each in summed] == [
        ("NoBetter", 50, 2500),
        ("Staying", 51, 2550),
    ]
    assert summed[0].reason == "50 sets of subscriptions, the first: reason 1"
