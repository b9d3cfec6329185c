"""Two brokers while moves between them are considered: which subscribers are where, and what each broker would measure.

Predictions start from the two load reports, corrected where a report is misleading: an overloaded broker
reports what it sends, not what is demanded of it, and one without subscriptions has no matching delay to learn from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

from plimsoll.core.policies.model.load import BrokerLoad, LoadChange, LoadMeasures, Metric
from plimsoll.core.policies.model.match_delay import LinearMatchDelay, MatchDelayModel, MatchLoadChange
from plimsoll.core.policies.model.parameters import BalancingParameters, ImbalanceTrigger
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile

CERTAIN_DEVIATIONS = 2.0
"""A rate is another one if it differs by this many standard deviations."""


@dataclass(frozen=True, slots=True)
class ScaledMatchDelay:
    """The delay of a broker without measurements, modelled on another one and multiplied by `factor`.

    `subscriptions` and `matches`: how many more it has than the other, negative if fewer.
    """

    other: MatchDelayModel
    subscriptions: int
    matches: float
    factor: float

    @property
    def delay_seconds(self) -> float:
        """The matching delay without a change."""
        return self.after(MatchLoadChange())

    def after(self, change: MatchLoadChange) -> float:
        """The other broker's delay under the same load, scaled."""
        there = MatchLoadChange(self.subscriptions + change.subscriptions, self.matches + change.matches)
        return self.factor * self.other.after(there)


class PairPrediction(NamedTuple):
    """What both would measure after a move, and the input that it saves and adds, in publications per second."""

    source: LoadMeasures
    target: LoadMeasures
    saved_rate: float
    extra_rate: float


