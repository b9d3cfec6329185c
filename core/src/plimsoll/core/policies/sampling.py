"""Samples of a broker's traffic, and the profile that they make when they are run through its subscriptions.

An estimator (`Press`, `Ring`) only keeps publications. Which subscriptions they match is found when somebody asks: the
hot path pays for an append, and subscriptions may come and go meanwhile. A broker that cannot be away from its stream
for all samples at once advances a `Sampling` by a few at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from plimsoll.core.policies.profile import Profile, Row
from plimsoll.core.policies.traffic import Block, Traffic, union
from plimsoll.core.predicates.subscription import Attributes

Sample = tuple[Attributes, int, float]
"""A publication's attributes, its size in bytes, and when it came."""

Matching = Callable[[Attributes], Iterable[str]]
"""The keys of all rows that a publication matches here, and any other text for each match that is in no row."""

Accepting = Callable[[Attributes], bool]
"""Whether the target takes a publication in already: whether its covering set matches it."""

Takers = Callable[[Attributes], Iterable[str]]
"""Which of several targets take a publication in already."""

MOST_BYTES = 4 * 1024 * 1024
"""What a profile may take on the wire."""

INSTANT = 1e-6
"""What came within so many seconds tells no rate."""

ROW_BYTES = 48
"""What a row takes on the wire at most beside its key, its names and its bits; a name takes a few bytes of its own."""

LEAST_SAMPLES = 512
"""Rather than by fewer samples than this a profile is made to fit by fewer rows."""

LEAST_WIDTH = 4
"""Rather than by fewer samples of each publisher the slowest are put together."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Publications that came one after another, of one publisher or of many, the oldest first.

    `rate`: how many a second there were in the time over which they were counted; `recent`: how many of the last
    samples came within that time.
    """

    rate: float
    samples: tuple[Sample, ...]
    recent: int

    def newest(self, most: int) -> Stretch:
        """The last `most` of them at the same rate."""
        return replace(self, samples=self.samples[-most:], recent=min(self.recent, most))


