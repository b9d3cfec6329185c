"""The key space of topic hashes, and its partition into the ranges of bundles. Frozen values.

Boundaries are as in the text: `[0x00000000, 0x80000000, 0xFFFFFFFF]` are two ranges, each without its end, but the last
one with it (Pulsar 2023, "Topics are assigned to brokers at the bundle level").
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from plimsoll.core.protocol.topic_units import HASH_END

BUNDLES_AT_MOST = 1024
"""Bundles that a cluster can have at all, whatever its policy allows."""


@dataclass(frozen=True, slots=True, order=True)
class HashRange:
    """The hashes of one bundle: from `low` to below `high`, and `high` itself if that is the highest hash."""

    low: int
    high: int

    @property
    def name(self) -> str:
        """The name of the bundle, as Pulsar writes it: `0x00000000_0x80000000`."""
        return f"0x{self.low:08x}_0x{self.high:08x}"

    @property
    def end(self) -> int:
        """The first hash beyond the range."""
        return self.high + (self.high == HASH_END)

    def holds(self, topic: int) -> bool:
        """Whether a hash is in this range."""
        return self.low <= topic < self.end

    @classmethod
    def of_name(cls, name: str) -> HashRange:
        """The range of a bundle's name.

        Raises:
            ValueError: it is not the name of a bundle.

        """
        low, _, high = name.partition("_")
        try:
            found = cls(int(low, 16), int(high, 16))
        except ValueError:
            raise ValueError(_not_a_bundle(name)) from None
        if found.name != name.lower() or not 0 <= found.low < found.high <= HASH_END:
            raise ValueError(_not_a_bundle(name))
        return found


def _not_a_bundle(name: str) -> str:
    return f"{name[:60]!r} is not the name of a bundle; write its range, such as 0x00000000_0x80000000"


@dataclass(frozen=True, slots=True)
class Partition:
    """All hashes, divided into ranges: boundaries that rise, from 0 to the highest hash."""

    boundaries: tuple[int, ...]

    def __post_init__(self) -> None:
        some = self.boundaries
        is_rising = all(low < high for low, high in pairwise(some))
        if not 2 <= len(some) <= BUNDLES_AT_MOST + 1 or some[0] != 0 or some[-1] != HASH_END or not is_rising:
            shown = ", ".join(f"0x{each:08x}" for each in some[:4])
            raise ValueError(f"boundaries rise from 0x00000000 to 0xffffffff, at most {BUNDLES_AT_MOST + 1}: {shown}")

    @classmethod
    def of_count(cls, bundles: int) -> Partition:
        """Equal ranges."""
        return cls((*((number << 32) // bundles for number in range(bundles)), HASH_END))

    def __len__(self) -> int:
        return len(self.boundaries) - 1

    @property
    def ranges(self) -> tuple[HashRange, ...]:
        """The ranges in order."""
        return tuple(HashRange(low, high) for low, high in pairwise(self.boundaries))

    def range_of(self, topic: int) -> HashRange:
        """The range that a hash is in, by binary search."""
        at = min(bisect_right(self.boundaries, topic) - 1, len(self) - 1)
        return HashRange(self.boundaries[at], self.boundaries[at + 1])

    def has(self, bundle: HashRange) -> bool:
        """Whether this is one of the ranges."""
        return self.range_of(bundle.low) == bundle

    def split(self, bundle: HashRange, at: int) -> Partition:
        """The partition with one range divided in two; `at` is the first hash of the second half.

        Raises:
            ValueError: it is not one of the ranges, or `at` is not inside it.

        """
        if not self.has(bundle):
            raise ValueError(f"{bundle.name} is not a bundle of this cluster; it may have been split")
        if not bundle.low < at < bundle.high:
            raise ValueError(f"0x{at:08x} is not inside {bundle.name}; a bundle is split between its ends")
        return Partition(tuple(sorted((*self.boundaries, at))))


def partition_of(found: object) -> Partition | None:
    """The partition of boundaries from a store or a message; None if they are none."""
    if not isinstance(found, Iterable) or isinstance(found, str | bytes):
        return None
    some = tuple(found)
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in some):
        return None
    try:
        return Partition(some)
    except ValueError:
        return None
