"""What the topics of an edge bring it, and how near their deadlines are. Tao, Poslad, Bigham 2013, IV.B.

Costs are bounded whatever applications publish: topics with a unit here are counted, no others, and of what
publications carry only a few short topics are remembered. Queues of units are looked at once in a report interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.edge.publisher_paths import PathTable
from plimsoll.core.edge.remembered_topics import remember
from plimsoll.core.edge.unit_queue import UnitQueue
from plimsoll.core.policies.model.topic_load import TOPIC_CHARACTERS, TopicLoad, topic_report
from plimsoll.core.policies.model.topic_requirements import TopicRequirements
from plimsoll.core.predicates import Value
from plimsoll.core.predicates.topics import topics_of
from plimsoll.core.protocol.messages import PubOpen
from plimsoll.core.protocol.topic_units import hash_of_unit, topic_hash, topic_text

ORIGINS_OF_A_TOPIC: Final = 64
"""Heads that are remembered to have accepted publications of one topic; with more all heads count."""

PASSED_BY: Final = (AttachmentState.BLOCKED, AttachmentState.CATCHUP, AttachmentState.RESUMING)
"""States in which what the stream has for a unit goes to the log, and comes from there later."""


class EdgeTimes(NamedTuple):
    """What this edge takes beside its queues.

    `head_seconds`: one way from the head. `service_seconds`: from the arrival of a publication to its match.
    """

    head_seconds: float = 0.0
    service_seconds: float = 0.0
    output_bytes_per_second: float | None = None


class TopicCounts:
    """One topic since the last report; `origins`: the heads that have accepted its publications, since ever."""

    __slots__ = ("bytes_in", "bytes_out", "deliveries", "origins", "publications", "remote")

    def __init__(self) -> None:
        self.publications = self.remote = self.deliveries = self.bytes_in = self.bytes_out = 0
        self.origins: dict[str, None] = {}

    def restart(self) -> None:
        """Begin another interval."""
        self.publications = self.remote = self.deliveries = self.bytes_in = self.bytes_out = 0


class TopicMeter:
    """`head`: of this edge's cluster. `topics`: counts of those that have a unit here."""

    def __init__(self, required: TopicRequirements, head: str, now: float) -> None:
        self.required, self.head = required, head
        self.topics: dict[int, TopicCounts] = {}
        self.paths = PathTable()
        self.late: Counter[int] = Counter({0: 0})
        """Late deliveries since the start, of each topic that the policy names, and 0 for all others."""
        self._none = TopicCounts()
        self._of_topic: dict[Value, TopicCounts] = {}
        self._texts: dict[int, str] = {}
        self._since = now

    def note(self, pub: PubOpen, size: int, deliveries: int) -> None:
        """Hot path: count one publication, of this size in bytes, that was delivered so often."""
        topic = pub.body.attributes.get(self.required.attribute)
        if topic is None:
            return
        # `True == 1`, and they are two topics: booleans are never remembered.
        counts = self._of_topic.get(topic) if topic is not True and topic is not False else None
        if counts is None:
            counts = self._find(topic)
        counts.publications += 1
        counts.deliveries += deliveries
        counts.bytes_in += size
        counts.bytes_out += size * deliveries
        if pub.head != self.head:
            counts.remote += 1
        if pub.head not in counts.origins and len(counts.origins) <= ORIGINS_OF_A_TOPIC:
            counts.origins[pub.head] = None

    def _find(self, topic: Value) -> TopicCounts:
        return remember(self._of_topic, topic, self.topics.get(topic_hash(topic), self._none))

    # -- reports

    def report(
        self, served: Iterable[EdgeAttachment], buffered: Mapping[EdgeAttachment, int], times: EdgeTimes, now: float
    ) -> dict[str, Any]:
        """The field of a load report about the interval that ends now.

        `served`: all attachments that this edge serves; `buffered`: messages for each in the buffers of links that do
        not take them all.
        """
        seconds, self._since = max(now - self._since, 1e-9), now
        by_topic: dict[int, list[EdgeAttachment]] = {}
        for attachment in served:
            queue = attachment.unit_queue
            if queue is None:
                topic = hash_of_unit(attachment.subscriber)
                if topic is None:
                    continue
                queue = UnitQueue(topic, attachment.matched, len(attachment.queue) + buffered.get(attachment, 0), now)
                attachment.unit_queue = queue
            else:
                queued = len(attachment.queue) + buffered.get(attachment, 0)
                queue.look(attachment.matched, queued, now, is_passed_by=attachment.state in PASSED_BY)
            by_topic.setdefault(queue.topic, []).append(attachment)
        loads = [self._load(topic, units, times, seconds) for topic, units in by_topic.items()]
        for load in loads:
            if load.late:
                self.late[load.topic if load.topic in self.required.by_topic else 0] += load.late
        self._keep(by_topic)
        return topic_report(loads)

    def _keep(self, by_topic: Mapping[int, Sequence[EdgeAttachment]]) -> None:
        """Count the topics that have units now, and no others."""
        if self.topics.keys() != by_topic.keys():
            self.topics = {topic: self.topics.get(topic) or TopicCounts() for topic in by_topic}
            self._texts = {topic: text for topic, text in self._texts.items() if topic in by_topic}
            self._of_topic.clear()
        for counts in self.topics.values():
            counts.restart()
        self._none.restart()
        self._none.origins.clear()

    def _load(self, topic: int, units: Sequence[EdgeAttachment], times: EdgeTimes, seconds: float) -> TopicLoad:
        counts = self.topics.get(topic) or TopicCounts()
        most_origins = len(counts.origins) > ORIGINS_OF_A_TOPIC
        path = self.paths.longest(topic, None if most_origins else counts.origins, self.head)
        size = counts.bytes_in / counts.publications if counts.publications else 0.0
        departure = size / times.output_bytes_per_second if times.output_bytes_per_second else 0.0
        broker_seconds = path.brokers_seconds + times.service_seconds + departure
        way = path.links_seconds + times.head_seconds
        usual = self.required.by_topic.get(topic, self.required.default_seconds)
        first: EdgeAttachment | None = None
        late, waiting, least = 0, 0, math.inf
        for unit in units:
            queue = unit.unit_queue
            if queue is None:
                continue
            # Its own wish counts, else what the policy says of the topic, else what it says of all.
            required = unit.required_seconds or usual
            allowed = required - way - unit.link.round_trip.seconds / 2 - broker_seconds if required else math.inf
            if queue.left:
                late += queue.late(allowed)
            waiting += queue.depth > 0
            left = allowed - queue.wait_seconds
            if first is None or left < least or (left == least and unit.subscriber < first.subscriber):
                first, least = unit, left
        found = TopicLoad(topic, required_seconds=usual)
        if first is not None and (queue := first.unit_queue) is not None:
            found = TopicLoad(
                topic,
                depth=queue.depth,
                arrival_rate=(counts.publications if queue.is_new else queue.arrived) / seconds,
                delivery_rate=queue.left / seconds,
                required_seconds=first.required_seconds or usual,
                transmission_seconds=way + first.link.rtt_seconds / 2,
                broker_seconds=broker_seconds,
            )
        return _whole(found, counts, seconds, self._text(topic, units), len(units), waiting, late)

    def _text(self, topic: int, units: Sequence[EdgeAttachment]) -> str:
        """The topic as text, from a subscription of one of its units."""
        text = self._texts.get(topic)
        if text is None:
            text = self._texts[topic] = _topic_text(topic, units, self.required.attribute)
        return text


def _whole(
    first: TopicLoad, counts: TopicCounts, seconds: float, text: str, units: int, waiting: int, late: int
) -> TopicLoad:
    return TopicLoad(
        topic=first.topic,
        text=text,
        subscribers=units,
        waiting=waiting,
        input_rate=counts.publications / seconds,
        remote_rate=counts.remote / seconds,
        input_bytes=counts.bytes_in / seconds,
        output_rate=counts.deliveries / seconds,
        output_bytes=counts.bytes_out / seconds,
        depth=first.depth,
        arrival_rate=first.arrival_rate,
        delivery_rate=first.delivery_rate,
        required_seconds=first.required_seconds,
        transmission_seconds=first.transmission_seconds,
        broker_seconds=first.broker_seconds,
        late=late,
    )


def _topic_text(topic: int, units: Sequence[EdgeAttachment], attribute: str) -> str:
    for unit in units:
        for subscription, _ in unit.subscriptions.values():
            for value in topics_of(subscription, attribute):
                if topic_hash(value) == topic:
                    return topic_text(value)[:TOPIC_CHARACTERS]
    return ""
