"""What a source tells of its subscribers before some of them move: a row for each set of subscriptions, and who has it.

Subscribers that ask for the same are one row: they weigh the same, and which of them moves does not matter. Rows say
nothing of time; whoever profiles decides what the samples of its `Traffic` stand for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from plimsoll.core.policies.traffic import Traffic, union


@dataclass(frozen=True, slots=True)
class Row:
    """Subscribers that ask for the same. `key`: their subscriptions, written; `bits`: which samples they match.

    `subscriptions`: how many each of them has, for what a matching engine has to hold.
    """

    key: str
    bits: int
    names: tuple[str, ...]
    subscriptions: int = 1

    @property
    def count(self) -> int:
        """Subscribers in this row."""
        return len(self.names)

    def without(self, names: Iterable[str]) -> Row:
        """The row when these have gone."""
        gone = set(names)
        return replace(self, names=tuple(name for name in self.names if name not in gone))


@dataclass(frozen=True, slots=True)
class Profile:
    """The rows of a source, by key; `accepting`: which samples the target takes in already."""

    traffic: Traffic
    rows: tuple[Row, ...]
    accepting: int = 0
    overhead_bytes: float = 0.0
    """What a delivery takes on the wire beside the publication."""
    rest: int = 0
    """Which samples somebody at the source matches who is in no row, and so stays."""
    takers: tuple[tuple[str, int], ...] = ()
    """Of several targets: which samples each takes in already."""

    @property
    def input_rate(self) -> float:
        """Publications per second that the source takes in, for all of its rows and for the rest."""
        return self.traffic.rate(self.rest | union(row.bits for row in self.rows))

    def rate(self, row: Row) -> float:
        """Publications per second that match a row. PADRES 2006, eq. 2."""
        return self.traffic.rate(row.bits)

    def extra_rate(self, row: Row) -> float:
        """Publications per second that the target would take in for this row alone. PADRES 2006, eq. 3."""
        return self.traffic.rate(row.bits & ~self.accepting)

    def saved_rate(self, row: Row) -> float:
        """Publications per second that the source would no longer take in if the whole row went."""
        others = self.rest | union(other.bits for other in self.rows if other.key != row.key)
        return self.traffic.rate(row.bits & ~others)

    def output_bytes_per_second(self, row: Row) -> float:
        """What one subscriber of a row takes of a broker's output, in bytes per second."""
        return self.traffic.bytes_per_second(row.bits) + self.traffic.rate(row.bits) * self.overhead_bytes

    def towards(self, target: str) -> Profile:
        """The profile for one of several targets; of one that is not known all is new to it."""
        return replace(self, accepting=dict(self.takers).get(target, 0))

    def accepted(self, row: Row) -> Profile:
        """The target takes in what this row asks for. PADRES 2006, 4.1: merged by OR, nothing is sampled anew."""
        return replace(self, accepting=self.accepting | row.bits)


def rows_of(asked: Iterable[tuple[str, str, int, int]]) -> tuple[Row, ...]:
    """Rows from (subscriber, what it asks for, bits, subscriptions), sorted by key and by name.

    Raises:
        ValueError: two that ask for the same have different bits.

    """
    names: dict[str, list[str]] = {}
    first: dict[str, tuple[int, int]] = {}
    for name, key, bits, subscriptions in sorted(asked):
        if first.setdefault(key, (bits, subscriptions))[0] != bits:
            raise ValueError(f"subscribers {names[key][0]} and {name} both ask for {key!r} and match different samples")
        names.setdefault(key, []).append(name)
    return tuple(Row(key, first[key][0], tuple(names[key]), first[key][1]) for key in sorted(names))