def thin(stretches: Sequence[Stretch], most: int) -> tuple[Stretch, ...]:
    """At most so many samples of the same traffic: the newest of each stretch, the slowest stretches taken together."""
    most = max(most, 1)
    fast = sorted((each for each in stretches if each.samples), key=lambda each: each.rate, reverse=True)
    if sum(len(each.samples) for each in fast) <= most:
        return tuple(stretches)
    if len(fast) > (own := max(most // LEAST_WIDTH - 1, 0)):
        fast[own:] = [_together(fast[own:])]
    low, high = 1, max(len(each.samples) for each in fast)
    while low < high:
        middle = (low + high + 1) // 2
        fits = sum(min(len(each.samples), middle) for each in fast) <= most
        low, high = (middle, high) if fits else (low, middle - 1)
    return tuple(each.newest(low) for each in fast)


def _together(stretches: Iterable[Stretch]) -> Stretch:
    """One stretch of many, in the order in which they came: each publisher has its share in the newest of them."""
    parts = tuple(stretches)
    samples = sorted((sample for part in parts for sample in part.samples), key=lambda sample: sample[2])
    return Stretch(sum(part.rate for part in parts), tuple(samples), len(samples))


class Sampling:
    """Runs samples through subscriptions, as many at a time as `advance` is told; then `profile` has the answer.

    `rows`: what may be offered to the target, their bits not yet known. What matches and is in no row stays where it is
    and counts as the profile's `rest`.
    """

    def __init__(
        self,
        stretches: Sequence[Stretch],
        rows: Iterable[Row],
        matching: Matching,
        accepting: Accepting,
        takers: Takers = lambda _: (),
    ) -> None:
        self.stretches = tuple(stretches)
        self.rows = tuple(rows)
        self._matching, self._accepting, self._takers = matching, accepting, takers
        self._samples = [sample for stretch in stretches for sample in stretch.samples]
        self._at = 0
        size = (len(self._samples) + 7) // 8
        self._bits = {row.key: bytearray(size) for row in self.rows}
        self._rest, self._matched, self._taken = bytearray(size), bytearray(size), bytearray(size)
        self._taken_by: defaultdict[str, bytearray] = defaultdict(lambda: bytearray(size))

    @property
    def is_done(self) -> bool:
        """Whether all samples have been run through."""
        return self._at == len(self._samples)

    def advance(self, most: int | None = None) -> bool:
        """Run the next samples through, right to left, `most` of them or all; whether that was the last."""
        end = len(self._samples) if most is None else min(self._at + max(most, 1), len(self._samples))
        get, rest = self._bits.get, self._rest
        for at in range(self._at, end):
            attributes = self._samples[at][0]
            byte, bit = at >> 3, 1 << (at & 7)
            for key in self._matching(attributes):
                get(key, rest)[byte] |= bit
                self._matched[byte] |= bit
            if self._accepting(attributes):
                self._taken[byte] |= bit
            for target in self._takers(attributes):
                self._taken_by[target][byte] |= bit
        self._at = end
        return self.is_done

    def profile(self, overhead_bytes: float = 0.0) -> Profile:
        """The profile of all samples. `overhead_bytes`: what a delivery takes on the wire beside the publication.

        Raises:
            ValueError: some samples have not been run through yet.

        """
        if not self.is_done:
            raise ValueError(f"{len(self._samples) - self._at} samples are left: advance until it is done")
        rows = tuple(replace(row, bits=_number(self._bits[row.key])) for row in self.rows)
        taken, rest = _number(self._taken), _number(self._rest)
        takers = tuple((target, _number(self._taken_by[target])) for target in sorted(self._taken_by))
        return Profile(Traffic(self._blocks()), rows, taken, overhead_bytes, rest, takers)

    def _blocks(self) -> Iterable[Block]:
        """A block for each stretch, weighted by what still comes in.

        What matches nothing any more came when the broker asked for more than it does now. It is in the count, so the
        count is reduced to the part of its own time that still matches.
        """
        start, matched = 0, _number(self._matched)
        for stretch in self.stretches:
            width = len(stretch.samples)
            bits = matched >> start & (1 << width) - 1
            whole, recent = bits.bit_count(), (bits >> width - stretch.recent).bit_count()
            rate = stretch.rate * recent / (stretch.recent * whole) if stretch.recent and whole else 0.0
            sizes = sum(size for i, (_, size, _) in enumerate(stretch.samples) if bits >> i & 1)
            yield Block(width, rate, sizes / whole if whole else 0.0)
            start += width


def profile_of(
    stretches: Sequence[Stretch],
    rows: Iterable[Row],
    matching: Matching,
    accepting: Accepting,
    *,
    overhead_bytes: float = 0.0,
) -> Profile:
    """The profile of samples and rows at once."""
    sampling = Sampling(stretches, rows, matching, accepting)
    sampling.advance()
    return sampling.profile(overhead_bytes)


class Estimator(ABC):
    """What keeps samples: of a moment (`Press`) or always (`Ring`)."""

    __slots__ = ()

    @abstractmethod
    def stretches(self, now: float) -> tuple[Stretch, ...]:
        """The samples that there are, each stretch with its rate at this time."""

    def sampling(
        self,
        rows: Sequence[Row],
        matching: Matching,
        accepting: Accepting,
        now: float,
        most_bytes: int = MOST_BYTES,
        takers: Takers = lambda _: (),
    ) -> Sampling:
        """The same as `profile`, to be advanced a few samples at a time; its profile is to be `bounded` at last."""
        return Sampling(thin(self.stretches(now), fitting(rows, most_bytes)), rows, matching, accepting, takers)

    def profile(
        self,
        rows: Sequence[Row],
        matching: Matching,
        accepting: Accepting,
        now: float,
        *,
        overhead_bytes: float = 0.0,
        most_bytes: int = MOST_BYTES,
    ) -> Profile:
        """What each row takes, by eq. 2 and 3, of at most so many bytes on the wire. `rows` come without bits."""
        sampling = self.sampling(rows, matching, accepting, now, most_bytes)
        sampling.advance()
        return bounded(sampling.profile(overhead_bytes), most_bytes)


def wire_bytes(row: Row, width: int) -> int:
    """What a row takes on the wire at most, with so many samples."""
    return ROW_BYTES + len(row.key.encode()) + sum(len(name.encode()) + 5 for name in row.names) + (width + 7) // 8


def fitting(rows: Sequence[Row], most_bytes: int = MOST_BYTES) -> int:
    """How many samples of each row fit, at least `LEAST_SAMPLES`. `bounded` takes rows away where that is too many."""
    free = most_bytes - sum(wire_bytes(row, 0) for row in rows)
    return max(LEAST_SAMPLES, 8 * (free // max(len(rows), 1)))


def bounded(profile: Profile, most_bytes: int = MOST_BYTES) -> Profile:
    """The profile with as many rows as fit: in turn the one that takes most and the one that takes least.

    Those take most that balancing of input and output wants, those least that balancing of matching wants (PADRES 2006,
    5.1 to 5.3). Rows that are left out stay at the source, and are part of the `rest`.
    """
    width = profile.traffic.width
    by_rate = sorted(profile.rows, key=lambda row: (-profile.rate(row), row.key))
    turns = [row for pair in zip(by_rate, reversed(by_rate), strict=True) for row in pair][: len(by_rate)]
    kept: set[str] = set()
    for row in turns:
        most_bytes -= wire_bytes(row, width)
        if most_bytes < 0:
            break
        kept.add(row.key)
    if len(kept) == len(by_rate):
        return profile
    left = union(row.bits for row in profile.rows if row.key not in kept)
    return replace(profile, rows=tuple(row for row in profile.rows if row.key in kept), rest=profile.rest | left)


def _number(bits: bytearray) -> int:
    return int.from_bytes(bits, "little")
