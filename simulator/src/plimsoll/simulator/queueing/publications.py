"""Publications of a run, each with the subscribers that it matches as one number: bit i is subscriber i.

A publication is matched once in a run, by the product's index over all subscriptions. How many of an edge's
subscribers take it is then the number of bits that it has in common with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.core import predicates
from plimsoll.core.matching import Index
from plimsoll.core.policies.model.topic_requirements import TopicRequirements
from plimsoll.core.predicates import Attributes
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import publication_size
from plimsoll.core.protocol.topic_units import topic_hash, topic_text
from plimsoll.simulator.queueing.traffic import TrafficPublisher, TrafficSubscriber


@dataclass(frozen=True, slots=True)
class Content:
    """What a publisher publishes again and again: `size_bytes` on the links between brokers, `mask` as above.

    `topic`: as text, empty without one, and `required_seconds` within which it is to be delivered, infinity without a
    deadline. `opened`: as an edge reads it.
    """

    attributes: Attributes
    size_bytes: int
    mask: int
    opened: msg.PubOpen
    topic: str = ""
    required_seconds: float = math.inf

    @property
    def queue(self) -> int | None:
        """The queue of an output that is shared by topics; None without a topic."""
        return topic_hash(self.topic) if self.topic else None


@dataclass(slots=True, eq=False)
class Publication:
    """One publication. `mask`: that of its content, within reach of the hot path."""

    publisher: str
    content: Content
    sent_at: float
    mask: int


class ContentTable:
    """Contents by publisher, matched when they are published for the first time. `required`: of topics, if any are."""

    def __init__(self, subscribers: Sequence[TrafficSubscriber], required: TopicRequirements | None = None) -> None:
        self.required = required
        self.bits = {subscriber.name: 1 << number for number, subscriber in enumerate(subscribers)}
        self.names = [subscriber.name for subscriber in subscribers]
        self._index: Index = Index(compiled=False)
        self._bit_of: list[int] = []
        for subscriber in subscribers:
            for text in subscriber.subscriptions:
                self._index.add(len(self._bit_of), predicates.parse(text))
                self._bit_of.append(self.bits[subscriber.name])
        self._known: dict[tuple[str, int], Content] = {}
        self._masks: dict[tuple[str, int], int] = {}

    def content(self, publisher: TrafficPublisher, number: int) -> Content:
        """The content of a publisher's `number`-th publication, from 0."""
        key = publisher.name, number % publisher.different_publications
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._matched(publisher, key[1])
        return found

    def _matched(self, publisher: TrafficPublisher, number: int) -> Content:
        key = publisher.name, number % len(publisher.contents)
        attributes = publisher.contents[key[1]]
        mask = self._masks.get(key)
        if mask is None:
            mask = 0
            for found in self._index.match(attributes):
                mask |= self._bit_of[found]
            self._masks[key] = mask
        size_bytes = publication_bytes(publisher, attributes, publisher.size_of_payload(number))
        body = msg.Body(dict(attributes))
        opened = msg.PubOpen(1, publisher.head, 1, 1, publisher.name, 1, 1, 0, 0, body)
        return Content(attributes, size_bytes, mask, opened, *self._deadline(attributes))

    def _deadline(self, attributes: Attributes) -> tuple[str, float]:
        """The topic as text, and within how many seconds it is to be delivered."""
        topic = None if self.required is None else attributes.get(self.required.attribute)
        if self.required is None or topic is None:
            return "", math.inf
        seconds = self.required.by_topic.get(topic_hash(topic), self.required.default_seconds)
        return topic_text(topic), seconds or math.inf

    def members(self, mask: int) -> list[str]:
        """The subscribers of a mask."""
        found = []
        while mask:
            low = mask & -mask
            found.append(self.names[low.bit_length() - 1])
            mask ^= low
        return found


def publication_bytes(publisher: TrafficPublisher, attributes: Attributes, payload_bytes: int) -> int:
    """The size of a publication as it travels between brokers."""
    return publication_size.publication_bytes(publisher.head, publisher.name, attributes, payload_bytes)
