"""Small fleets with deadlines: topics with a rate, a size and some subscribers, on edges with a limited output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.profile import SubscriptionProfile, profile_rows
from plimsoll.core.policies.model.topic_load import TopicLoad
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.policies.rebalancer import FleetSample
from plimsoll.core.protocol.topic_units import unit_name


@dataclass(frozen=True)
class Topic:
    """A topic of an edge. `rate`: publications per second; `size` in bytes; `required`: its deadline in seconds.

    `remote`: the share of its publications that other clusters accept. `depth` and `delivery` are of its most urgent
    subscriber; without `delivery` it could get twice what comes.
    """

    number: int
    subscribers: int = 1
    rate: float = 10.0
    size: float = 100.0
    required: float = 0.0
    depth: int = 0
    delivery: float | None = None
    remote: float = 0.0
    transmission: float = 0.3

    @property
    def sent(self) -> float:
        """Bytes per second to all of its subscribers."""
        return self.rate * self.size * self.subscribers

    def load(self) -> TopicLoad:
        delivery = 2.0 * self.rate if self.delivery is None else self.delivery
        return TopicLoad(
            self.number, str(self.number), self.subscribers, self.subscribers if self.depth else 0, self.rate,
            self.rate * self.remote, self.rate * self.size, self.rate * self.subscribers, self.sent, self.depth,
            self.rate, delivery, self.required, self.transmission,
        )  # fmt: skip


def unit(edge: str, topic: Topic | int, number: int = 0) -> str:
    """The name of a unit."""
    return unit_name(f"{edge}-{number}", topic if isinstance(topic, int) else topic.number)


def load(edge: str, topics: Sequence[Topic], bandwidth: float, **fields: Any) -> BrokerLoad:
    """What an edge reports that takes in and sends what its topics bring, whether or not it can send it all."""
    came, sent = sum(each.rate for each in topics), sum(each.sent for each in topics)
    found = BrokerLoad(
        name=edge, output_utilization=sent / bandwidth, bandwidth=bandwidth, output_bytes_per_second=sent,
        input_rate=came, output_rate=sum(each.rate * each.subscribers for each in topics),
        input_bytes_per_second=sum(each.rate * each.size for each in topics),
        subscribers=sum(each.subscribers for each in topics),
        subscriptions=sum(each.subscribers for each in topics), match_delay_seconds=1e-6,
        input_utilization=came * 1e-6, topics=tuple(each.load() for each in topics),
    )  # fmt: skip
    return replace(found, **fields)


def profile(edge: str, topics: Sequence[Topic]) -> SubscriptionProfile:
    traffic = SampledTraffic(SampleBlock(1, each.rate, each.size) for each in topics)
    asked = [
        (unit(edge, each, number), f"[topic,=,'{each.number}']", 1 << at, 1)
        for at, each in enumerate(topics) for number in range(each.subscribers)
    ]  # fmt: skip
    return SubscriptionProfile(traffic, profile_rows(asked))


def sample(
    edges: Mapping[str, Sequence[Topic]], bandwidth: Mapping[str, float] | float = 10_000.0,
    staying: Mapping[str, str] | None = None, **fields: Mapping[str, Any],
) -> FleetSample:  # fmt: skip
    """Edges with their topics. `fields`: of the load of an edge, by its name."""
    bytes_per_second = bandwidth if isinstance(bandwidth, Mapping) else dict.fromkeys(edges, bandwidth)
    return FleetSample(
        tuple(load(name, some, bytes_per_second[name], **fields.get(name, {})) for name, some in sorted(edges.items())),
        {name: profile(name, some) for name, some in edges.items()},
        staying or {},
    )
