"""One broker while a shuffle is planned: which of its own subscribers remain, which came, and what it would measure.

A subscriber's traffic is known as samples of its own broker, and for each other broker as the part of these samples
that it already takes in (`SubscriptionProfile.takers`). The overlap of subscribers from two brokers is unknown unless
they ask for the same; and a broker that both gives and takes may lose input that newcomers were to share. In both
cases the input is overestimated, never underestimated.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from plimsoll.core.policies.model.broker_pair import UniqueSamples
from plimsoll.core.policies.model.load import BrokerLoad, LoadChange, LoadMeasures
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile


class ShuffledBroker:
    """`free`: the subscribers that may go, by row; `staying` names those that may not.

    `gone` and `come` are the names chosen so far, by row.
    """

    def __init__(self, load: BrokerLoad, profile: SubscriptionProfile, staying: Mapping[str, str]) -> None:
        self.load, self.profile, self.name = load, profile, load.name
        self.rows = {row.key: row for row in profile.rows}
        self.present = {row.key: row.count for row in profile.rows}
        self.free = {row.key: tuple(name for name in row.names if name not in staying) for row in profile.rows}
        self.takers = dict(profile.takers)
        self.guests: set[str] = set()
        self._samples: dict[str, int] = {}
        self._rates: dict[int, float] = {0: 0.0}
        self._each: dict[str, tuple[float, float]] = {}
        self._alone = UniqueSamples(profile.rest, profile.rows)
        self._moved = LoadChange()
        self._saved = self._extra = self._regained = 0.0
        self.now: LoadMeasures = load.measures

    def copy(self) -> ShuffledBroker:
        """An independent copy to try moves on."""
        other = copy(self)
        other.present, other.free = dict(self.present), dict(self.free)
        other.guests, other._samples = set(self.guests), dict(self._samples)
        other._alone = self._alone.copy()
        return other

    # -- rows

    def rate(self, bits: int) -> float:
        """Publications per second that these samples of this broker stand for."""
        if (known := self._rates.get(bits)) is None:
            known = self._rates[bits] = self.profile.traffic.rate(bits)
        return known

    @property
    def alone(self) -> int:
        """The samples that only one of its own rows matches."""
        return self._alone.samples

    def may_take(self, row: ProfileRow) -> bool:
        """Whether this broker has not given away the same row."""
        return row.key not in self.rows or self.present[row.key] == self.rows[row.key].count

    def _input_of(self, row: ProfileRow, source: ShuffledBroker) -> tuple[float, float]:
        """The input of a row in publications per second: the part that is new here, and the part already taken in.

        PADRES 2006, eq. 3.
        """
        if row.key in self.guests or self.present.get(row.key):
            return 0.0, 0.0
        bits = row.bits & ~self._samples.get(source.name, 0)
        accepting = source.takers.get(self.name, 0)
        return source.rate(bits & ~accepting), source.rate(bits & accepting)

    # -- moves

    def without(self, row: ProfileRow, count: int) -> LoadMeasures:
        """What it would measure if `count` of its own subscribers went."""
        saved = self._saved + (self.rate(row.bits & self.alone) if count == self.present[row.key] else 0.0)
        return self._foreseen(self._moved.plus(self._weight(row, -count, self)), saved, self._extra, self._regained)

    def with_(self, row: ProfileRow, count: int, source: ShuffledBroker) -> LoadMeasures:
        """What it would measure if `count` subscribers came from `source`."""
        extra, regained = self._input_of(row, source)
        moved = self._moved.plus(self._weight(row, count, source))
        return self._foreseen(moved, self._saved, self._extra + extra, self._regained + regained)

    def extra_rate(self, row: ProfileRow, source: ShuffledBroker) -> float:
        """Publications per second of a row that are new here."""
        return self._input_of(row, source)[0]

    def each(self, row: ProfileRow) -> tuple[float, float]:
        """Deliveries and bytes per second that one subscriber of a row takes."""
        if (known := self._each.get(row.key)) is None:
            known = self._each[row.key] = (self.rate(row.bits), self.profile.output_bytes_per_second(row))
        return known

    @staticmethod
    def _weight(row: ProfileRow, count: int, source: ShuffledBroker) -> LoadChange:
        rate, sent = source.each(row)
        return LoadChange(count, count * row.subscriptions, 0.0, count * rate, count * sent)

    def _foreseen(self, moved: LoadChange, saved: float, extra: float, regained: float) -> LoadMeasures:
        return self.load.predict(moved._replace(input_rate=_input(saved, extra, regained)))

    # -- changes

    def give(self, row: ProfileRow, count: int) -> tuple[str, ...]:
        """Let `count` subscribers go, the first by name."""
        if count == self.present[row.key]:
            self._saved += self.rate(row.bits & self.alone)
            self._alone.remove(row)
        self._moved = self._moved.plus(self._weight(row, -count, self))
        self.present[row.key] -= count
        names, self.free[row.key] = self.free[row.key][:count], self.free[row.key][count:]
        self.now = self._foreseen(self._moved, self._saved, self._extra, self._regained)
        return names

    def take(self, row: ProfileRow, count: int, source: ShuffledBroker) -> None:
        """Take in `count` subscribers. Those that ask for the same here may no longer go."""
        extra, regained = self._input_of(row, source)
        self._extra, self._regained = self._extra + extra, self._regained + regained
        self._moved = self._moved.plus(self._weight(row, count, source))
        if row.key not in self.guests and not self.present.get(row.key):
            self._samples[source.name] = self._samples.get(source.name, 0) | row.bits
        self.guests.add(row.key)
        self.free.pop(row.key, None)
        self.now = self._foreseen(self._moved, self._saved, self._extra, self._regained)

    def predicted(self) -> BrokerLoad:
        """The broker's load after all changes."""
        change = self._moved._replace(input_rate=_input(self._saved, self._extra, self._regained))
        return self.load.after(change)


def _input(saved: float, extra: float, regained: float) -> float:
    """The most that input can grow: newcomers may need the part of the given-up input that they share."""
    return extra - saved + min(saved, regained)
