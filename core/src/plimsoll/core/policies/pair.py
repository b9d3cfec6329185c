"""Two brokers while moves between them are considered: who is still where, and what either would measure.

Predictions start from what the two reported, corrected where a report cannot know better: an overloaded broker sends
what it can and not what is asked of it, and a broker without subscriptions has no matching delay to learn from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

from plimsoll.core.policies.fleet import RESOURCES, BrokerLoad, LoadChange, Measures, Metric
from plimsoll.core.policies.match_delay import Change, Linear, MatchDelay
from plimsoll.core.policies.parameters import Parameters, Trigger
from plimsoll.core.policies.profile import Profile, Row


@dataclass(frozen=True, slots=True)
class Likened:
    """A broker of which nothing was measured, taken to be like another one that is `factor` times as fast.

    `subscriptions` and `matches`: what it has more than the other, negative if less.
    """

    other: MatchDelay
    subscriptions: int
    matches: float
    factor: float

    @property
    def delay_seconds(self) -> float:
        """As things are."""
        return self.after(Change())

    def after(self, change: Change) -> float:
        """What the other would take with as much, and so many times that."""
        there = Change(self.subscriptions + change.subscriptions, self.matches + change.matches)
        return self.factor * self.other.after(there)


class Prospect(NamedTuple):
    """What both would measure after a move, and what it saves and adds of input, in publications per second."""

    source: Measures
    target: Measures
    saved_rate: float
    extra_rate: float


class Pair:
    """The two brokers, the rows at the source, and what has been chosen so far.

    `staying` names subscribers that may not move, each with the reason. `room`: how many may be chosen yet. `others`:
    what else there is in the fleet, which a move may bring further apart from these two.
    """

    def __init__(
        self,
        source: BrokerLoad,
        target: BrokerLoad,
        profile: Profile,
        parameters: Parameters,
        trigger: Trigger,
        staying: Mapping[str, str],
        most: int | None = None,
        others: Iterable[BrokerLoad] = (),
    ) -> None:
        self.parameters, self.trigger, self.profile = parameters, trigger, profile
        self.source, self.target = calibrated(source, target, profile, parameters)
        self.movable = {row.key: tuple(name for name in row.names if name not in staying) for row in profile.rows}
        self.present = {row.key: row.count for row in profile.rows}
        self.rate = {row.key: profile.rate(row) for row in profile.rows}
        self.bytes = {row.key: profile.output_bytes_per_second(row) for row in profile.rows}
        self.others = tuple(load.measures for load in others if load.name not in (source.name, target.name))
        self.gone, self.come = LoadChange(), LoadChange()
        self.now = Prospect(self.source.measures, self.target.measures, 0.0, 0.0)
        self.accepting = profile.accepting
        self.room = sum(self.present.values()) + 1 if most is None else most
        self._prospects: dict[tuple[str, int], Prospect] = {}
        self._rates: dict[int, float] = {0: 0.0}
        self._alone = Alone(profile.rest, profile.rows)

    # -- what a row is

    def extra_rate(self, row: Row) -> float:
        """Publications per second that come to the target if any of a row goes there. PADRES 2006, eq. 3."""
        return self._rate(row.bits & ~self.accepting)

    def saved_rate(self, row: Row) -> float:
        """Publications per second that the source is spared if all of a row goes."""
        return self._rate(row.bits & self._alone.samples)

    @property
    def alone(self) -> int:
        """The samples that go with the last of some row: nobody else at the source matches them."""
        return self._alone.samples

    def is_covered(self, row: Row) -> bool:
        """Whether the target takes in already all that a row matches, as far as was sampled."""
        return not row.bits & ~self.accepting

    def _rate(self, bits: int) -> float:
        if (known := self._rates.get(bits)) is None:
            known = self._rates[bits] = self.profile.traffic.rate(bits)
        return known

    # -- what a move would do

    def prospect(self, row: Row, count: int) -> Prospect:
        """If so many subscribers of a row went, beside what has been chosen."""
        if (known := self._prospects.get((row.key, count))) is None:
            known = self._prospects[row.key, count] = self._prospect(row, count)
        return known

    def _prospect(self, row: Row, count: int) -> Prospect:
        gone, come = self._changes(row, count)
        return Prospect(
            self.source.foresee(self.gone.plus(gone)),
            self.target.foresee(self.come.plus(come)),
            -gone.input_rate,
            come.input_rate,
        )

    def _changes(self, row: Row, count: int) -> tuple[LoadChange, LoadChange]:
        saved = self.saved_rate(row) if count == self.present[row.key] else 0.0
        rate, sent = count * self.rate[row.key], count * self.bytes[row.key]
        subscriptions = count * row.subscriptions
        gone = LoadChange(-count, -subscriptions, -saved, -rate, -sent)
        return gone, LoadChange(count, subscriptions, self.extra_rate(row), rate, sent)

    def take(self, row: Row, count: int) -> tuple[str, ...]:
        """Choose so many of a row, the first by name. PADRES 2006, 4.1: merged by OR, nothing is sampled anew."""
        gone, come = self._changes(row, count)
        self.now = self.prospect(row, count)
        self.gone, self.come = self.gone.plus(gone), self.come.plus(come)
        self.accepting |= row.bits
        names, self.movable[row.key] = self.movable[row.key][:count], self.movable[row.key][count:]
        self._prospects.clear()
        self.present[row.key] -= count
        self.room -= count
        if not self.present[row.key]:
            self._alone.remove(row)
        return names

    def take_one(self, row: Row, name: str) -> None:
        """Choose this one of a row."""
        names = self.movable[row.key]
        self.movable[row.key] = (name, *(each for each in names if each != name))
        self.take(row, 1)

    # -- how the two compare

    def difference(self, metric: Metric, prospect: Prospect | None = None) -> float:
        """By how much the source is above the target; negative where it is below."""
        at, factor = prospect or self.now, self.parameters.normalization_seconds
        return at.source.of_metric(metric, factor) - at.target.of_metric(metric, factor)

    def higher(self, metric: Metric, prospect: Prospect | None = None) -> float:
        """The metric of the one that has more."""
        at, factor = prospect or self.now, self.parameters.normalization_seconds
        return max(at.source.of_metric(metric, factor), at.target.of_metric(metric, factor))

    def excess(self, metrics: Iterable[Metric], prospect: Prospect | None = None) -> float:
        """By how much the two, and either and any other, differ beyond the triggers: the squares of it, added up."""
        at, factor = prospect or self.now, self.parameters.normalization_seconds
        total = 0.0
        for metric in metrics:
            limit = self.limit(metric)
            one, two = at.source.of_metric(metric, factor), at.target.of_metric(metric, factor)
            total += max(0.0, abs(one - two) - limit) ** 2
            for other in self.others:
                third = other.of_metric(metric, factor)
                total += max(0.0, abs(one - third) - limit) ** 2 + max(0.0, abs(two - third) - limit) ** 2
        return total

    def limit(self, metric: Metric) -> float:
        """By how much the two may differ without being asked to balance."""
        return self.trigger.delay if metric == "match" else self.trigger.ratio

    def overload(self, measures: Measures) -> float:
        """By how much a broker's resources are above their lower overload thresholds, in all."""
        limits = self.parameters.thresholds
        return sum(max(0.0, measures.of_resource(each) - limits.of(each).lower) for each in RESOURCES)

    def predicted(self) -> tuple[BrokerLoad, BrokerLoad]:
        """Both brokers with what has been chosen."""
        return self.source.after(self.gone), self.target.after(self.come)

    @property
    def has_moved(self) -> bool:
        """Whether anything has been chosen."""
        return self.come.subscribers > 0


