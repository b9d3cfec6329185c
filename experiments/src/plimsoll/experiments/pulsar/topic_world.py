"""Topics with rates, and subscribers of them, in a cluster of equal edges: one world for policies of any kind.

Under Pulsar subscribers join as units and go to the edges of their bundles; under other policies they join whole, as
the policy's placer says. Sizes, rates, topics and subscriptions are the same.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from plimsoll.core.policies.model.hash_ranges import HashRange, Partition
from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.core.spec.brokers import head_name
from plimsoll.simulator.queueing.fleet import LinkDelays, QueueingFleet
from plimsoll.simulator.queueing.load_history import LoadHistory, cov
from plimsoll.simulator.queueing.publications import publication_bytes
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber

API: Final = "plimsoll.dev/v1alpha1"
CLUSTER: Final = "topics"
ATTRIBUTE: Final = "topic"
PAYLOAD_BYTES: Final = 200
LINKS: Final = LinkDelays(0.001, 0.01)
REPORT_SECONDS: Final = 5


@dataclass(frozen=True)
class TopicSubscriber:
    """`edge`: where it joins, if that is given and the policy has no bundles."""

    name: str
    topics: tuple[str, ...]
    edge: str = ""


@dataclass(frozen=True)
class TopicWorld:
    """`rates`: steps by topic. `owners`: edges of bundles to begin with, by range; `bandwidth`: of each edge."""

    edges: tuple[str, ...]
    rates: Mapping[str, tuple[RateStep, ...]]
    subscribers: Sequence[TopicSubscriber]
    bandwidth: int
    seconds: float
    joins_over: float = 10.0
    owners: Mapping[HashRange, str] = field(default_factory=dict)

    def traffic(self, seed: int) -> Traffic:
        """A publisher for each topic, whose first publication the seed puts into its first interval."""
        draw = random.Random(f"{seed} topics")
        publishers = [
            TrafficPublisher(
                f"p-{topic}", head_name(CLUSTER), ({ATTRIBUTE: topic},), steps,
                draw.random() / steps[0].per_second, PAYLOAD_BYTES,
            )
            for topic, steps in self.rates.items()
        ]  # fmt: skip
        pause = self.joins_over / len(self.subscribers)
        joined = [
            TrafficSubscriber(
                each.name, CLUSTER, tuple(f"[{ATTRIBUTE},=,'{topic}']" for topic in each.topics), number * pause,
                prefer=each.edge,
            )
            for number, each in enumerate(self.subscribers)
        ]  # fmt: skip
        return Traffic(publishers, joined)


def delivery_bytes(topic: str) -> int:
    """What one delivery of a topic takes of the output."""
    one = TrafficPublisher(f"p-{topic}", head_name(CLUSTER), ({ATTRIBUTE: topic},), ())
    return publication_bytes(one, {ATTRIBUTE: topic}, PAYLOAD_BYTES) + PREFIX_BYTES


def topics_in(bundle: HashRange, count: int, prefix: str) -> list[str]:
    """The first topics of this prefix whose hashes lie in a bundle."""
    found: list[str] = []
    number = 0
    while len(found) < count:
        topic = f"{prefix}{number}"
        if bundle.holds(topic_hash(topic)):
            found.append(topic)
        number += 1
    return found


@dataclass(frozen=True)
class TopicRun:
    """What a run has left behind. Loads are the higher of input and output of an edge."""

    name: str
    loads: LoadHistory
    highest: Sequence[tuple[float, float]]
    moves: Sequence[tuple[float, float]]
    moved: int
    sessions: int
    bundles: int
    mean_delay: float
    late_delay: float
    p99_delay: float
    overload_seconds: float
    published: int
    delivered: int
    pauses: Mapping[str, Any]
    processor_seconds: float
    steady: tuple[float, float]

    @property
    def max_load(self) -> float:
        """The highest load of an edge, as a mean over the steady time."""
        return max(self.loads.means(*self.steady))

    @property
    def cov(self) -> float:
        """Of the same means."""
        return cov(self.loads.means(*self.steady))

    def row(self) -> dict[str, Any]:
        """What a reader compares."""
        return {
            "run": self.name, "moved": self.moved, "sessions": self.sessions, "bundles": self.bundles,
            "max_load": round(self.max_load, 3), "cov": round(self.cov, 3),
            "overload_seconds": round(self.overload_seconds, 1), "delay_mean_seconds": round(self.mean_delay, 4),
            "delay_p99_seconds": round(self.p99_delay, 4), "delay_end_seconds": round(self.late_delay, 4),
            "published": self.published, "delivered": self.delivered, "pauses": dict(self.pauses),
            "processor_seconds": round(self.processor_seconds, 2),
        }  # fmt: skip


STEADY_SHARE: Final = 0.75
"""From this share of a run on, loads count as those that a policy ends with."""


def run_topics(world: TopicWorld, policy: Mapping[str, Any] | None, name: str, seed: int) -> TopicRun:
    """Run a world under a policy to its end."""
    began, loads = time.process_time(), LoadHistory()
    fleet = QueueingFleet(
        resources(world, policy), world.traffic(seed), seed=seed, links=LINKS, on_report=loads.take,
        delay_interval_seconds=10.0, spread_reports=False,
    )  # fmt: skip
    for bundle, edge in world.owners.items():
        fleet.heads[head_name(CLUSTER)].bundles.owners[bundle] = edge
    moves: list[tuple[float, float]] = []
    for at in range(10, int(world.seconds) + 1, 10):
        fleet.run(float(at))
        moves.append((float(at), float(fleet.mediator.moved())))
    steady = (STEADY_SHARE * world.seconds, world.seconds)
    whole, late = fleet.delays.between(0.0, world.seconds), fleet.delays.between(*steady)
    highest = [(float(at), max(loads.means(at - 10.0, float(at)))) for at in range(20, int(world.seconds) + 1, 10)]
    return TopicRun(
        name, loads, highest, moves, fleet.mediator.moved(), len(fleet.mediator.objects),
        len(fleet.heads[head_name(CLUSTER)].bundles.partition), whole.mean or 0.0, late.mean or 0.0,
        whole.percentile(0.99) or 0.0, loads.overloaded_seconds(world.seconds), fleet.counts.published,
        fleet.counts.delivered, fleet.pauses.rows(), time.process_time() - began, steady,
    )  # fmt: skip


def resources(world: TopicWorld, policy: Mapping[str, Any] | None) -> Resources:
    """The fleet: a head without a bound, equal edges whose output is what runs short."""
    defaults = {} if policy is None else {"policy": dict(policy)}
    edges = [{"name": name, "profile": "edge"} for name in world.edges]
    return parse([SourceDocument(each, "<experiment>") for each in (
        {"apiVersion": API, "kind": "BrokerFleet", "metadata": {"name": "experiment"},
         "spec": {"defaults": defaults, "telemetry": {"reportInterval": f"{REPORT_SECONDS}s"}}},
        {"apiVersion": API, "kind": "HardwareProfile", "metadata": {"name": "head"},
         "spec": {"cpu": "1", "memory": "1280Mi"}},
        {"apiVersion": API, "kind": "HardwareProfile", "metadata": {"name": "edge"},
         "spec": {"cpu": "1", "memory": "1280Mi", "bandwidth": {"outputBytesPerSecond": world.bandwidth},
                  "emulation": {"base": "200us", "perSubscription": "1us"}}},
        {"apiVersion": API, "kind": "BrokerCluster", "metadata": {"name": CLUSTER},
         "spec": {"head": {"profile": "head"}, "edges": edges}},
    )])  # fmt: skip


def equal_bundles(count: int) -> tuple[HashRange, ...]:
    """The bundles that a cluster begins with."""
    return Partition.of_count(count).ranges
