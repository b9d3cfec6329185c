"""Applications with topics on real heads and edges, and a mediator that divides, moves and releases bundles."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
from tests.core.fleet import Fleet, Mediator

from plimsoll.core.client import Address, Client, ClientLimits, Delivery, GapNotice
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import hash_of_unit
from plimsoll.core.transport.link import LinkLimits

EDGES = ("e1", "e2", "e3")
POLICY: dict[str, Any] = {"type": "Pulsar", "pulsar": {"topicAttribute": "topic", "bundles": {"initial": 2}}}


class Bundled:
    """One cluster, an application `app` and another that publishes. Publications have `topic`, `n` and `price`."""

    def __init__(self, seed: int = 1, policy: dict[str, Any] = POLICY) -> None:
        limits = {"report_seconds": 0.5, "heartbeat_seconds": 0.5, "dead_seconds": 2.0, "lease_seconds": 5.0,
                  "progress_seconds": 0.1}  # fmt: skip
        self.fleet = Fleet(seed, limits)
        self.fleet.cluster("h", list(EDGES))
        for name, config in self.fleet.configs.items():
            self.fleet.configs[name] = msgspec.structs.replace(config, policy=policy)
        self.fleet.start()
        self.fleet.run(1.0)
        own = ClientLimits(link=LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0), backoff_seconds=0.05)
        self.client = Client("app", 7, self.fleet.ids(), [Address("mem://h")], own)
        self.publishing = Client("feed", 7, self.fleet.ids(), [Address("mem://h")], own)
        for client in (self.client, self.publishing):
            client.now = self.fleet.now
            self.fleet.nodes[client.info.name] = client
        self.publisher = self.publishing.publisher("p")
        self.mediator: Mediator = self.fleet.mediator("h")
        self.partition, self.version, self.commands, self.releases = Partition.of_count(2), 0, 0, 0
        self.sent: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.told: dict[str, list[Any]] = defaultdict(list)
        self.since: dict[str, dict[str, int]] = {}
        self.fleet.run(0.5)

    # -- applications

    def subscribe(self, name: str, *topics: str) -> Any:
        """A subscriber of topics; what is published from its acknowledgement on is due to it."""
        subscriber = self.client.subscribers.get(name) or self.client.subscriber(name)
        for topic in topics:
            subscriber.subscribe(f"[topic,=,'{topic}']")
        self.run(until=lambda: subscriber.is_acknowledged)
        self.since.setdefault(name, {}).update({topic: len(self.sent[topic]) for topic in topics})
        return subscriber

    def publish(self, *topics: str) -> None:
        for topic in topics:
            self.sent[topic].append((len(self.sent[topic]) + 1, len(self.sent[topic]) % 10))
            number, price = self.sent[topic][-1]
            self.publisher.publish({"topic": topic, "n": number, "price": price}, sent_us=0)

    def run(self, seconds: float = 0.0, until: Any = None) -> None:
        end = self.fleet.now + (10.0 if until is not None else seconds)
        while self.fleet.now < end and not (until is not None and until()):
            self.fleet.run(0.01)
            self.publishing.take_events()
            for owner, events in self.client.take_events():
                self.told[owner.name] += events
        assert until is None or until()

    def numbers(self, name: str, topic: str) -> list[int]:
        got = (event for event in self.told[name] if isinstance(event, Delivery))
        return [event.attributes["n"] for event in got if event.attributes["topic"] == topic]

    def gaps(self, name: str) -> list[GapNotice]:
        return [event for event in self.told[name] if isinstance(event, GapNotice)]

    def check(self) -> None:
        """Every application has all that is due to it, once and in order by topic."""
        self.run(1.5)
        for name, topics in self.since.items():
            for topic, since in topics.items():
                assert self.numbers(name, topic) == list(range(since + 1, len(self.sent[topic]) + 1)), (name, topic)

    # -- the mediator

    def table(self, assigned: dict[HashRange, str] | None = None, released: tuple[HashRange, ...] = ()) -> None:
        """Tell the head how topics are divided, and what changes."""
        changes = [msg.AssignedBundle(bundle.low, edge) for bundle, edge in (assigned or {}).items()]
        self.releases += bool(released)
        gone = [msg.ReleasedBundle(bundle.low, self.releases) for bundle in released]
        said = msg.BundleTable(1, self.version, list(self.partition.boundaries), changes, gone)
        self.mediator.say_control("h", said)
        self.mediator.say_control("h", said)  # control messages are repeated
        self.run(0.3)

    def split(self, bundle: HashRange) -> None:
        self.partition, self.version = self.partition.split(bundle, (bundle.low + bundle.end) // 2), self.version + 1
        self.table()

    def units(self, edge: str, bundle: HashRange) -> list[str]:
        """The units of a bundle that an edge serves, by the head's table of owners."""
        entries = self.fleet.head().owners.entries.items()
        return sorted(name for name, owner in entries if owner.edge == edge and _is_of(name, bundle))

    def move(self, bundle: HashRange, source: str, target: str) -> None:
        """Assign a bundle to another edge, and hand its units over."""
        self.table({bundle: target})
        self.commands += 1
        plan = msg.HandoverPlan(source, target, "h", self.units(source, bundle), False, 5.0, 3.0)
        for step in ("prepare", "cut"):
            said = msg.Command(
                1, self.fleet.head().epoch, f"1.{self.commands}", step, plan if step == "prepare" else None
            )
            self.mediator.say_control("h", said)
            self.run(0.3)
        self.run(0.5)

    def owner(self, bundle: HashRange) -> str:
        return self.fleet.head().bundles.owners.get(bundle, "")

    def places(self, bundle: HashRange) -> set[str]:
        """The edges that serve units of a bundle."""
        return {edge for edge in EDGES if self.units(edge, bundle)}


def _is_of(name: str, bundle: HashRange) -> bool:
    topic = hash_of_unit(name)
    return topic is not None and bundle.holds(topic)
