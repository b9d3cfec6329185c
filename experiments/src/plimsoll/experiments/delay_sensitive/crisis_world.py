"""The world of Tao, Poslad, Bigham 2013, section V, on the queueing model: links, mediator, publishers, subscribers.

Sizes count as the text has them: a publication's attributes and the bytes that brokers add are taken off its payload,
so that what an edge sends for one delivery is what Table VI says.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.core.policies.model.topic_requirements import TopicRequirements
from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES
from plimsoll.core.protocol.publication_size import payload_for
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec import Resources
from plimsoll.core.spec.brokers import head_name
from plimsoll.demo import crisis_tables as tables
from plimsoll.demo.crisis_tables import ATTRIBUTE, BURSTING, CLUSTER, PER_SECOND, TOPICS, topic_name
from plimsoll.simulator.queueing.fleet import LinkDelays
from plimsoll.simulator.queueing.mediator import MediatorPauses
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber

LINKS_OF_A_MESSAGE: Final = 3
"""To its head, to its edge, to its subscriber. The text's 0.2 s to clients are both ways together: 1.8 - 0.2 - 0.1 is
what it leaves of the deadline of topic 1."""

PAUSES: Final = MediatorPauses(0.05, 0.01)
"""The text's managers sit at the brokers, and need milliseconds: our mediator looks twenty times a second, and its
messages do not take the way of publications."""


@dataclass(frozen=True, slots=True)
class CrisisTimes:
    """In seconds. `look_seconds`: between two load reports, and two looks of the mediator.

    `link_seconds`: of each link of a message. Messages of a hand-over take it as well, some nine of them one after the
    other; with shorter links deadlines are shorter by as much, so that a message may wait in brokers as long as before.
    """

    burst_at: float = tables.BURST_AT
    ends_at: float = tables.ENDS_AT
    look_seconds: float = 1.0
    link_seconds: float = tables.LINK_SECONDS / LINKS_OF_A_MESSAGE

    @property
    def links(self) -> LinkDelays:
        """The way of messages; what brokers say to the mediator takes another."""
        return LinkDelays(self.link_seconds, self.link_seconds, control=0.001)

    @property
    def latencies(self) -> dict[int, float]:
        """The deadlines of Table VI, less what links save."""
        saved = tables.LINK_SECONDS - LINKS_OF_A_MESSAGE * self.link_seconds
        return {number: round(seconds - saved, 6) for number, seconds in tables.latencies().items()}


def required(times: CrisisTimes) -> TopicRequirements:
    """The deadlines of a run."""
    return TopicRequirements(ATTRIBUTE, {topic_hash(topic_name(n)): each for n, each in times.latencies.items()})


def traffic(seed: int, places: Mapping[int, str], times: CrisisTimes) -> Traffic:
    """Topics come at 1 to 15 s, in order, all subscribers of one at once. `places`: edges of topics that are given."""
    draw = random.Random(f"{seed} crisis")
    publishers = [
        _publisher(f"p{number}-{one}", number, draw.random() / PER_SECOND, times.burst_at)
        for number, topic in TOPICS.items()
        for one in range(topic.publishers)
    ]
    subscribers = [
        TrafficSubscriber(
            f"s{number}-{one}", CLUSTER, (f"[{ATTRIBUTE},=,'{topic_name(number)}']",), float(number) - 0.5,
            prefer=places.get(number, ""),
        )
        for number, topic in TOPICS.items() for one in range(topic.subscribers)
    ]  # fmt: skip
    return Traffic(publishers, subscribers)


def _publisher(name: str, number: int, first: float, burst_at: float) -> TrafficPublisher:
    more = (RateStep(burst_at, 2 * PER_SECOND),) if number in BURSTING else ()
    rates = (RateStep(0.0, PER_SECOND), *more)
    attributes = {ATTRIBUTE: topic_name(number)}
    payload = payload_for(head_name(CLUSTER), name, attributes, TOPICS[number].size_bytes - PREFIX_BYTES)
    return TrafficPublisher(name, head_name(CLUSTER), (attributes,), rates, first, payload)


def resources(policy: Mapping[str, Any] | None, look_seconds: float) -> Resources:
    """Table V under a policy. `look_seconds`: the time between two load reports, at most 1.

    Durations of the policy are of a fleet whose clock makes a second of `look_seconds`.
    """
    return tables.crisis_resources(policy, round(100 * look_seconds))


def delay_sensitive(times: CrisisTimes, balancing_seconds: float, **own: Any) -> dict[str, Any]:
    """The policy with the deadlines of a run; loads settle for a second after a session."""
    look = times.look_seconds
    return tables.delay_sensitive(balancing_seconds / look, 1 / look, times.latencies, **own)


def padres(look_seconds: float) -> dict[str, Any]:
    """PEER's load balancing, looking as often."""
    return tables.padres(1 / look_seconds)
