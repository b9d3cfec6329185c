"""The subscribers of a client by name, and how one comes off its edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from plimsoll.core.client.edge_ports import EdgePorts
from plimsoll.core.client.handover import ClientHandovers
from plimsoll.core.client.subscriber import ClientSubscriber


class SubscribersHost(Protocol):
    """The interface to the client of what its subscribers share."""

    edge_ports: EdgePorts
    handovers: ClientHandovers

    def guard(self, owner: ClientSubscriber, action: Callable[[], object], /) -> None: ...


class SubscribersAtEdges:
    """`by_name`: all subscribers of the client, with the units of some, and slices of groups.

    `changed`: those whose lists of subscriptions are to be sent. `last_number`: the highest number in an owner epoch of
    one that has ended.
    """

    def __init__(self, client: SubscribersHost) -> None:
        self._client = client
        self.by_name: dict[str, ClientSubscriber] = {}
        self.changed: dict[ClientSubscriber, None] = {}
        self.last_number = 0

    def detach(self, subscriber: ClientSubscriber, *, withdraw: bool = False) -> None:
        """Take a subscriber off its edge, and off the target of its hand-over, which is sent DETACH."""
        self._client.handovers.leave(subscriber, withdraw=withdraw)
        attachment, subscriber.current = subscriber.current, None
        self.changed.pop(subscriber, None)
        if attachment is not None:
            self._client.edge_ports.release(attachment)

    def close(self, subscriber: ClientSubscriber, *, withdraw: bool) -> None:
        """Detach it, with DETACH to its edge, and forget it."""
        if subscriber.current is not None:
            self._client.edge_ports.say_detach(subscriber.current, withdraw=withdraw)
        self.detach(subscriber, withdraw=withdraw)
        self.drop(subscriber)

    def drop(self, subscriber: ClientSubscriber) -> None:
        """Forget one that has ended."""
        self.by_name.pop(subscriber.name, None)
        self.changed.pop(subscriber, None)
        self.last_number = max(self.last_number, subscriber.number)
        subscriber.wake = 0

    def send_changes(self) -> None:
        """Send the lists of subscriptions that have changed."""
        changed, self.changed = self.changed, {}
        for subscriber in changed:
            self._client.guard(subscriber, subscriber.subscription_list.send_changes)
