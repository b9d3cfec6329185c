"""Which units ask for a subscription: one for each hash of its topics, each for its part."""

from __future__ import annotations

from plimsoll.core.predicates import Subscription
from plimsoll.core.predicates.topics import for_topic, topics_of
from plimsoll.core.protocol.topic_units import topic_hash

TOPICS_AT_MOST = 64
"""Topics of one subscription that become units; one with more of them is asked for by the rest."""


def topic_parts(subscription: Subscription, attribute: str) -> list[tuple[int, str]]:
    """The hashes of its topics, each with the text that its unit asks for; empty if the rest asks for it."""
    found = topics_of(subscription, attribute)
    if len(found) > TOPICS_AT_MOST:
        return []
    return [(topic_hash(topic), str(for_topic(subscription, attribute, topic))) for topic in found]
