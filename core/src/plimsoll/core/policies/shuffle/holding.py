"""One broker while a shuffle is planned: who of its own is still there, who has come, and what it would measure.

What somebody takes is known by samples of the broker that he is at, and for each other broker which of these samples it
takes in already (`Profile.takers`). What those from two brokers share is not known, unless they ask for the same; and
who gives away and takes may lose what newcomers counted on. In both cases the input is overrated, never underrated.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from plimsoll.core.policies.fleet import BrokerLoad, LoadChange, Measures
from plimsoll.core.policies.pair import Alone
from plimsoll.core.policies.profile import Profile, Row


class Holding:
    """`free`: who may go, by row; `staying` names those who may not.

    `gone` and `come` are the names that have been chosen, by row.
    """

    def __init__(self, load: BrokerLoad, profile: Profile, staying: Mapping[str, str]) -> None:
        self.load, self.profile, self.name = load, profile, load.name
        self.rows = {row.key: row for row in profile.rows}
        self.present = {row.key: row.count for row in profile.rows}
        self.free = {row.key: tuple(name for name in row.names if name not in staying) for row in profile.rows}
        self.takers = dict(profile.takers)
        self.guests: set[str] = set()
        self._samples: dict[str, int] = {}
        self._rates: dict[int, float] = {0: 0.0}
        self._each: dict[str, tuple[float, float]] = {}
        self._alone = Alone(profile.rest, profile.rows)
        self._moved = LoadChange()
        self._saved = self._extra = self._regained = 0.0
        self.now: Measures = load.measures

    def copy(self) -> Holding:
        """The same, to try something with."""
        other = copy(self)
        other.present, other.free = dict(self.present), dict(self.free)
        other.guests, other._samples = set(self.guests), dict(self._samples)
        other._alone = self._alone.copy()
        return other

    # -- what a row is

    def rate(self, bits: int) -> float:
        """Publications per second of these samples of this broker."""
        if (known := self._rates.get(bits)) is None:
            known = self._rates[bits] = self.profile.traffic.rate(bits)
        return known

    @property
    def alone(self) -> int:
        """The samples that only one of its own rows matches."""
        return self._alone.samples

    def may_take(self, row: Row) -> bool:
        """Whether it has not given the same away."""
        return row.key not in self.rows or self.present[row.key] == self.rows[row.key].count

    def _input_of(self, row: Row, source: Holding) -> tuple[float, float]:
        """What comes with a row: publications per second that are new here, and such as were taken in before.

        PADRES 2006, eq. 3.
        """
        if row.key in self.guests or self.present.get(row.key):
            return 0.0, 0.0
        bits = row.bits & ~self._samples.get(source.name, 0)
        accepting = source.takers.get(self.name, 0)
        return source.rate(bits & ~accepting), source.rate(bits & accepting)

    # -- what a move would do

    def without(self, row: Row, count: int) -> Measures:
        """If so many of its own went."""
        saved = self._saved + (self.rate(row.bits & self.alone) if count == self.present[row.key] else 0.0)
        return self._foreseen(self._moved.plus(self._weight(row, -count, self)), saved, self._extra, self._regained)

    def with_(self, row: Row, count: int, source: Holding) -> Measures:
        """If so many came from there."""
        extra, regained = self._input_of(row, source)
        moved = self._moved.plus(self._weight(row, count, source))
        return self._foreseen(moved, self._saved, self._extra + extra, self._regained + regained)

    def extra_rate(self, row: Row, source: Holding) -> float:
        """Publications per second that are new here with a row."""
        return self._input_of(row, source)[0]

    def each(self, row: Row) -> tuple[float, float]:
        """Deliveries and bytes per second that one subscriber of a row takes."""
        if (known := self._each.get(row.key)) is None:
            known = self._each[row.key] = (self.rate(row.bits), self.profile.output_bytes_per_second(row))
        return known

    @staticmethod
    def _weight(row: Row, count: int, source: Holding) -> LoadChange:
        rate, sent = source.each(row)
        return LoadChange(count, count * row.subscriptions, 0.0, count * rate, count * sent)

    def _foreseen(self, moved: LoadChange, saved: float, extra: float, regained: float) -> Measures:
        return self.load.foresee(moved._replace(input_rate=_input(saved, extra, regained)))

    # -- moving

    def give(self, row: Row, count: int) -> tuple[str, ...]:
        """So many go, the first by name."""
        if count == self.present[row.key]:
            self._saved += self.rate(row.bits & self.alone)
            self._alone.remove(row)
        self._moved = self._moved.plus(self._weight(row, -count, self))
        self.present[row.key] -= count
        names, self.free[row.key] = self.free[row.key][:count], self.free[row.key][count:]
        self.now = self._foreseen(self._moved, self._saved, self._extra, self._regained)
        return names

    def take(self, row: Row, count: int, source: Holding) -> None:
        """So many come. Who asks for the same here does not go any more."""
        extra, regained = self._input_of(row, source)
        self._extra, self._regained = self._extra + extra, self._regained + regained
        self._moved = self._moved.plus(self._weight(row, count, source))
        if row.key not in self.guests and not self.present.get(row.key):
            self._samples[source.name] = self._samples.get(source.name, 0) | row.bits
        self.guests.add(row.key)
        self.free.pop(row.key, None)
        self.now = self._foreseen(self._moved, self._saved, self._extra, self._regained)

    def predicted(self) -> BrokerLoad:
        """The broker with all that has gone and come."""
        change = self._moved._replace(input_rate=_input(self._saved, self._extra, self._regained))
        return self.load.after(change)


def _input(saved: float, extra: float, regained: float) -> float:
    """What comes in more, at most: of what was given up, newcomers may want as much as they share with it."""
    return extra - saved + min(saved, regained)