class Alone:
    """The samples that one row alone matches, and nobody of the rest: what goes with the last of a row.

    Rows are kept in groups, so that when one goes only its group is looked at again.
    """

    def __init__(self, rest: int, rows: Sequence[Row]) -> None:
        self._rest = rest
        size = max(1, math.isqrt(len(rows)))
        self._groups = [{row.key: row.bits for row in rows[at : at + size]} for at in range(0, len(rows), size)]
        self._group_of = {key: number for number, group in enumerate(self._groups) for key in group}
        self._known = [_once_and_twice((bits, 0) for bits in group.values()) for group in self._groups]
        self.samples = self._whole()

    def copy(self) -> Alone:
        """The same, to go on with apart."""
        other = copy(self)
        other._groups, other._known = [dict(group) for group in self._groups], list(self._known)
        return other

    def remove(self, row: Row) -> None:
        """All of a row has gone."""
        number = self._group_of[row.key]
        del self._groups[number][row.key]
        self._known[number] = _once_and_twice((bits, 0) for bits in self._groups[number].values())
        self.samples = self._whole()

    def _whole(self) -> int:
        once, twice = _once_and_twice(self._known)
        return once & ~twice & ~self._rest


def _once_and_twice(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """What any of the parts matches, and what more than one row in them does."""
    once = twice = 0
    for any_of, many_of in parts:
        twice |= many_of | (once & any_of)
        once |= any_of
    return once, twice


def calibrated(
    source: BrokerLoad, target: BrokerLoad, profile: Profile, parameters: Parameters
) -> tuple[BrokerLoad, BrokerLoad]:
    """Both brokers with what the reports leave open filled in, and utilisations that follow from rates and delays."""
    model = source.delay or Linear(source.subscriptions, source.match_delay_seconds)
    if not target.match_delay_seconds and target.delay is None:
        more = target.subscriptions - source.subscriptions
        likened = Likened(model, more, _matches(target) - _matches(source), source.capacity / target.capacity)
        target = replace(target, delay=likened)
    working = min(1.0, source.input_utilization)
    cpu = min(1.0, source.cpu_ratio / working) if working else 1.0
    memory = _memory_per_subscriber(source, target)
    source = replace(
        demanded(source, profile, parameters), cpu_per_input=cpu, memory_per_subscriber=memory, delay=model
    )
    target = replace(target, cpu_per_input=cpu, memory_per_subscriber=memory)
    return source.after(LoadChange()), target.after(LoadChange())


def demanded(source: BrokerLoad, profile: Profile, parameters: Parameters) -> BrokerLoad:
    """An overloaded source with what is asked of it, where that is more than it does."""
    if not parameters.thresholds.above_lower(source.measures):
        return source
    input_rate = max(source.input_rate, profile.input_rate)
    output_rate = sum(profile.rate(row) * row.count for row in profile.rows)
    sent = max(source.output_bytes_per_second, sum(profile.output_bytes_per_second(r) * r.count for r in profile.rows))
    return replace(
        source,
        input_rate=input_rate,
        input_utilization=max(source.input_utilization, input_rate * source.match_delay_seconds),
        output_rate=max(source.output_rate, output_rate),
        output_bytes_per_second=sent,
        output_utilization=sent / source.bandwidth if source.bandwidth else source.output_utilization,
    )


def _memory_per_subscriber(source: BrokerLoad, target: BrokerLoad) -> float:
    """A line through both: what an empty broker takes is the same at either. If that says nothing, in proportion."""
    more, subscribers = source.memory_ratio - target.memory_ratio, source.subscribers - target.subscribers
    if more > 0 and subscribers > 0:
        return more / subscribers
    return source.memory_ratio / source.subscribers if more > 0 and source.subscribers else 0.0


def _matches(load: BrokerLoad) -> float:
    return load.output_rate / load.input_rate if load.input_rate else 0.0
