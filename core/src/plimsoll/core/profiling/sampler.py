"""Samples of a broker's traffic, and the profile that results from matching them against its subscriptions.

An estimator (`PressEstimator`, `RingEstimator`) only keeps publications; they are matched when a profile is asked for.
So the hot path pays for an append only, and subscriptions may come and go meanwhile. A broker that cannot leave its
stream for all samples at once advances a `ProfileSampler` by a few at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic, union_bits
from plimsoll.core.predicates.subscription import Attributes

TrafficSample = tuple[Attributes, int, float]
"""A publication's attributes, its size in bytes, and when it came."""

MatchFunction = Callable[[Attributes], Iterable[str]]
"""The keys of all rows that a publication matches here, and any other text for each match that is in no row."""

AcceptFunction = Callable[[Attributes], bool]
"""Whether the target receives a publication already: whether its covering set matches it."""

TakersFunction = Callable[[Attributes], Iterable[str]]
"""Which of several targets receive a publication already."""

MAX_PROFILE_BYTES = 4 * 1024 * 1024
"""Bound on the size of a profile on the wire."""

MIN_RATE_SECONDS = 1e-6
"""Shortest time over which a rate is estimated."""

ROW_BYTES = 48
"""Bytes of a row on the wire beside its key, names and bits, at most."""

MIN_SAMPLES = 512
"""A profile that is too large loses samples down to this number, then rows."""

MIN_SAMPLES_PER_PUBLISHER = 4
"""With fewer samples per publisher than this, the slowest publishers are merged."""


@dataclass(frozen=True, slots=True)
class SampleRun:
    """Publications that came one after another, of one publisher or of many, the oldest first.

    `rate`: how many a second there were in the time over which they were counted; `recent`: how many of the last
    samples came within that time.
    """

    rate: float
    samples: tuple[TrafficSample, ...]
    recent: int

    def newest(self, most: int) -> SampleRun:
        """The last `most` of them at the same rate."""
        return replace(self, samples=self.samples[-most:], recent=min(self.recent, most))


