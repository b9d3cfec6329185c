"""The load of brokers as BAD defines it, and the fleet that plans are made in: frozen values.

Subscribers ask for back-end subscriptions k, each with a rate. A broker takes in each of its back-end subscriptions
once, I = sum of rates over distinct ones, and sends it to each subscriber that asks, O = sum over subscribers.
F = I + O.
Two subscriptions are one back-end subscription if their canonical texts are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from plimsoll.core.policies.model.broker_pair import likened_loads
from plimsoll.core.policies.model.load import BrokerLoad, LoadChange
from plimsoll.core.policies.model.traffic import SampledTraffic, union_bits
from plimsoll.core.policies.rebalancer import FleetSample, Step

NO_RATE = (0.0, 0.0)

COMPARED_AT_MOST = 200
"""The most back-end subscriptions that are compared with one another: each load takes some microseconds for each."""


@dataclass(frozen=True, slots=True)
class BadSubscriber:
    """One subscriber: its distinct back-end subscriptions, and u, the sum of their rates.

    `key`: its list as text; `fixed`: why it may not move, empty if it may; `left`: where it should not return.
    """

    name: str
    subscriptions: tuple[str, ...]
    load: float
    key: str = ""
    fixed: str = ""
    left: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BadBroker:
    """A broker with its subscribers.

    `counts`: the subscribers of each of its back-end subscriptions. `capacity`: what F is divided by. `takes`: whether
    others may be sent here.
    """

    name: str
    rates: Mapping[str, float]
    subscribers: Mapping[str, BadSubscriber]
    counts: Mapping[str, int]
    incoming: float = 0.0
    outgoing: float = 0.0
    capacity: float = 1.0
    takes: bool = True

    @property
    def load(self) -> float:
        """F = I + O, by capacity if that is wanted."""
        return (self.incoming + self.outgoing) / self.capacity

    def load_with(self, subscriber: BadSubscriber) -> float:
        """F with one more subscriber."""
        new = sum(self.rates[text] for text in subscriber.subscriptions if not self.counts.get(text))
        return (self.incoming + new + self.outgoing + subscriber.load) / self.capacity

    def load_without(self, subscriber: BadSubscriber) -> float:
        """F without one of its subscribers."""
        saved = sum(self.rates[text] for text in subscriber.subscriptions if self.counts[text] == 1)
        return (self.incoming - saved + self.outgoing - subscriber.load) / self.capacity

    def similarity(self, subscriber: BadSubscriber) -> float:
        """The rates of the back-end subscriptions that a subscriber shares with this broker."""
        return sum(self.rates[text] for text in subscriber.subscriptions if self.counts.get(text))

    def plus(self, subscribers: Iterable[BadSubscriber]) -> BadBroker:
        """This broker with more subscribers."""
        here, counts = dict(self.subscribers), dict(self.counts)
        incoming, outgoing = self.incoming, self.outgoing
        for subscriber in subscribers:
            here[subscriber.name] = subscriber
            outgoing += subscriber.load
            for text in subscriber.subscriptions:
                counts[text] = counts.get(text, 0) + 1
                if counts[text] == 1:
                    incoming += self.rates[text]
        return replace(self, subscribers=here, counts=counts, incoming=incoming, outgoing=outgoing)

    def minus(self, names: Iterable[str]) -> BadBroker:
        """This broker without some of its subscribers."""
        here, counts = dict(self.subscribers), dict(self.counts)
        incoming, outgoing = self.incoming, self.outgoing
        for name in names:
            subscriber = here.pop(name)
            outgoing -= subscriber.load
            for text in subscriber.subscriptions:
                counts[text] -= 1
                if not counts[text]:
                    del counts[text]
                    incoming -= self.rates[text]
        if not here:  # sums of rates leave a rest
            incoming = outgoing = 0.0
        return replace(self, subscribers=here, counts=counts, incoming=incoming, outgoing=outgoing)


@dataclass(frozen=True)
class BadFleet:
    """All brokers by name, and the reports that predictions start from.

    `message_rates`: publications per second of each back-end subscription. `samples`: of each broker the samples that
    each back-end subscription matches; empty if there are too many subscriptions to compare them.
    """

    brokers: Mapping[str, BadBroker]
    reports: Mapping[str, BrokerLoad]
    message_rates: Mapping[str, float]
    most: int | None = None
    start: Mapping[str, BadBroker] | None = None
    samples: tuple[tuple[SampledTraffic, Mapping[str, int]], ...] = field(default=(), compare=False)

    @property
    def loads(self) -> tuple[BrokerLoad, ...]:
        """What each broker would report: its last report, and the change that the subscribers make."""
        return tuple(self.load_of(self.brokers[name]) for name in sorted(self.brokers))

    def load_of(self, now: BadBroker) -> BrokerLoad:
        """What a broker of this fleet would report with the subscribers that it has here."""
        report, was = self.reports[now.name], (self.start or self.brokers)[now.name]
        change = LoadChange(
            len(now.subscribers) - len(was.subscribers),
            _subscriptions(now) - _subscriptions(was),
            self._incoming(now.counts) - self._incoming(was.counts),
            self._outgoing(now.counts) - self._outgoing(was.counts),
            now.outgoing - was.outgoing,
        )
        return report if now is was else report.after(change)

    def _outgoing(self, counts: Mapping[str, int]) -> float:
        return sum(self.message_rates[text] * counts[text] for text in sorted(counts))

    def _incoming(self, counts: Mapping[str, int]) -> float:
        """Publications per second that match any of these, each once.

        Where no broker has samples of all of them, the least that one's samples allow; without samples their sum.
        """
        whole = sum(self.message_rates[text] for text in sorted(counts))
        return min((self._matching(counts, *some) for some in self.samples), default=whole)

    def _matching(self, counts: Mapping[str, int], traffic: SampledTraffic, known: Mapping[str, int]) -> float:
        bits = union_bits(known[text] for text in counts if text in known)
        return traffic.rate(bits) + sum(self.message_rates[text] for text in sorted(counts) if text not in known)

    def after(self, step: Step) -> BadFleet:
        """The fleet after a step."""
        brokers = dict(self.brokers)
        leaving: dict[str, list[str]] = {}
        coming: dict[str, list[BadSubscriber]] = {}
        for move in step.moves:
            leaving.setdefault(move.source, []).extend(move.subscribers)
            people = self.brokers[move.source].subscribers
            coming.setdefault(move.target, []).extend(people[name] for name in move.subscribers)
        for name, names in leaving.items():
            brokers[name] = brokers[name].minus(names)
        for name, some in coming.items():
            brokers[name] = brokers[name].plus(some)
        return replace(self, brokers=brokers, start=self.start or self.brokers)


def _subscriptions(broker: BadBroker) -> int:
    return sum(broker.counts.values())


def bad_fleet(sample: FleetSample, *, by_capacity: bool = False) -> BadFleet:
    """The fleet of a sample. A rate is the highest that any broker has measured: one that lags measures too little."""
    rates: dict[str, tuple[float, float]] = {}
    samples = tuple((each.traffic, dict(each.back_end_subscriptions())) for _, each in sorted(sample.profiles.items()))
    for profile in sample.profiles.values():
        for text, bits in profile.back_end_subscriptions():
            found = profile.traffic.bytes_per_second(bits), profile.traffic.rate(bits)
            rates[text] = max(rates.get(text, NO_RATE), found)
    data = {text: rate for text, (rate, _) in rates.items()}
    brokers = {}
    for load in sample.loads:
        capacity, takes = load.capacity if by_capacity else 1.0, sample.takes is None or load.name in sample.takes
        members = (
            BadSubscriber(
                name, texts, sum(data[text] for text in texts), row.key, sample.staying.get(name, ""),
                sample.left.get(name, frozenset()),
            )
            for row, texts in sample.profiles[load.name].back_end_rows() for name in row.names
        )  # fmt: skip
        brokers[load.name] = BadBroker(load.name, data, {}, {}, capacity=capacity, takes=takes).plus(members)
    reports = {load.name: load for load in likened_loads(sample.loads)}
    messages = {text: rate for text, (_, rate) in rates.items()}
    return BadFleet(brokers, reports, messages, sample.most, samples=samples if len(rates) <= COMPARED_AT_MOST else ())
