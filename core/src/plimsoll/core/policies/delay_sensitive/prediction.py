"""The rates of a topic at the next look: those of the last two looks, continued. Tao, Poslad, Bigham 2013, eq. 2.

The text asks for predicted rates and does not say how they are predicted. A rate is continued by one step, and never
below half of what it is or above twice of it: one look that lies far off must not decide alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.topic_correlation import RateHistory
from plimsoll.core.policies.model.topic_load import TopicLoad

TOPICS_REMEMBERED = 64
"""Topics with a deadline of which rates are remembered, for each edge: those whose queues are deepest."""


LEAST_SHARE = 0.1
"""A queue that holds less than this share of what may wait is no danger yet."""


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
    return min(max(0.5 * now, 2.0 * now - before), 2.0 * now)


def depth_threshold(
    topic: TopicLoad, before: Rates | None, balancing_seconds: float, step_seconds: float = 1.0
) -> float:
    """The depth above which the deadline is in danger at the next look, `step_seconds` from this one."""
    rates = next_rates(topic, before)
    return topic.depth_threshold(
        balancing_seconds, arrival_rate=rates.arrival, delivery_rate=rates.delivery, step_seconds=step_seconds
    )


def remembered_rates(load: BrokerLoad) -> dict[str, list[float]]:
    """What a memory keeps of one edge: rates and depth of its topics with a deadline, by hash in hexadecimal digits."""
    some = sorted(
        (each for each in load.topics if each.required_seconds), key=lambda each: (-each.depth, each.topic)
    )[:TOPICS_REMEMBERED]  # fmt: skip
    return {
        f"{each.topic:08x}": [round(each.arrival_rate, 3), round(each.delivery_rate, 3), each.depth] for each in some
    }


def rates_of(memory: Mapping[str, object], edge: str, topic: int) -> Rates | None:
    """The rates of a topic at the look before; None if they are not known. Memory may be of another version."""
    found = _remembered(memory, edge, topic)
    return None if found is None else Rates(found[0], found[1])


def depth_of(memory: Mapping[str, object], edge: str, topic: int) -> float | None:
    """How many messages of a topic waited at the look before; None if that is not known."""
    found = _remembered(memory, edge, topic)
    return None if found is None else found[2]


def _remembered(memory: Mapping[str, object], edge: str, topic: int) -> tuple[float, float, float] | None:
    edges = memory.get("rates")
    topics = edges.get(edge) if isinstance(edges, Mapping) else None
    found = topics.get(f"{topic:08x}") if isinstance(topics, Mapping) else None
    if not isinstance(found, Sequence) or len(found) != 3 or not all(isinstance(each, int | float) for each in found):
        return None
    return float(found[0]), float(found[1]), float(found[2])


def history_of(memory: Mapping[str, object]) -> RateHistory:
    """The rates of topics over the last looks. Memory may be of another version: what cannot be read is left out."""
    found = memory.get("history")
    rows = found.items() if isinstance(found, Mapping) else ()
    return {int(digits, 16): tuple(map(float, series)) for digits, series in rows if _is_series(digits, series)}


def _is_series(digits: object, series: object) -> bool:
    is_hash = isinstance(digits, str) and len(digits) == 8 and set(digits) <= set("0123456789abcdef")
    return is_hash and isinstance(series, Sequence) and all(isinstance(each, int | float) for each in series)


def is_serious(topic: TopicLoad, rates: Rates, depth_before: float | None) -> bool:
    """Whether a queue that is too deep for eq. 2 is a danger that moving topics can avert. Ours.

    An empty queue is none, nor one of which all may wait ten times as long: rates that are off by a message would
    decide. Nor is one of a topic that has just come, as long as nothing has been seen to come or go. One that gets
    shorter is none either, unless its last message comes too late anyway.
    """
    fastest = max(rates.arrival, rates.delivery)
    if not topic.depth or not fastest or topic.depth < LEAST_SHARE * topic.allowed_seconds * fastest:
        return False
    if topic.depth > topic.allowed_seconds * rates.delivery:
        return True
    return rates.arrival > rates.delivery and (depth_before is None or topic.depth >= depth_before)
