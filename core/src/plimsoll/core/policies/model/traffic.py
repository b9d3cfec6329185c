"""Sampled traffic, and the part of it that a set of subscriptions matches: bits over weighted samples.

A profile lays the sampled publications side by side in blocks of equal weight: one block of all that came in (PRESS),
or one for each publisher (Ring). A subscription's bits mark the samples that it matches. Load is a set function: the
input that two subscriptions share counts once, so the bits of a set are the OR of its members' bits.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

ALIKE_SECONDS = 0.1
"""Publications of one publisher within this time may be alike, so that together they show as much as one."""


@dataclass(frozen=True, slots=True)
class SampleBlock:
    """`width` samples, each of which stands for `rate` publications a second of `size_bytes` on average."""

    width: int
    rate: float
    size_bytes: float = 0.0

    @property
    def span_seconds(self) -> float:
        """The time in which this number of publications comes."""
        return 1.0 / self.rate if self.rate else math.inf

    def share_uncertainty(self, matched: int) -> float:
        """The standard deviation of the share that matches, if samples span too little time; 0 if they do not.

        They count as one for each `ALIKE_SECONDS`, beside half a match and half a miss that are always assumed.
        """
        count = self.span_seconds / ALIKE_SECONDS
        if not self.width or count >= self.width:
            return 0.0
        share = (count * matched / self.width + 0.5) / (count + 1.0)
        return math.sqrt(share * (1.0 - share) / (count + 1.0))


class SampledTraffic:
    """Blocks of samples, the first in the lowest bits. Rates are publications per second."""

    __slots__ = ("_parts", "_shifts", "blocks", "width")

    def __init__(self, blocks: Iterable[SampleBlock]) -> None:
        self.blocks = tuple(blocks)
        self.width = 0
        parts: list[tuple[int, int, float, float]] = []
        for block in self.blocks:
            if block.width < 0 or not 0.0 <= block.rate < float("inf") or not 0.0 <= block.size_bytes < float("inf"):
                raise ValueError(f"a block has a width, a rate and a size of at least 0, finite: {block}")
            parts.append((self.width, (1 << block.width) - 1, block.rate, block.rate * block.size_bytes))
            self.width += block.width
        self._parts = tuple(part for part in parts if part[1])
        self._shifts = tuple(part[0] for part in self._parts)

    def rate(self, bits: int) -> float:
        """Publications per second that these samples stand for. PADRES 2006, eq. 2."""
        return sum(rate * ((bits >> shift) & mask).bit_count() for shift, mask, rate, _ in self._touched(bits))

    def bytes_per_second(self, bits: int) -> float:
        """Bytes per second of the publications that these samples stand for, each delivered once."""
        return sum(size * ((bits >> shift) & mask).bit_count() for shift, mask, _, size in self._touched(bits))

    def bytes_uncertainty(self, sets: Iterable[tuple[int, int]], overhead_bytes: float = 0.0) -> float:
        """The standard deviation of bytes per second delivered to sets: each its bits, and how many ask for it.

        It covers only the error of samples that span too little time. Errors of sets are taken as equal within a block,
        and as independent between blocks.
        """
        some, start, total = list(sets), 0, 0.0
        for block in self.blocks:
            mask = (1 << block.width) - 1
            each = sum(count * block.share_uncertainty((bits >> start & mask).bit_count()) for bits, count in some)
            total += (each * block.rate * block.width * (block.size_bytes + overhead_bytes)) ** 2
            start += block.width
        return math.sqrt(total)

    def _touched(self, bits: int) -> tuple[tuple[int, int, float, float], ...]:
        """Only the blocks between the lowest and the highest bit: few subscriptions match every publisher's samples."""
        lowest = (bits & -bits).bit_length() - 1
        return self._parts[
            max(0, bisect_right(self._shifts, lowest) - 1) : bisect_right(self._shifts, bits.bit_length() - 1)
        ]


def union_bits(bits: Iterable[int]) -> int:
    """The bits of a set: the samples that any of its members matches."""
    found = 0
    for each in bits:
        found |= each
    return found
