"""A fleet in virtual time whose links have known delays, with applications that publish and subscribe to topics."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec

from plimsoll.core.client import Client, Delivery
from plimsoll.core.config import BrokerHardware, BrokerLimits
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.policies.model.topic_load import TopicLoad, reported_topics
from plimsoll.core.predicates import Value
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.transport.link import LinkLimits
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.network import ConnectionQuality, SimulatedNetwork
from plimsoll.simulator.world.applications import SimulatedApplications, client_limits
from plimsoll.simulator.world.brokers import FleetShape, ObservationJournal, SimulatedFleet

POLICY: dict[str, Any] = {
    "type": "DelaySensitive",
    "delaySensitive": {"topicAttribute": "topic", "topics": [{"name": "fast", "latency": "1s"}]},
}
LIMITS = BrokerLimits(heartbeat_seconds=1.0, dead_seconds=20.0, report_seconds=1.0, progress_seconds=0.25)


class DeadlineWorld:
    """Clusters h0, h1, ... with two edges each; only h0 has the policy, or all do.

    `delays`: one way between two processes; all others are near.
    """

    def __init__(
        self,
        delays: dict[tuple[str, str], float] | None = None,
        hardware: dict[str, BrokerHardware] | None = None,
        policy: dict[str, Any] | None = POLICY,
        *,
        clusters: int = 2,
        is_everywhere: bool = False,
    ) -> None:
        draw = random.Random(1)
        self.schedule = EventQueue()
        self.network = SimulatedNetwork(self.schedule, draw, ConnectionQuality(0.0005, 0.0))
        for pair, seconds in (delays or {}).items():
            self.lengthen(*pair, seconds)
        journal = ObservationJournal(self.schedule)
        shape = FleetShape(clusters=clusters, edges=2)
        self.fleet = SimulatedFleet(
            shape, LIMITS, hardware or {}, self.schedule, self.network, journal, draw, policy=policy
        )
        own = client_limits(LinkLimits(heartbeat_seconds=1.0, dead_seconds=20.0))
        self.applications = SimulatedApplications(self.schedule, self.network, journal, draw, own)
        self.delivered: Counter[tuple[str, str]] = Counter()
        self.published: Counter[str] = Counter()
        self.delays: list[float] = []
        for name, broker in self.fleet.brokers.items():
            if broker.config.cluster != "h0" and not is_everywhere:
                broker.config = msgspec.structs.replace(broker.config, policy=None)
            self.fleet.start(name)
        self.run(3.0)

    def lengthen(self, one: str, other: str, seconds: float) -> None:
        self.network.pair_qualities[frozenset((one, other))] = ConnectionQuality(seconds, 0.0)

    def run(self, seconds: float) -> None:
        self.schedule.run(self.schedule.now + seconds)

    def application(self, name: str, head: str) -> Client:
        """A process of its own."""
        process = self.applications.add(name, head)
        self.applications.start(name)
        client = process.client
        assert client is not None
        process.host.after_poll = lambda: self._take(client)
        return client

    def _take(self, client: Client) -> None:
        for subscriber, events in client.take_events():
            for event in events:
                if isinstance(event, Delivery):
                    self.delivered[subscriber.name, str(event.attributes["topic"])] += 1
                    self.delays.append(self.schedule.now - float(event.attributes["at"]))

    def subscribe(self, client: Client, name: str, *topics: str, **options: float) -> None:
        subscriber = client.subscriber(name)
        for topic in topics:
            subscriber.subscribe(f"[topic,=,'{topic}']", options)
        self.applications.processes[client.info.name].host.wake()

    def publish_at(self, client: Client, name: str, topic: str, rate: float, seconds: float, size: int = 100) -> None:
        """Publish at this rate from now on."""
        host, publisher = self.applications.processes[client.info.name].host, client.publisher(name)

        def once() -> None:
            body: dict[str, Value] = {"topic": topic, "at": self.schedule.now}
            self.published[topic] += 1
            publisher.publish(body, bytes(size), sent_us=int(self.schedule.now * 1e6))
            host.wake()

        for number in range(int(rate * seconds)):
            self.schedule.after(number / rate, once)

    # -- what brokers say

    def edge(self, name: str) -> Edge:
        node = self.fleet.brokers[name].host.node
        assert isinstance(node, Edge)
        return node

    def head(self, name: str = "h0") -> Head:
        node = self.fleet.brokers[name].host.node
        assert isinstance(node, Head)
        return node

    def owner(self, topic: str) -> str:
        return self.head().topics.owners[topic_hash(topic)]

    def load(self, topic: str) -> TopicLoad:
        """The load of a topic, by the last report of its edge."""
        report = self.edge(self.owner(topic)).reporter.last
        return next(each for each in reported_topics(report) if each.text == topic)
