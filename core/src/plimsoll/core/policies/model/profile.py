"""The profile of a source's subscribers before some of them move: a row for each set of subscriptions.

Subscribers with the same subscriptions share a row: they weigh the same, and it does not matter which of them moves.
Rows know no time; the profiler decides what the samples of its `SampledTraffic` stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plimsoll.core.policies.model.traffic import SampledTraffic, union_bits


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """Subscribers with the same subscriptions. `key`: these as text; `bits`: the samples that they match.

    `subscriptions`: how many each subscriber has, since a matching engine holds them all. `texts`: the distinct ones in
    canonical form, if the profile was asked for each subscription.
    """

    key: str
    bits: int
    names: tuple[str, ...]
    subscriptions: int = 1
    texts: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Subscribers in this row."""
        return len(self.names)


@dataclass(frozen=True, slots=True)
class SubscriptionProfile:
    """The rows of a source, by key. `accepting`: the samples that the target already takes in."""

    traffic: SampledTraffic
    rows: tuple[ProfileRow, ...]
    accepting: int = 0
    overhead_bytes: float = 0.0
    """Bytes on the wire per delivery, on top of the publication."""
    rest: int = 0
    """The samples matched by subscribers that are in no row, and so stay."""
    takers: tuple[tuple[str, int], ...] = ()
    """With several targets: the samples that each already takes in."""
    each: tuple[tuple[str, int], ...] = ()
    """If it was asked for: the samples that each subscription matches, by its canonical text."""

    @property
    def input_rate(self) -> float:
        """Publications per second that the source takes in for all of its rows and the rest."""
        return self.traffic.rate(self.rest | union_bits(row.bits for row in self.rows))

    def back_end_rows(self) -> Iterator[tuple[ProfileRow, tuple[str, ...]]]:
        """Each row with its back-end subscriptions: distinct texts, or its key if not all of them are known."""
        known = {text for text, _ in self.each}
        for row in self.rows:
            yield row, row.texts if row.texts and known.issuperset(row.texts) else (row.key,)

    def back_end_subscriptions(self) -> Iterator[tuple[str, int]]:
        """All back-end subscriptions of the rows, each with the samples that it matches."""
        known, found = dict(self.each), dict[str, int]()
        for row, texts in self.back_end_rows():
            found |= {text: known.get(text, row.bits) for text in texts}
        yield from sorted(found.items())

    def rate(self, row: ProfileRow) -> float:
        """Publications per second that match a row. PADRES 2006, eq. 2."""
        return self.traffic.rate(row.bits)

    def output_bytes_per_second(self, row: ProfileRow) -> float:
        """Output that one subscriber of a row costs a broker, in bytes per second."""
        return self.traffic.bytes_per_second(row.bits) + self.traffic.rate(row.bits) * self.overhead_bytes


def profile_rows(asked: Iterable[tuple[str, str, int, int]]) -> tuple[ProfileRow, ...]:
    """Rows from (subscriber, its subscriptions as text, bits, number of subscriptions), sorted by key and by name.

    Raises:
        ValueError: two subscribers with the same subscriptions have different bits.

    """
    names: dict[str, list[str]] = {}
    first: dict[str, tuple[int, int]] = {}
    for name, key, bits, subscriptions in sorted(asked):
        if first.setdefault(key, (bits, subscriptions))[0] != bits:
            raise ValueError(f"subscribers {names[key][0]} and {name} both ask for {key!r} and match different samples")
        names.setdefault(key, []).append(name)
    return tuple(ProfileRow(key, first[key][0], tuple(names[key]), first[key][1]) for key in sorted(names))
