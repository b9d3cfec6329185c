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

TEXT_LINK_SECONDS: Final = tables.LINK_SECONDS / LINKS_OF_A_MESSAGE

BALANCING_SECONDS: Final = 2 * TEXT_LINK_SECONDS
"""t_LB. The text gives no figure, and says what decides it (IV.B.2, c): the way of the message by which the head's
manager notifies subscribers, over two links here, and milliseconds of analysis."""

MESSAGES_OF_A_HANDOVER: Final = 9
"""They go one after the other, over a link each; the text counts the notification alone."""

PAUSES: Final = MediatorPauses(0.01, 0.01, 0.01)
"""The text's managers sit at the brokers, and need milliseconds: our mediator looks a hundred times a second, and its
messages do not take the way of publications."""


@dataclass(frozen=True, slots=True)
class CrisisTimes:
    """In seconds. A load report, and a look of the mediator, come every second, as in the text.

    `link_seconds`: of a link between brokers, and of one to a subscriber; messages of a hand-over take them as well.
    The way from a publisher to its head takes the rest of the text's 0.3 s, whatever the links take.
    """

    burst_at: float = tables.BURST_AT
    ends_at: float = tables.ENDS_AT
    link_seconds: float = BALANCING_SECONDS / MESSAGES_OF_A_HANDOVER

    @property
    def links(self) -> LinkDelays:
        """The way of messages; what brokers say to the mediator takes another."""
        first = tables.LINK_SECONDS - (LINKS_OF_A_MESSAGE - 1) * self.link_seconds
        return LinkDelays(self.link_seconds, self.link_seconds, control=0.001, from_publishers=first)


REQUIRED: Final = TopicRequirements(ATTRIBUTE, {topic_hash(topic_name(n)): s for n, s in tables.latencies().items()})
"""The deadlines of Table VI."""


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


def resources(policy: Mapping[str, Any] | None) -> Resources:
    """Table V under a policy."""
    return tables.crisis_resources(policy, 100)


def delay_sensitive(**own: Any) -> dict[str, Any]:
    """The policy with the deadlines of Table VI; loads settle for a second after a session."""
    return tables.delay_sensitive(BALANCING_SECONDS, 1.0, **own)


def padres() -> dict[str, Any]:
    """PEER's load balancing, looking as often."""
    return tables.padres(1.0)
