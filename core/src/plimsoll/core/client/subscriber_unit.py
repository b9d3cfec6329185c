"""A unit: the part of a subscriber that asks for the topics of one hash, which brokers serve as a subscriber.

Its events, its queue and its pauses are the subscriber's; its edge, its token and its hand-overs are its own. Order is
kept per origin and unit.
"""

from __future__ import annotations

from typing import Protocol

from plimsoll.core.client.events import SubscriberEvent
from plimsoll.core.client.subscriber import ClientSubscriber, SubscriberHost
from plimsoll.core.protocol.topic_units import unit_name
from plimsoll.core.protocol.wire import Token


class UnitOwner(Protocol):
    """The part of a subscriber that its units tell what has happened."""

    root: ClientSubscriber

    def on_event(self, unit: SubscriberUnit, event: SubscriberEvent) -> None: ...


class SubscriberUnit(ClientSubscriber):
    """Made by `SubscriberTopics`. `topic`: the hash of its topics."""

    __slots__ = ("_owner", "topic")

    def __init__(self, client: SubscriberHost, owner: UnitOwner, topic: int, token: Token | None) -> None:
        root = owner.root
        super().__init__(
            client, unit_name(root.name, topic), root.policy, token, root.prefer, root.location,
            root.lease_seconds, root.since,
        )  # fmt: skip
        self._owner, self.topic, self.incarnation = owner, topic, root.incarnation
        self.stream.holds, self.stream.queue = root.stream.holds, root.stream.queue
        self.events = self.stream.events = root.events
        self.is_paused = root.is_paused

    def tell(self, event: SubscriberEvent) -> None:
        self._owner.on_event(self, event)

    def mark_ready(self) -> None:
        self._owner.root.mark_ready()
