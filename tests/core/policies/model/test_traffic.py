"""Traffic: the paper's Table 1, blocks of different weights, and load as a set function."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic, union_bits


def test_the_bits_and_rates_of_table_1():
    """PADRES 2006, 4.1: six samples at 3 publications a second."""
    traffic = SampledTraffic([SampleBlock(width=6, rate=3.0 / 6)])
    stock, above_50, below_5, movies = 0b110111, 0b110000, 0b000001, 0b000000
    cover = union_bits([above_50, below_5, movies])
    assert cover == 0b110001
    assert traffic.rate(stock) == pytest.approx(2.5)
    assert stock & ~cover == 0b000110
    assert traffic.rate(stock & ~cover) == pytest.approx(1.0)
    assert cover | stock == 0b110111


def test_each_block_has_its_own_weight():
    traffic = SampledTraffic([SampleBlock(2, 1.0, 100.0), SampleBlock(0, 9.0), SampleBlock(3, 10.0, 10.0)])
    assert traffic.width == 5
    assert traffic.rate(0b11111) == pytest.approx(32.0)
    assert traffic.rate(0b00100) == pytest.approx(10.0)
    assert traffic.bytes_per_second(0b00101) == pytest.approx(200.0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5))), st.integers(0, 2**40), st.integers(0, 2**40))
def test_what_is_shared_counts_once(blocks: list[tuple[int, int]], a: int, b: int):
    traffic = SampledTraffic([SampleBlock(width, rate) for width, rate in blocks])
    together, shared = traffic.rate(a | b), traffic.rate(a & b)
    assert together == pytest.approx(traffic.rate(a) + traffic.rate(b) - shared)


@pytest.mark.parametrize(
    "block",
    [SampleBlock(-1, 1.0), SampleBlock(1, -1.0), SampleBlock(1, float("nan")), SampleBlock(1, 1.0, float("inf"))],
)
def test_a_block_out_of_range_is_refused(block: SampleBlock):
    with pytest.raises(ValueError, match="a block has"):
        SampledTraffic([block])


def test_samples_that_span_little_time_are_uncertain():
    """64 samples of 1,200/s span 53 ms, and count as half a sample; those of 1/s span a minute, and all count."""
    fast, slow = SampleBlock(64, 1200 / 64, 100.0), SampleBlock(64, 1 / 64, 100.0)
    assert fast.span_seconds == pytest.approx(0.0533, abs=1e-4)
    assert slow.share_uncertainty(32) == 0.0
    assert fast.share_uncertainty(0) == pytest.approx(0.379, abs=0.001)
    assert fast.share_uncertainty(64) == fast.share_uncertainty(0), "all is as uncertain as none"
    assert SampleBlock(0, 5.0).share_uncertainty(0) == 0.0
    assert SampleBlock(8, 0.0).share_uncertainty(4) == 0.0
    traffic = SampledTraffic([slow, fast])
    assert traffic.bytes_uncertainty([(0b1, 3)]) == pytest.approx(3 * 0.379 * 1200 * 100, rel=0.01)
    assert traffic.bytes_uncertainty([(0b1, 3)], 100.0) == pytest.approx(6 * 0.379 * 1200 * 100, rel=0.01)
    assert SampledTraffic([slow]).bytes_uncertainty([(0b1, 3)]) == 0.0
    assert traffic.bytes_uncertainty([]) == 0.0


def test_blocks_are_wrong_each_by_itself():
    fast = SampleBlock(64, 1200 / 64, 100.0)
    one, two = (SampledTraffic([fast] * count).bytes_uncertainty([((1 << 64 * count) - 1, 1)]) for count in (1, 2))
    assert two == pytest.approx(one * 2**0.5)