class BrokerPair:
    """The two brokers, the rows at the source, and what has been chosen so far.

    `staying` names subscribers that may not move, each with the reason. `moves_left`: how many more may be chosen.
    `others`: the loads of the rest of the fleet, since a move may take these two further away from them.
    """

    def __init__(
        self,
        source: BrokerLoad,
        target: BrokerLoad,
        profile: SubscriptionProfile,
        parameters: BalancingParameters,
        trigger: ImbalanceTrigger,
        staying: Mapping[str, str],
        most: int | None = None,
        others: Iterable[BrokerLoad] = (),
    ) -> None:
        self.parameters, self.trigger, self.profile = parameters, trigger, profile
        self.source, self.target = calibrated_loads(source, target, profile, parameters)
        self.movable = {row.key: tuple(name for name in row.names if name not in staying) for row in profile.rows}
        self.present = {row.key: row.count for row in profile.rows}
        self.rate = {row.key: profile.rate(row) for row in profile.rows}
        self.bytes = {row.key: profile.output_bytes_per_second(row) for row in profile.rows}
        self.others = tuple(load.measures for load in others if load.name not in (source.name, target.name))
        self.gone, self.come = LoadChange(), LoadChange()
        self.now = PairPrediction(self.source.measures, self.target.measures, 0.0, 0.0)
        self.accepting = profile.accepting
        self.moves_left = sum(self.present.values()) + 1 if most is None else most
        self._prospects: dict[tuple[str, int], PairPrediction] = {}
        self._rates: dict[int, float] = {0: 0.0}
        self._alone = UniqueSamples(profile.rest, profile.rows)

    # -- rows

    def extra_rate(self, row: ProfileRow) -> float:
        """Publications per second new to the target if any subscriber of a row goes there. PADRES 2006, eq. 3."""
        return self._rate(row.bits & ~self.accepting)

    def saved_rate(self, row: ProfileRow) -> float:
        """Publications per second that the source no longer takes in if the whole row goes."""
        return self._rate(row.bits & self._alone.samples)

    @property
    def alone(self) -> int:
        """The samples that only one row at the source matches: they go with its last subscriber."""
        return self._alone.samples

    def is_covered(self, row: ProfileRow) -> bool:
        """Whether the target already takes in every sample that a row matches."""
        return not row.bits & ~self.accepting

    def _rate(self, bits: int) -> float:
        if (known := self._rates.get(bits)) is None:
            known = self._rates[bits] = self.profile.traffic.rate(bits)
        return known

    # -- moves

    def predict_move(self, row: ProfileRow, count: int) -> PairPrediction:
        """Predict both brokers if `count` subscribers of a row went on top of those already chosen."""
        if (known := self._prospects.get((row.key, count))) is None:
            known = self._prospects[row.key, count] = self._predict(row, count)
        return known

    def _predict(self, row: ProfileRow, count: int) -> PairPrediction:
        gone, come = self._changes(row, count)
        return PairPrediction(
            self.source.predict(self.gone.plus(gone)),
            self.target.predict(self.come.plus(come)),
            -gone.input_rate,
            come.input_rate,
        )

    def _changes(self, row: ProfileRow, count: int) -> tuple[LoadChange, LoadChange]:
        saved = self.saved_rate(row) if count == self.present[row.key] else 0.0
        rate, sent = count * self.rate[row.key], count * self.bytes[row.key]
        subscriptions = count * row.subscriptions
        gone = LoadChange(-count, -subscriptions, -saved, -rate, -sent)
        return gone, LoadChange(count, subscriptions, self.extra_rate(row), rate, sent)

    def choose(self, row: ProfileRow, count: int) -> tuple[str, ...]:
        """Choose `count` of a row, the first by name. PADRES 2006, 4.1: merged by OR, without sampling again."""
        gone, come = self._changes(row, count)
        self.now = self.predict_move(row, count)
        self.gone, self.come = self.gone.plus(gone), self.come.plus(come)
        self.accepting |= row.bits
        names, self.movable[row.key] = self.movable[row.key][:count], self.movable[row.key][count:]
        self._prospects.clear()
        self.present[row.key] -= count
        self.moves_left -= count
        if not self.present[row.key]:
            self._alone.remove(row)
        return names

    def choose_one(self, row: ProfileRow, name: str) -> None:
        """Choose one subscriber of a row by name."""
        names = self.movable[row.key]
        self.movable[row.key] = (name, *(each for each in names if each != name))
        self.choose(row, 1)

    # -- comparison

    def difference(self, metric: Metric, prospect: PairPrediction | None = None) -> float:
        """How far the source is above the target; negative if it is below."""
        at, factor = prospect or self.now, self.parameters.normalization_seconds
        return at.source.of_metric(metric, factor) - at.target.of_metric(metric, factor)

    def higher_metric(self, metric: Metric, prospect: PairPrediction | None = None) -> float:
        """The metric of the broker that has more."""
        at, factor = prospect or self.now, self.parameters.normalization_seconds
        return max(at.source.of_metric(metric, factor), at.target.of_metric(metric, factor))

    def excess(self, metrics: Iterable[Metric], prospect: PairPrediction | None = None) -> float:
        """The sum of squared differences beyond the triggers, between the two and between each and all others."""
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
        """How far the two may differ before balancing is due."""
        return self.trigger.delay if metric == "match" else self.trigger.ratio

    def predicted(self) -> tuple[BrokerLoad, BrokerLoad]:
        """Both brokers as they would be after the chosen moves."""
        return self.source.after(self.gone), self.target.after(self.come)


class UniqueSamples:
    """The samples that exactly one row and no other subscriber matches; they go with the last of that row.

    Rows are kept in groups, so that removing one recomputes only its group.
    """

    def __init__(self, rest: int, rows: Sequence[ProfileRow]) -> None:
        self._rest = rest
        size = max(1, math.isqrt(len(rows)))
        self._groups = [{row.key: row.bits for row in rows[at : at + size]} for at in range(0, len(rows), size)]
        self._group_of = {key: number for number, group in enumerate(self._groups) for key in group}
        self._known = [_once_and_twice((bits, 0) for bits in group.values()) for group in self._groups]
        self.samples = self._whole()

    def copy(self) -> UniqueSamples:
        """An independent copy."""
        other = copy(self)
        other._groups, other._known = [dict(group) for group in self._groups], list(self._known)
        return other

    def remove(self, row: ProfileRow) -> None:
        """All of a row has gone."""
        number = self._group_of[row.key]
        del self._groups[number][row.key]
        self._known[number] = _once_and_twice((bits, 0) for bits in self._groups[number].values())
        self.samples = self._whole()

    def _whole(self) -> int:
        once, twice = _once_and_twice(self._known)
        return once & ~twice & ~self._rest


