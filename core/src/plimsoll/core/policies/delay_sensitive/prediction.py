"""The rates of a topic at the next look: those of the last two looks, continued. Tao, Poslad, Bigham 2013, eq. 2.

The text asks for predicted rates and does not say how they are predicted. A rate is continued by one step, and never
below 0 or above twice what it is: one look that lies far off must not decide alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.topic_load import TopicLoad

TOPICS_REMEMBERED = 64
"""Topics with a deadline of which rates are remembered, for each edge: those whose queues are deepest."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What comes into the queue of a topic's most urgent subscriber, and what leaves it, per second."""

    arrival: float
    delivery: float


def next_rates(topic: TopicLoad, before: Rates | None) -> Rates:
    """The rates that the next look is expected to have."""
    if before is None:
        return Rates(topic.arrival_rate, topic.delivery_rate)
    return Rates(
        _continued(before.arrival, topic.arrival_rate), _continued(before.delivery, topic.delivery_rate)
    )  # fmt: skip


def _continued(before: float, now: float) -> float:
    return min(max(0.0, 2.0 * now - before), 2.0 * now)


def depth_threshold(topic: TopicLoad, before: Rates | None, balancing_seconds: float) -> float:
    """The depth above which the deadline is in danger at the next look."""
    rates = next_rates(topic, before)
    return topic.depth_threshold(balancing_seconds, arrival_rate=rates.arrival, delivery_rate=rates.delivery)


def remembered_rates(load: BrokerLoad) -> dict[str, list[float]]:
    """What a memory keeps of one edge: the rates of its topics with a deadline, by hash in hexadecimal digits."""
    some = sorted(
        (each for each in load.topics if each.required_seconds), key=lambda each: (-each.depth, each.topic)
    )[:TOPICS_REMEMBERED]  # fmt: skip
    return {f"{each.topic:08x}": [round(each.arrival_rate, 3), round(each.delivery_rate, 3)] for each in some}


def rates_of(memory: Mapping[str, object], edge: str, topic: int) -> Rates | None:
    """The rates of a topic at the look before; None if they are not known. Memory may be of another version."""
    edges = memory.get("rates")
    topics = edges.get(edge) if isinstance(edges, Mapping) else None
    found = topics.get(f"{topic:08x}") if isinstance(topics, Mapping) else None
    if not isinstance(found, Sequence) or len(found) != 2 or not all(isinstance(each, int | float) for each in found):
        return None
    return Rates(float(found[0]), float(found[1]))
