"""Samples run through subscriptions: bits against brute force, thinning, bounds, and the subscribers that stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.policies.hand import pair_of

from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.predicates.subscription import Attributes
from plimsoll.core.profiling.sampler import (
    MIN_SAMPLES,
    MatchFunction,
    ProfileSampler,
    SampleRun,
    TrafficSample,
    bounded_profile,
    downsampled,
    samples_that_fit,
    wire_bytes,
)


def stretch(rate: float, values: list[int], recent: int | None = None, size: int = 100) -> SampleRun:
    samples: tuple[TrafficSample, ...] = tuple(({"v": value}, size, float(i)) for i, value in enumerate(values))
    return SampleRun(rate, samples, len(samples) if recent is None else recent)


def above(*bounds: int):
    """Row `n` asks for values above n."""

    def matching(attributes: Attributes) -> list[str]:
        return [str(bound) for bound in bounds if float(attributes["v"]) > bound]

    return matching


def nothing(attributes: Attributes) -> bool:
    return False


def profile_of(
    stretches: list[SampleRun], rows: list[ProfileRow], matching: MatchFunction, *, overhead_bytes: float = 0.0
) -> SubscriptionProfile:
    """The profile in one go, of a target that takes nothing."""
    sampling = ProfileSampler(stretches, rows, matching, nothing)
    sampling.advance()
    return sampling.profile(overhead_bytes)


values = st.lists(st.integers(0, 9), max_size=20)


@given(
    st.lists(st.tuples(st.floats(0.01, 10.0), values), max_size=6),
    st.lists(st.integers(-1, 9), min_size=1, max_size=4, unique=True),
    st.integers(1, 7),
)
def test_rates_are_those_of_brute_force(parts: list[tuple[float, list[int]]], bounds: list[int], step: int):
    """Everything matches row -1, which is always there: nothing has left, and each block has its whole rate."""
    stretches = [stretch(rate, found) for rate, found in parts]
    rows = [ProfileRow(str(bound), 0, ("a",)) for bound in bounds]
    sampling = ProfileSampler(stretches, rows, above(-1, *bounds), above_5)
    while not sampling.is_done:
        sampling.advance(step)
    profile = sampling.profile()
    pair = pair_of(profile)
    for row, bound in zip(profile.rows, bounds, strict=True):
        shares = [(rate, [v for v in found if v > bound], len(found)) for rate, found in parts if found]
        assert profile.rate(row) == pytest.approx(sum(rate * len(some) / all_ for rate, some, all_ in shares))
        fresh = [(rate, [v for v in some if v <= 5], all_) for rate, some, all_ in shares]
        assert pair.extra_rate(row) == pytest.approx(sum(rate * len(some) / all_ for rate, some, all_ in fresh))
    assert profile.input_rate == pytest.approx(sum(rate for rate, found in parts if found))


def above_5(attributes: Attributes) -> bool:
    return float(attributes["v"]) > 5


def test_some_at_a_time_are_the_same_as_all_at_once():
    stretches = [stretch(2.0, [1, 5, 9, 3]), stretch(1.0, list(range(9)))]
    rows = [ProfileRow("4", 0, ("a",)), ProfileRow("7", 0, ("b",))]
    sampling = ProfileSampler(stretches, rows, above(4, 7), nothing)
    with pytest.raises(ValueError, match="13 samples are left"):
        sampling.profile()
    while not sampling.advance(4):
        pass
    once = profile_of(stretches, rows, above(4, 7))
    assert (sampling.profile().rows, sampling.profile().traffic.blocks) == (once.rows, once.traffic.blocks)


def test_who_is_in_no_row_keeps_what_it_asks_for():
    """The row asks for 8 and 9, and another subscriber, which is not offered, for 9: only 8 would be saved."""
    profile = profile_of([stretch(10.0, list(range(10)))], [ProfileRow("7", 0, ("a",))], above(7, 8))
    assert profile.rest == 1 << 9
    assert profile.rate(profile.rows[0]) == pytest.approx(2.0)
    assert pair_of(profile).saved_rate(profile.rows[0]) == pytest.approx(1.0)


def test_what_matches_nothing_any_more_is_taken_out_of_the_count():
    """Ten a second came while all was asked for; since, only values above 4 come. Counted over all: half of it is left.

    Where the count is of the last five alone, which all match, it is left as it is.
    """
    rows = [ProfileRow("4", 0, ("a",))]
    values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    over_all = profile_of([stretch(10.0, values)], rows, above(4))
    assert over_all.input_rate == pytest.approx(5.0)
    since = profile_of([stretch(5.0, values, recent=5)], rows, above(4))
    assert since.input_rate == pytest.approx(5.0)
    assert profile_of([stretch(5.0, values, recent=5)], rows, above(9)).input_rate == 0.0


def test_sizes_are_those_of_what_still_comes():
    samples: tuple[TrafficSample, ...] = (({"v": 1}, 1000, 0.0), ({"v": 9}, 100, 1.0))
    profile = profile_of([SampleRun(1.0, samples, 2)], [ProfileRow("4", 0, ("a",))], above(4), overhead_bytes=10.0)
    assert profile.output_bytes_per_second(profile.rows[0]) == pytest.approx(0.5 * 110.0)


@given(st.lists(st.tuples(st.floats(0.01, 10.0), values), max_size=30), st.integers(1, 200))
def test_thinned_samples_keep_their_traffic(parts: list[tuple[float, list[int]]], most: int):
    stretches = [stretch(rate, found) for rate, found in parts]
    thinned = downsampled(stretches, most)
    assert sum(len(each.samples) for each in thinned) <= max(most, len(thinned))
    assert sum(each.rate for each in thinned) == pytest.approx(
        sum(each.rate for each in stretches if each.samples)
    ) or (thinned == tuple(stretches))
    assert all(each.recent <= len(each.samples) for each in thinned)


def test_the_slowest_are_taken_together_when_they_are_too_many():
    stretches = [stretch(float(i), [i] * 10) for i in range(1, 101)]
    thinned = downsampled(stretches, 40)
    assert sum(len(each.samples) for each in thinned) <= 40
    assert len(thinned) == 10
    assert thinned[-1].rate == pytest.approx(sum(range(1, 92)))
    assert len(downsampled(stretches, 1)) == 1


def rows_with_bits(count: int) -> tuple[ProfileRow, ...]:
    return tuple(ProfileRow(f"r{i:03d}", (1 << i) - 1, ("a",)) for i in range(count))


def test_a_profile_is_bounded_from_both_ends():
    """Of ten rows six fit: the three that take most and the three that take least; what the others match stays."""
    rows = rows_with_bits(10)
    profile = SubscriptionProfile(SampledTraffic([SampleBlock(10, 1.0)]), rows)
    small = bounded_profile(profile, 6 * wire_bytes(rows[0], 10))
    assert [row.key for row in small.rows] == ["r000", "r001", "r002", "r007", "r008", "r009"]
    assert small.rest == rows[6].bits
    assert small.input_rate == profile.input_rate
    assert pair_of(small).saved_rate(small.rows[-1]) == pair_of(profile).saved_rate(rows[-1])
    assert bounded_profile(profile) is profile


@given(st.integers(0, 40), st.integers(0, 5000))
def test_a_profile_never_takes_more_bytes_than_it_may(count: int, most_bytes: int):
    profile = SubscriptionProfile(SampledTraffic([SampleBlock(64, 1.0)]), rows_with_bits(count))
    small = bounded_profile(profile, most_bytes)
    assert sum(wire_bytes(row, 64) for row in small.rows) <= most_bytes
    assert small.input_rate == pytest.approx(profile.input_rate)


def test_as_many_samples_as_fit():
    rows = rows_with_bits(2000)
    width = samples_that_fit(rows)
    assert sum(wire_bytes(row, width) for row in rows) <= 4 * 1024 * 1024
    assert sum(wire_bytes(row, width + 64) for row in rows) > 4 * 1024 * 1024
    assert samples_that_fit(rows, 1000) == MIN_SAMPLES
    assert samples_that_fit([], 1000) == 8000