def _once_and_twice(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The samples that any of the parts matches, and those that more than one row in them matches."""
    once = twice = 0
    for any_of, many_of in parts:
        twice |= many_of | (once & any_of)
        once |= any_of
    return once, twice


def calibrated_loads(
    source: BrokerLoad, target: BrokerLoad, profile: SubscriptionProfile, parameters: BalancingParameters
) -> tuple[BrokerLoad, BrokerLoad]:
    """Both brokers with gaps in the reports filled in, and with utilisations that follow from rates and delays."""
    model, target = _delay_model(source), likened_load(source, target)
    working = min(1.0, source.input_utilization)
    cpu = min(1.0, source.cpu_ratio / working) if working else 1.0
    memory = _memory_per_subscriber(source, target)
    source = replace(
        with_demanded_load(source, profile, parameters), cpu_per_input=cpu, memory_per_subscriber=memory, delay=model
    )
    target = replace(target, cpu_per_input=cpu, memory_per_subscriber=memory)
    return source.after(LoadChange()), target.after(LoadChange())


def likened_loads(loads: Iterable[BrokerLoad]) -> tuple[BrokerLoad, ...]:
    """The loads of a cluster: a broker that has measured no matching delay is like the one that has served most."""
    some = tuple(loads)
    model = max(
        some, key=lambda load: (load.match_delay_seconds > 0.0, load.subscriptions, load.name), default=None
    )  # fmt: skip
    return some if model is None else tuple(load if load is model else likened_load(model, load) for load in some)


def likened_load(source: BrokerLoad, target: BrokerLoad) -> BrokerLoad:
    """A target that takes nothing in has measured no matching delay: it is like the source, scaled by capacity."""
    if target.match_delay_seconds or target.delay is not None:
        return target
    more, matches = target.subscriptions - source.subscriptions, _matches(target) - _matches(source)
    likened = ScaledMatchDelay(_delay_model(source), more, matches, source.capacity / target.capacity)
    return replace(target, delay=likened)


def _delay_model(load: BrokerLoad) -> MatchDelayModel:
    return load.delay or LinearMatchDelay(load.subscriptions, load.match_delay_seconds)


def with_demanded_load(source: BrokerLoad, profile: SubscriptionProfile, parameters: BalancingParameters) -> BrokerLoad:
    """A source with the load demanded of it, if it is overloaded or its profile shows more than its report.

    A report is the mean of some seconds, in which subscribers or publishers may have begun; the profile is of now.
    """
    if not parameters.thresholds.above_lower(source.measures) and not _shows_more(profile, source, parameters):
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


def _shows_more(profile: SubscriptionProfile, source: BrokerLoad, parameters: BalancingParameters) -> bool:
    """Whether the input of a profile is above the reported one by more than both may err by chance."""
    rate, samples = profile.input_rate, max(profile.traffic.width, 1)
    deviation = math.sqrt(rate / parameters.detection_seconds + rate * rate / samples)
    return rate - source.input_rate > CERTAIN_DEVIATIONS * deviation


def _memory_per_subscriber(source: BrokerLoad, target: BrokerLoad) -> float:
    """Memory per subscriber by a line through both brokers, as an empty broker takes the same at either.

    If the source has more memory in use but not more subscribers, its memory is taken to be proportional to them.
    """
    more, subscribers = source.memory_ratio - target.memory_ratio, source.subscribers - target.subscribers
    if more > 0 and subscribers > 0:
        return more / subscribers
    return source.memory_ratio / source.subscribers if more > 0 and source.subscribers else 0.0


def _matches(load: BrokerLoad) -> float:
    return load.output_rate / load.input_rate if load.input_rate else 0.0
