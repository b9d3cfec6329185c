"""In which order topics leave an edge that is overloaded. Tao, Poslad, Bigham 2013, IV.C and Table IV.

By where a topic is published: from other clusters only (Sr), from both (Sr-l), from this one only (Sl), or not at all
(Sn). By its queues: none waits (Sempty), some wait (Sw-no), its deadline is in danger (Soverload). Within a group the
topic that may wait longer goes first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Literal

from plimsoll.core.policies.delay_sensitive.fleet import ServedTopic
from plimsoll.core.policies.delay_sensitive.limits import DeadlineMetric

PublisherGroup = Literal["Sr", "Sr-l", "Sl", "Sn"]
QueueGroup = Literal["Sempty", "Sw-no", "Soverload"]

REMOTE_SHARE: Final = 0.001
"""A share of publications below this is none: rates are counted over intervals that begin at other times."""

BY_TRAFFIC: Final[tuple[PublisherGroup, ...]] = ("Sr", "Sr-l", "Sl", "Sn")
BY_QUEUE: Final[tuple[QueueGroup, ...]] = ("Sempty", "Sw-no", "Soverload")


def publisher_group(topic: ServedTopic) -> PublisherGroup:
    """Where its publications are accepted."""
    if not topic.input_rate:
        return "Sn"
    remote = topic.load.remote_rate / topic.input_rate
    if remote < REMOTE_SHARE:
        return "Sl"
    return "Sr" if remote > 1.0 - REMOTE_SHARE else "Sr-l"


def queue_group(topic: ServedTopic, endangered: Collection[int]) -> QueueGroup:
    """Whether its messages wait."""
    if topic.load.topic in endangered:
        return "Soverload"
    return "Sw-no" if topic.load.depth or topic.load.waiting else "Sempty"


def ranked_topics(
    topics: Iterable[ServedTopic], metric: DeadlineMetric, endangered: Collection[int]
) -> list[ServedTopic]:
    """The topics of an edge in the order in which they leave it when this metric is overloaded.

    `endangered`: topics whose deadline is in danger, by hash.
    """

    def place(topic: ServedTopic) -> tuple[int, float, int]:
        if metric == "depth":
            group = BY_QUEUE.index(queue_group(topic, endangered))
        elif metric == "matching":
            group = 0 if publisher_group(topic) == "Sn" else 1
        else:
            group = BY_TRAFFIC.index(publisher_group(topic))
        return group, -topic.load.allowed_seconds, topic.load.topic

    return sorted(topics, key=place)
