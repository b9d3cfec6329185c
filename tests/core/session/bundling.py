"""A world under Pulsar: edges a, b and c of the cluster east, whose subscribers are units of topics of known rates.

The head has the product's own table of bundles. A bundle that is released is looked up again, half a second later, by
all of its units. Deaths of the mediator between any two effects are the world's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.core.session.aggregating import Aggregating, AggregatingEdge, AggregatingHead
from tests.core.session.balanced import BANDWIDTH, SensingEdge

from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.placement import Placement
from plimsoll.core.policies.model.bundle_load import BundleLoad, report_fields
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition
from plimsoll.core.policies.model.profile import SubscriptionProfile, profile_rows
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.policies.pulsar.splitting import topics_middle
from plimsoll.core.policies.registry import placer_of_spec
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import hash_of_unit, unit_name
from plimsoll.core.session import FleetView
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

PULSAR: dict[str, Any] = {
    "type": "Pulsar",
    "detection": {"interval": "1s", "reportsValidFor": "5s", "stabilizeFor": "4s"},
    "pulsar": {"topicAttribute": "topic", "interval": "2s", "bundles": {"initial": 4, "maximum": 16},
               "shedding": {"history": "0"}},
}  # fmt: skip
STEP_OF_TOPICS = 0x08000000
"""Topics are numbered; their hashes lie this far apart, so that eight of them are in each of four bundles."""


def pulsar(**own: Any) -> PolicySpec:
    return parse_block(PolicySpec, {**PULSAR, "pulsar": {**PULSAR["pulsar"], **own}})


class BundlingEdge(AggregatingEdge):
    """An edge that sends each publication of a topic to each of its units."""

    world: Bundling

    def topics(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for name in sorted(self.world.serves[self.name]):
            topic = hash_of_unit(name)
            if topic is not None:
                found.setdefault(topic, []).append(name)
        return found

    def report(self) -> dict[str, Any]:
        topics, rates = self.topics(), self.world.rates
        sent = sum(rates.get(topic, 0.0) * len(names) for topic, names in topics.items())
        came = sum(rates.get(topic, 0.0) for topic in topics)
        own = {"output_bytes_per_second": sent * 100.0, "input_bytes_per_second": came * 100.0, "input_rate": came,
               "output_rate": sent, "output_utilization": min(1.0, sent * 100.0 / BANDWIDTH)}  # fmt: skip
        own |= {"match_delay_seconds": 0.0, "input_utilization": 0.0}
        return {**SensingEdge.report(self), **own, **report_fields(self.bundles(topics))}

    def bundles(self, topics: dict[int, list[str]]) -> list[BundleLoad]:
        found = []
        for bundle in self.world.head.bundles.partition.ranges:
            here = {topic: names for topic, names in topics.items() if bundle.holds(topic)}
            if here:
                came = sum(self.world.rates.get(topic, 0.0) for topic in here)
                sent = sum(self.world.rates.get(topic, 0.0) * len(names) for topic, names in here.items())
                sessions = sum(len(names) for names in here.values())
                found.append(BundleLoad(bundle, len(here), sessions, topics_middle(here), came, sent,
                                        came * 100.0, sent * 100.0))  # fmt: skip
        return found

    def profile(self, target: str, targets: Sequence[str] = (), *, each: bool = False) -> SubscriptionProfile:
        topics = self.topics()
        known = sorted(topics)
        traffic = SampledTraffic(SampleBlock(1, self.world.rates.get(topic, 0.0), 100.0) for topic in known)
        asked = [(name, f"[topic,=,{topic}]", 1 << at, 1) for at, topic in enumerate(known) for name in topics[topic]]
        asked += [(name, "[n,>,0]", 0, 1) for name in self.world.serves[self.name] if hash_of_unit(name) is None]
        return SubscriptionProfile(traffic, profile_rows(asked))


class BundlingHead(AggregatingHead):
    """A head with the table of bundles."""

    world: Bundling

    def __init__(self, name: str, world: Bundling) -> None:
        super().__init__(name, world)
        self.bundles = Bundles(world.policy)
        self.placement = Placement(placer_of_spec(world.policy))
        self.lookups: list[tuple[float, HashRange]] = []
        self.tables: list[msg.BundleTable] = []
        for edge in "abc":
            self.placement.add(edge, edge, "")

    def on(self, record: Any) -> msg.Outcome | msg.SubscriberPage | None:
        if not isinstance(record, msg.BundleTable):
            return super().on(record)
        self.tables.append(record)
        before = dict(self.bundles.owners)
        if self.bundles.take_table(record):
            gone = before.keys() - self.bundles.owners.keys()
            self.lookups += [(self.world.now + 0.5, bundle) for bundle in gone if self.bundles.partition.has(bundle)]
        return None

    def tick(self) -> list[msg.Outcome]:
        due, self.lookups = (
            [each for each in self.lookups if each[0] <= self.world.now],
            [each for each in self.lookups if each[0] > self.world.now],
        )
        for _, bundle in due:
            for name in sorted(set().union(*(self.world.serves[edge] for edge in "abc"))):
                topic = hash_of_unit(name)
                if topic is not None and bundle.holds(topic):
                    self.world.look_up(name)
        return super().tick()


@dataclass
class Bundling(Aggregating):
    """`rates`: publications per second by topic, as its hash."""

    policy: PolicySpec = field(default_factory=pulsar)
    rates: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.heads["east-head"] = self.head = BundlingHead("east-head", self)
        for name, edge in list(self.edges.items()):
            made = BundlingEdge(name, self)
            made.sensing = type(edge.sensing)(made, edge.sensing.parameters)
            self.edges[name] = made

    def topic(self, number: int, rate: float, subscribers: int, edge: str = "") -> None:
        """A topic with subscribers, who look it up; at an edge that becomes the owner if one is named."""
        hashed = number * STEP_OF_TOPICS
        self.rates[hashed] = rate
        if edge:
            self.head.bundles.owners[self.head.bundles.partition.range_of(hashed)] = edge
        for each in range(subscribers):
            self.look_up(unit_name(f"s{each:03}", hashed))

    def look_up(self, name: str) -> None:
        topic = hash_of_unit(name)
        assert topic is not None
        found = self.head.bundles.place(topic, self.head.placement, ())
        assert found is not None
        self.move(name, found.name)

    def view(self) -> FleetView:
        found = super().view()
        head = replace(found.heads["east-head"], report=self.head.bundles.report())
        return replace(found, heads={**found.heads, "east-head": head})

    @property
    def partition(self) -> Partition:
        """What the head was told."""
        return self.head.bundles.partition

    def places(self, bundle: HashRange) -> set[str]:
        """Edges that serve units of a bundle."""
        return {
            edge for edge in "abc" for name in self.serves[edge]
            if (topic := hash_of_unit(name)) is not None and bundle.holds(topic)
        }  # fmt: skip

    def usage(self) -> list[float]:
        """Output utilisations of a, b and c."""
        return [round(self.edges[name].report()["output_utilization"], 3) for name in "abc"]
