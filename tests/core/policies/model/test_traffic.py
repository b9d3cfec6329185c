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
