"""Rounds of one policy over topics on edges, counted: a round is a look, a plan, and the plan carried out.

A topic has a rate and a number of subscribers; what an edge sends is the sum over its topics, and its usage is that by
its bandwidth. Partition, table of owners, placers and policies are the product's own. Hand-overs take no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.placement import Placement
from plimsoll.core.policies.bad import Bad
from plimsoll.core.policies.bad.fleet import BadBroker, BadFleet, BadSubscriber
from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.model.bundle_load import BundleLoad
from plimsoll.core.policies.model.hash_ranges import HashRange
from plimsoll.core.policies.model.load import BrokerLoad, LoadChange
from plimsoll.core.policies.pulsar import Pulsar
from plimsoll.core.policies.pulsar.fleet import BundleUnits, PulsarFleet
from plimsoll.core.policies.pulsar.splitting import topics_middle
from plimsoll.core.policies.rebalancer import FleetLook, Memory, Step, Steps
from plimsoll.core.policies.registry import placer_of_spec, rebalancer_of_spec
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec.types.policy import PolicySpec


@dataclass(frozen=True)
class Topics:
    """Publications per second by topic, as its hash; each of `size` bytes for each of its `subscribers`."""

    rates: Mapping[int, float]
    subscribers: Mapping[int, int]
    size: float = 100.0

    def sent(self, topic: int) -> float:
        """Bytes per second that leave the edge of a topic."""
        return self.rates[topic] * self.subscribers[topic] * self.size


@dataclass(frozen=True)
class Round:
    """After a round: usage of each edge, and how many topics and subscribers have moved in it."""

    usage: tuple[float, ...]
    topics_moved: int
    subscribers_moved: int
    bundles: int

    @property
    def highest(self) -> float:
        return max(self.usage)

    @property
    def cov(self) -> float:
        """The standard deviation of the usages over their mean."""
        mean = sum(self.usage) / len(self.usage)
        return (sum((each - mean) ** 2 for each in self.usage) / len(self.usage)) ** 0.5 / mean if mean else 0.0


@dataclass
class TopicRounds:
    """A cluster of equal edges under one policy. `place`: the edge of each topic; `times`: moves of each topic."""

    spec: PolicySpec
    edges: tuple[str, ...]
    bandwidth: float
    topics: Topics
    place: dict[int, str] = field(default_factory=dict)
    times: Counter[int] = field(default_factory=Counter)
    memory: Memory = field(default_factory=dict)
    version: int = -1

    def __post_init__(self) -> None:
        found = rebalancer_of_spec(self.spec)
        if isinstance(found, DelaySensitive):
            raise ValueError("rounds have no queues, by which DelaySensitive decides: choose another policy")
        self.policy = found
        self.bundles, self.placement = Bundles(self.spec), Placement(placer_of_spec(self.spec))
        for edge in self.edges:
            self.placement.add(edge, edge, "")

    def look_up(self) -> None:
        """Every topic without an edge looks one up, in the order of the hashes; bundles by their owner."""
        for topic in sorted(self.topics.rates.keys() - self.place.keys()):
            if self.bundles.is_used:
                found = self.bundles.place(topic, self.placement, ())
            else:
                found = self.placement.place(())
            if found is None:
                raise AssertionError("a cluster with edges places every topic")
            self.place[topic] = found.name

    def put(self, topic: int, edge: str) -> None:
        """A topic begins at an edge, which owns its bundle."""
        self.place[topic] = edge
        if self.bundles.is_used:
            self.bundles.owners[self.bundles.partition.range_of(topic)] = edge

    def loads(self) -> tuple[BrokerLoad, ...]:
        """What every edge would report."""
        return tuple(self._load(edge) for edge in self.edges)

    def _load(self, edge: str) -> BrokerLoad:
        here = [topic for topic, at in self.place.items() if at == edge]
        came = sum(self.topics.rates[topic] for topic in here)
        sent = sum(self.topics.sent(topic) for topic in here)
        return BrokerLoad(
            name=edge, bandwidth=self.bandwidth, output_utilization=sent / self.bandwidth, input_rate=came,
            output_rate=sent / self.topics.size, output_bytes_per_second=sent,
            input_bytes_per_second=came * self.topics.size, subscribers=len(here),
            bundles=tuple(self._bundle_loads(here)) if self.bundles.is_used else (),
        )  # fmt: skip

    def _bundle_loads(self, here: list[int]) -> Iterator[BundleLoad]:
        for bundle, some in self._by_bundle(here).items():
            came, sent = sum(self.topics.rates[each] for each in some), sum(self.topics.sent(each) for each in some)
            sessions = sum(self.topics.subscribers[each] for each in some)
            size = self.topics.size
            yield BundleLoad(bundle, len(some), sessions, topics_middle(some), came, sent / size, came * size, sent)

    def _by_bundle(self, topics: list[int]) -> dict[HashRange, list[int]]:
        found: dict[HashRange, list[int]] = {}
        for topic in sorted(topics):
            found.setdefault(self.bundles.partition.range_of(topic), []).append(topic)
        return found

    def round(self) -> Round:
        """Look, plan, and carry the plan out."""
        loads, policy = self.loads(), self.policy
        owners = {bundle.name: edge for bundle, edge in self.bundles.owners.items()}
        before, moved = dict(self.place), list[int]()
        if policy is not None:
            self.memory = policy.observe(self.memory, FleetLook(loads, 0.0, owners))
            self._divide()
            if policy.wanted(self.memory):
                for step in self._steps(policy, loads):
                    self._take(step)
                moved = [topic for topic, edge in self.place.items() if before[topic] != edge]
                self.times.update(moved)
                if moved:
                    self.memory = policy.after_moves(self.memory)
        self._report()
        usage = tuple(load.output_utilization for load in self.loads())
        subscribers = sum(self.topics.subscribers[topic] for topic in moved)
        return Round(usage, len(moved), subscribers, len(self.bundles.partition))

    def _report(self) -> None:
        """Let the placer hear the loads."""
        for load in self.loads():
            rates = {"input_rate": load.input_rate, "output_rate": load.output_rate, "input_utilization": 0.0}
            own = {"broker": load.name, "subscribers": load.subscribers, "output_utilization": load.output_utilization}
            self.placement.update_load({**rates, **own})

    def _divide(self) -> None:
        """Tell the table of bundles how the policy's memory divides the topics."""
        if isinstance(self.policy, Pulsar):
            parted, version = self.policy.partition(self.memory), int(self.memory.get("version", 0))
            self.bundles.take_table(msg.BundleTable(1, version, list(parted.boundaries)))

    def _steps(self, policy: Pulsar | Bad, loads: tuple[BrokerLoad, ...]) -> Iterator[Step]:
        if isinstance(policy, Pulsar):
            steps: Steps = policy.steps(self._pulsar(policy, loads), self.memory)
        else:
            steps = policy.steps(self._bad(loads), self.memory)
        yield from steps

    def _take(self, step: Step) -> None:
        for move in step.moves:
            for name in move.subscribers:
                self.place[int(name, 16)] = move.target
        for name, edge in step.owners:
            self.bundles.owners[HashRange.of_name(name)] = edge

    def _pulsar(self, policy: Pulsar, loads: tuple[BrokerLoad, ...]) -> PulsarFleet:
        served = {}
        for load in loads:
            by_bundle = self._by_bundle([topic for topic, edge in self.place.items() if edge == load.name])
            served[load.name] = {bundle: self._units(bundle, some) for bundle, some in by_bundle.items()}
        names = self.memory.get("unload", [])
        unload = tuple(each for each in policy.partition(self.memory).ranges if each.name in names)
        reports = {load.name: replace(load, bundles=()) for load in loads}
        return PulsarFleet(reports, served, dict(self.bundles.owners), frozenset(self.edges), unload=unload)

    def _units(self, bundle: HashRange, topics: list[int]) -> BundleUnits:
        came, sent = sum(self.topics.rates[each] for each in topics), sum(self.topics.sent(each) for each in topics)
        change = LoadChange(len(topics), len(topics), came, sent / self.topics.size, sent)
        units = tuple(f"{topic:08x}" for topic in topics)
        return BundleUnits(bundle, units, change, came * self.topics.size + sent)

    def _bad(self, loads: tuple[BrokerLoad, ...]) -> BadFleet:
        """A topic with its subscribers is one subscriber here: what it sends counts once, as all of it moves."""
        data = {f"{topic:08x}": self.topics.sent(topic) for topic in self.topics.rates}
        brokers = {}
        for load in loads:
            here = [f"{topic:08x}" for topic, edge in self.place.items() if edge == load.name]
            some = [BadSubscriber(name, (name,), data[name], name) for name in here]
            brokers[load.name] = BadBroker(load.name, data, {}, {}).plus(some)
        return BadFleet(brokers, {load.name: load for load in loads}, data)


def zipf_topics(count: int, per_second: float, subscribers: int, exponent: float = 1.0, seed: int = 1) -> Topics:
    """Topics whose rates fall as 1, 1/2, 1/3 and so on to this power, together `per_second`."""
    weights = [(number + 1) ** -exponent for number in range(count)]
    rates: dict[int, float] = {}
    for number, weight in enumerate(weights):  # two topics of one hash are one here
        hashed = topic_hash(f"{seed}/{number}")
        rates[hashed] = rates.get(hashed, 0.0) + per_second * weight / sum(weights)
    return Topics(rates, dict.fromkeys(rates, subscribers))
