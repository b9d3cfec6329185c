"""What each publisher brings a head with each of its topics, and who takes it: edges here, neighbouring heads, or none.

Costs are bounded whatever applications publish: the pairs of a publisher and a topic that are counted in an interval
have a limit, and a topic is known only by its hash.
"""

from __future__ import annotations

from collections.abc import Container, Set
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.core.head.topic_rates import TopicRates
from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad, publisher_report
from plimsoll.core.policies.registry import topic_attribute
from plimsoll.core.predicates import Attributes
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec.types.policy import PolicySpec

PAIRS_AT_MOST: Final = 1024
"""Pairs of a publisher and a topic that are counted between two reports; the first ones are."""


@dataclass(slots=True)
class PublisherTopicCounts:
    """One publisher with one topic since the last report: publications, those that go to edges and to heads, bytes."""

    publications: int = 0
    octets: int = 0
    local: int = 0
    remote: int = 0
    local_octets: int = 0
    remote_octets: int = 0
    toward: str | None = None
    """The neighbour that takes them; empty: several do."""


class PublisherTopics:
    """`attribute`: whose values are topics; empty under a policy without them, and then nothing is counted.

    `uncounted`: publications of pairs beyond the limit, since the start. `rates`: of topics, over the last reports.
    """

    def __init__(self, policy: PolicySpec | None) -> None:
        self.attribute = ""
        self.uncounted = 0
        self.rates = TopicRates()
        self._counts: dict[tuple[str, int | None], PublisherTopicCounts] = {}
        self.take_policy(policy)

    def take_policy(self, policy: PolicySpec | None) -> None:
        """Count by the topics of this policy from now on."""
        attribute = topic_attribute(policy)
        if attribute != self.attribute:
            self.attribute = attribute
            self._counts.clear()
            self.rates.clear()

    def count(
        self, publisher: str, attributes: Attributes, octets: int, keys: Set[str], neighbors: Container[str]
    ) -> None:
        """Count a publication that has been accepted. `keys`: the links that take it; `neighbors`: those of heads."""
        topic = attributes.get(self.attribute)
        pair = publisher, None if topic is None else topic_hash(topic)
        counts = self._counts.get(pair)
        if counts is None:
            if len(self._counts) >= PAIRS_AT_MOST:
                self.uncounted += 1
                return
            counts = self._counts[pair] = PublisherTopicCounts()
        heads = [key for key in keys if key in neighbors]
        remote, local = len(heads), len(keys) - len(heads)
        if remote and counts.toward != "":
            is_same = remote == 1 and counts.toward in (None, heads[0])
            counts.toward = heads[0] if is_same else ""
        counts.publications += 1
        counts.octets += octets
        counts.local += local > 0
        counts.remote += remote > 0
        counts.local_octets += local * octets
        counts.remote_octets += remote * octets

    def report(self, seconds: float) -> dict[str, Any]:
        """Fields of a load report about the last `seconds`. Counting starts over."""
        if not self.attribute:
            return {}
        counted, self._counts = self._counts, {}
        loads = [_load(publisher, topic, counts, seconds) for (publisher, topic), counts in counted.items()]
        self.rates.look(loads)
        return {**publisher_report(loads), "publisher_topics_uncounted": self.uncounted}


def _load(publisher: str, topic: int | None, counts: PublisherTopicCounts, seconds: float) -> PublisherTopicLoad:
    return PublisherTopicLoad(
        publisher,
        topic,
        counts.publications / seconds,
        counts.octets / seconds,
        counts.local / seconds,
        counts.remote / seconds,
        counts.local_octets / seconds,
        counts.remote_octets / seconds,
        counts.toward or "",
    )
