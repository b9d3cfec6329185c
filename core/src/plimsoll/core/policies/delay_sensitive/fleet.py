"""The fleet that plans are made in: edges with the topics that they serve. Frozen values.

A topic moves whole: every unit at its edge. Only where no edge takes any topic, units go one by one. What a topic takes
in counts once at each edge, however many of its units are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from plimsoll.core.policies.model.broker_pair import likened_loads
from plimsoll.core.policies.model.load import BrokerLoad, LoadChange
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.policies.model.topic_load import TopicLoad, topic_key, topic_of_key
from plimsoll.core.policies.model.traffic import union_bits
from plimsoll.core.policies.rebalancer import FleetSample, Step
from plimsoll.core.protocol.topic_units import hash_of_unit


@dataclass(frozen=True, slots=True)
class UnitLoad:
    """What one unit makes its edge send: publications and bytes per second; and its subscriptions."""

    delivery_rate: float = 0.0
    output_bytes: float = 0.0
    subscriptions: int = 1


@dataclass(frozen=True, slots=True)
class ServedTopic:
    """A topic at an edge, with its units there. `load`: as the edge reports it, without rates if it does not.

    `input_rate` and `input_bytes`: per second, into any edge that serves some of it. `fixed`: units that may not move,
    each with the reason.
    """

    load: TopicLoad
    units: Mapping[str, UnitLoad]
    input_rate: float = 0.0
    input_bytes: float = 0.0
    fixed: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """How plans name it: its text and its hash."""
        return topic_key(self.load)

    @property
    def output_bytes(self) -> float:
        """Bytes per second to all of its units."""
        return sum(unit.output_bytes for unit in self.units.values())

    def of_units(self, names: Iterable[str]) -> ServedTopic:
        """The same topic with some of its units."""
        some = {name: self.units[name] for name in names}
        return replace(self, units=some, load=replace(self.load, subscribers=len(some)))

    def without(self, names: Iterable[str]) -> ServedTopic | None:
        """What is left when units go; None if none is."""
        gone = set(names)
        left = [name for name in self.units if name not in gone]
        return self.of_units(left) if left else None

    def plus(self, other: ServedTopic) -> ServedTopic:
        """Both together, at the edge of this one."""
        units = {**self.units, **other.units}
        return replace(self, units=units, load=replace(self.load, subscribers=len(units)))


Topics = Mapping[int, ServedTopic]


@dataclass(frozen=True)
class DeadlineFleet:
    """`served`: by edge, its topics by hash; `whole`: by edge, how many subscribers without a topic it has.

    `takes`: edges that may take. `start`: what was served before all steps. `away`: edges of another cluster, and how
    many seconds a message takes longer to each of them.
    """

    reports: Mapping[str, BrokerLoad]
    served: Mapping[str, Topics]
    takes: frozenset[str]
    whole: Mapping[str, int] = field(default_factory=dict)
    start: Mapping[str, Topics] | None = None
    away: Mapping[str, float] = field(default_factory=dict)

    @property
    def loads(self) -> tuple[BrokerLoad, ...]:
        """What each edge would report."""
        return tuple(self.load(name) for name in sorted(self.reports))

    def load(self, name: str) -> BrokerLoad:
        """What one edge would report: its last report, and the changes that moved topics make."""
        now, was = self.served[name], (self.start or self.served)[name]
        report = self.reports[name]
        if now is was:
            return report
        change, bytes_in = _change(was, now)
        after = report.after(change)
        into = max(0.0, report.input_bytes_per_second + bytes_in)
        downlink = _ratio(report.downlink_utilization, report.input_bytes_per_second, into, report.downlink_bandwidth)
        freed = max(0.0, report.output_bytes_per_second - after.output_bytes_per_second)
        topics = tuple(_served_faster(one.load, now, freed) for _, one in sorted(now.items()))
        return replace(after, input_bytes_per_second=into, downlink_utilization=downlink, topics=topics)

    def after(self, step: Step) -> DeadlineFleet:
        """The fleet after a step."""
        served = {name: dict(topics) for name, topics in self.served.items()}
        for move in step.moves:
            topic = topic_of_key(move.key)
            held = served[move.source].pop(topic)
            if (left := held.without(move.subscribers)) is not None:
                served[move.source][topic] = left
            moved, there = held.of_units(move.subscribers), served[move.target].get(topic)
            moved = self._brought(moved, move.target) if there is None else moved
            served[move.target][topic] = moved if there is None else there.plus(moved)
        kept = {name: self.served[name] if topics == self.served[name] else topics for name, topics in served.items()}
        return replace(self, served=kept, start=self.start or self.served)

    def _brought(self, topic: ServedTopic, target: str) -> ServedTopic:
        """A topic at an edge that did not have it: nothing waits there, and its messages may have farther to go."""
        seconds = topic.load.transmission_seconds + self.away.get(target, 0.0)
        return replace(topic, load=replace(topic.load, depth=0, waiting=0, transmission_seconds=seconds))


def _change(was: Topics, now: Topics) -> tuple[LoadChange, float]:
    """What has come and gone since `was`, and the bytes per second that come in more."""
    total, bytes_in = LoadChange(), 0.0
    for topic in sorted(was.keys() | now.keys()):
        before, after = was.get(topic), now.get(topic)
        if before is after:
            continue
        for one, sign in ((before, -1), (after, 1)):
            if one is not None:
                total = total.plus(_signed(one, sign))
                bytes_in += sign * one.input_bytes
    return total, bytes_in


def _signed(topic: ServedTopic, sign: int) -> LoadChange:
    units = topic.units.values()
    return LoadChange(
        sign * len(topic.units),
        sign * sum(unit.subscriptions for unit in units),
        sign * topic.input_rate,
        sign * sum(unit.delivery_rate for unit in units),
        sign * topic.output_bytes,
    )


def _ratio(before: float, bytes_before: float, bytes_after: float, bandwidth: float | None) -> float:
    """The use of a link after a change, by its bandwidth, or by what the report implies of it."""
    if bandwidth:
        return bytes_after / bandwidth
    return before * bytes_after / bytes_before if bytes_before else before


def _served_faster(load: TopicLoad, now: Topics, freed: float) -> TopicLoad:
    """A topic once other topics have left its edge: those whose messages wait get what became free of the output.

    Each gets it in proportion to what it sends; what leaves a queue then may be more than what comes.
    """
    if not freed or not load.depth:
        return load
    waiting = sum(_sent(one) for one in now.values() if one.load.depth)
    return replace(load, delivery_rate=load.delivery_rate * (1.0 + freed / waiting)) if waiting else load


def _sent(topic: ServedTopic) -> float:
    """Bytes per second that leave the queues of a topic, where what comes is more."""
    come, go = topic.load.arrival_rate, topic.load.delivery_rate
    return (topic.load.output_bytes or topic.output_bytes) * (min(1.0, go / come) if come else 1.0)


def deadline_fleet(sample: FleetSample) -> DeadlineFleet:
    """The fleet of a sample."""
    served = {load.name: _served(sample.profiles[load.name], load, sample.staying) for load in sample.loads}
    takes = frozenset(served) if sample.takes is None else sample.takes
    reports = {load.name: load for load in likened_loads(sample.loads)}
    whole = {
        name: sum(hash_of_unit(each) is None for row in profile.rows for each in row.names)
        for name, profile in sample.profiles.items()
    }
    return DeadlineFleet(reports, served, takes, whole, away=sample.away)


def _served(profile: SubscriptionProfile, load: BrokerLoad, staying: Mapping[str, str]) -> dict[int, ServedTopic]:
    units: dict[int, dict[str, UnitLoad]] = {}
    bits: dict[int, list[int]] = {}
    for row in profile.rows:
        one = UnitLoad(profile.rate(row), profile.output_bytes_per_second(row), row.subscriptions)
        for name in row.names:
            topic = hash_of_unit(name)
            if topic is not None:
                units.setdefault(topic, {})[name] = one
                bits.setdefault(topic, []).append(row.bits)
    reported = {each.topic: each for each in load.topics}
    found: dict[int, ServedTopic] = {}
    for topic, some in sorted(units.items()):
        known, union = reported.get(topic), union_bits(bits[topic])
        rate, size = profile.traffic.rate(union), profile.traffic.bytes_per_second(union)
        if known is not None and known.input_rate:
            rate, size = known.input_rate, known.input_bytes
        own = replace(known or TopicLoad(topic, input_rate=rate, input_bytes=size), subscribers=len(some))
        fixed = {name: staying[name] for name in some if name in staying}
        found[topic] = ServedTopic(own, dict(sorted(some.items())), rate, size, fixed)
    return found