def downsampled(stretches: Sequence[SampleRun], most: int) -> tuple[SampleRun, ...]:
    """At most `most` samples of the same traffic: the newest of each stretch, the slowest stretches merged."""
    most = max(most, 1)
    fast = sorted((each for each in stretches if each.samples), key=lambda each: each.rate, reverse=True)
    if sum(len(each.samples) for each in fast) <= most:
        return tuple(stretches)
    if len(fast) > (own := max(most // MIN_SAMPLES_PER_PUBLISHER - 1, 0)):
        fast[own:] = [_merged_run(fast[own:])]
    low, high = 1, max(len(each.samples) for each in fast)
    while low < high:
        middle = (low + high + 1) // 2
        fits = sum(min(len(each.samples), middle) for each in fast) <= most
        low, high = (middle, high) if fits else (low, middle - 1)
    return tuple(each.newest(low) for each in fast)


def _merged_run(stretches: Iterable[SampleRun]) -> SampleRun:
    """Merge stretches in order of arrival: each publisher has its share of the newest samples."""
    parts = tuple(stretches)
    samples = sorted((sample for part in parts for sample in part.samples), key=lambda sample: sample[2])
    return SampleRun(sum(part.rate for part in parts), tuple(samples), len(samples))


class ProfileSampler:
    """Matches samples against subscriptions, a few per `advance`; then `profile` has the result.

    `rows`: what may be offered to the target, without bits. Matches that are in no row stay at the source, and count as
    the profile's `rest`.
    """

    def __init__(
        self,
        stretches: Sequence[SampleRun],
        rows: Iterable[ProfileRow],
        matching: MatchFunction,
        accepting: AcceptFunction,
        takers: TakersFunction = lambda _: (),
    ) -> None:
        self.sample_runs = tuple(stretches)
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
        """Whether all samples have been matched."""
        return self._at == len(self._samples)

    def advance(self, most: int | None = None) -> bool:
        """Match the next samples, right to left, `most` of them or all; returns whether all are done."""
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

    def profile(self, overhead_bytes: float = 0.0) -> SubscriptionProfile:
        """The profile of all samples. `overhead_bytes`: of a delivery on the wire, beside the publication.

        Raises:
            ValueError: some samples have not been matched yet.

        """
        if not self.is_done:
            raise ValueError(f"{len(self._samples) - self._at} samples are left: advance until it is done")
        rows = tuple(replace(row, bits=_number(self._bits[row.key])) for row in self.rows)
        taken, rest = _number(self._taken), _number(self._rest)
        takers = tuple((target, _number(self._taken_by[target])) for target in sorted(self._taken_by))
        return SubscriptionProfile(SampledTraffic(self._blocks()), rows, taken, overhead_bytes, rest, takers)

    def _blocks(self) -> Iterable[SampleBlock]:
        """A block for each stretch, weighted by what still comes in.

        Samples that match nothing any more came when the broker asked for more than it does now. The rate counts them
        too, so it is reduced to the share of recent samples that still match.
        """
        start, matched = 0, _number(self._matched)
        for stretch in self.sample_runs:
            width = len(stretch.samples)
            bits = matched >> start & (1 << width) - 1
            whole, recent = bits.bit_count(), (bits >> width - stretch.recent).bit_count()
            rate = stretch.rate * recent / (stretch.recent * whole) if stretch.recent and whole else 0.0
            sizes = sum(size for i, (_, size, _) in enumerate(stretch.samples) if bits >> i & 1)
            yield SampleBlock(width, rate, sizes / whole if whole else 0.0)
            start += width


class TrafficEstimator(ABC):
    """Keeps samples of publications: for a moment (`PressEstimator`) or always (`RingEstimator`)."""

    __slots__ = ()

    @abstractmethod
    def sample_runs(self, now: float) -> tuple[SampleRun, ...]:
        """The samples, each stretch with its rate at this time."""

    def sampling(
        self,
        rows: Sequence[ProfileRow],
        matching: MatchFunction,
        accepting: AcceptFunction,
        now: float,
        most_bytes: int = MAX_PROFILE_BYTES,
        takers: TakersFunction = lambda _: (),
    ) -> ProfileSampler:
        """Like `profile`, but advanced by the caller, who bounds the result with `bounded_profile`."""
        return ProfileSampler(
            downsampled(self.sample_runs(now), samples_that_fit(rows, most_bytes)), rows, matching, accepting, takers
        )

    def profile(
        self,
        rows: Sequence[ProfileRow],
        matching: MatchFunction,
        accepting: AcceptFunction,
        now: float,
        *,
        overhead_bytes: float = 0.0,
        most_bytes: int = MAX_PROFILE_BYTES,
    ) -> SubscriptionProfile:
        """The load of each row, by PADRES 2006, eq. 2 and 3, in at most `most_bytes`. `rows` come without bits."""
        sampling = self.sampling(rows, matching, accepting, now, most_bytes)
        sampling.advance()
        return bounded_profile(sampling.profile(overhead_bytes), most_bytes)


def wire_bytes(row: ProfileRow, width: int) -> int:
    """Bytes of a row on the wire with `width` samples, at most."""
    return ROW_BYTES + len(row.key.encode()) + sum(len(name.encode()) + 5 for name in row.names) + (width + 7) // 8


def samples_that_fit(rows: Sequence[ProfileRow], most_bytes: int = MAX_PROFILE_BYTES) -> int:
    """Samples that fit with these rows, at least `MIN_SAMPLES`: `bounded_profile` drops rows where that is too many."""
    free = most_bytes - sum(wire_bytes(row, 0) for row in rows)
    return max(MIN_SAMPLES, 8 * (free // max(len(rows), 1)))


def bounded_profile(profile: SubscriptionProfile, most_bytes: int = MAX_PROFILE_BYTES) -> SubscriptionProfile:
    """The profile with as many rows as fit: in turn the row with the most traffic and the one with the least.

    Input and output offloading prefer rows with much traffic, match offloading those with little (PADRES 2006, 5.1 to
    5.3). Rows that are left out stay at the source, and are part of the `rest`.
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
    left = union_bits(row.bits for row in profile.rows if row.key not in kept)
    return replace(profile, rows=tuple(row for row in profile.rows if row.key in kept), rest=profile.rest | left)


def _number(bits: bytearray) -> int:
    return int.from_bytes(bits, "little")
