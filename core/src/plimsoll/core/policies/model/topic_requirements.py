"""Which topics a policy defends, and within which time their messages are to be delivered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec.types.policy import PolicySpec


@dataclass(frozen=True, slots=True)
class TopicRequirements:
    """`attribute`: whose values are the topics. `by_topic`: required seconds by hash of the topic.

    `names`: of the topics in `by_topic`.

    `default_seconds`: for topics without their own; 0 if those have no deadline. A subscription may require another
    latency for its subscriber.
    """

    attribute: str
    by_topic: Mapping[int, float] = field(default_factory=dict)
    default_seconds: float = 0.0
    names: Mapping[int, str] = field(default_factory=dict)


def topic_attribute(policy: PolicySpec | None) -> str:
    """The attribute whose values are topics with deadlines; empty under a policy that defends none."""
    found = topic_requirements(policy)
    return "" if found is None else found.attribute


def topic_requirements(policy: PolicySpec | None) -> TopicRequirements | None:
    """What a policy that defends deadlines says of topics; None under any other."""
    own = policy.delay_sensitive if policy is not None and policy.type == "DelaySensitive" else None
    if own is None:
        return None
    by_topic = {topic_hash(each.name): each.latency.seconds for each in own.topics}
    default = own.default_latency.seconds if own.default_latency is not None else 0.0
    names = {topic_hash(each.name): each.name for each in own.topics}
    return TopicRequirements(own.topic_attribute, by_topic, default, names)
