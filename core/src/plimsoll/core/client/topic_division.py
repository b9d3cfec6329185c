"""How a client learns that a cluster has topics, and divides its subscribers into units.

The head's answer to JOIN names the attribute whose values are topics. From then on subscribers of this client join as
units; those that have an edge already stay whole until they look for another.
"""

from __future__ import annotations

from typing import Protocol

from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.client.slice_subscriber import SliceSubscriber
from plimsoll.core.client.subscriber import ClientSubscriber, SubscriberHost, SubscriberPhase
from plimsoll.core.client.subscriber_topics import SubscriberTopics
from plimsoll.core.client.subscriber_unit import SubscriberUnit
from plimsoll.core.predicates import parse
from plimsoll.core.protocol.topic_units import SUFFIX_CHARACTERS, unit_name
from plimsoll.core.protocol.wire import NAME_AT_MOST, Token


class DividingClient(SubscriberHost, Protocol):
    """What the division needs of its client."""

    limits: ClientLimits
    subscribers: dict[str, ClientSubscriber]

    def begin(self, subscriber: ClientSubscriber, /) -> None: ...


class TopicDivision:
    """`attribute`: of the cluster whose head this client asks, as far as it is known; empty if it has no topics."""

    __slots__ = ("_client", "attribute")

    def __init__(self, client: DividingClient) -> None:
        self._client = client
        self.attribute = ""

    def learn(self, attribute: str) -> None:
        """The head has said which attribute it is."""
        self.attribute = attribute

    def forget(self) -> None:
        """Another head may be asked from now on."""
        self.attribute = ""

    def leaves_nothing(self, subscriber: ClientSubscriber) -> bool:
        """Divide a subscriber that looks for an edge; returns whether its units ask for all that it wants."""
        if isinstance(subscriber, SubscriberUnit | SliceSubscriber):
            return False
        if subscriber.topics is None and self.attribute and len(subscriber.name) <= NAME_AT_MOST - SUFFIX_CHARACTERS:
            self._divide(subscriber)  # one of a longer name is served whole, since no unit could have its name
        if subscriber.topics is None or subscriber.subscription_list.items:
            return False
        subscriber.phase = SubscriberPhase.IDLE
        subscriber.wake = 0
        return True

    def _divide(self, subscriber: ClientSubscriber) -> None:
        stream, changes = subscriber.stream, subscriber.subscription_list
        topics = SubscriberTopics(subscriber, self.attribute, self, stream.token, subscriber.unit_marks)
        subscriber.topics = topics
        stream.overlap = topics.is_new
        for number, item in list(changes.items.items()):
            try:
                parts = topics.topics(parse(item.text))
            except ValueError:
                continue  # the name of a unit is taken: the rest asks for it, since no call can fail here
            if parts:
                changes.drop(number)
                topics.subscribe(item, parts)

    # -- for the topics of a subscriber

    def check_name(self, subscriber: str, topic: int) -> None:
        """Whether a new unit may have its name.

        Raises:
            ValueError: the application uses the unit's name for another subscriber.

        """
        name = unit_name(subscriber, topic)
        if name in self._client.subscribers:
            raise ValueError(f"there is a subscriber {name!r} in this process already; call it something else")

    def unit(self, topics: SubscriberTopics, topic: int, token: Token | None) -> SubscriberUnit:
        """A new unit, which looks for an edge from the next round on."""
        name = unit_name(topics.root.name, topic)
        unit = SubscriberUnit(self._client, topics, topic, token)
        self._client.subscribers[name] = unit
        self._client.begin(unit)
        return unit
