"""Handles of subscriptions, with their state."""

from __future__ import annotations

from plimsoll.core import client as core


class Subscription:
    """A subscription. It counts once acknowledged, except for publications from behind the heads in `unreached`."""

    __slots__ = ("acknowledged", "id", "is_withdrawn", "refused", "text", "unreached")

    def __init__(self, subscription_id: int, text: str) -> None:
        self.id, self.text = subscription_id, text
        self.acknowledged = self.is_withdrawn = False
        self.unreached: tuple[str, ...] = ()
        self.refused = ""

    @property
    def is_settled(self) -> bool:
        """Whether it was acknowledged or refused."""
        return self.acknowledged or bool(self.refused)

    def __repr__(self) -> str:
        state = f"refused: {self.refused}" if self.refused else "acknowledged" if self.acknowledged else "asked for"
        return f"Subscription({self.id}, {self.text!r}, {state})"


class SubscriptionHandles:
    """The subscriptions of one subscriber."""

    def __init__(self) -> None:
        self._known: dict[int, Subscription] = {}

    def add(self, subscription_id: int, text: str) -> Subscription:
        subscription = self._known[subscription_id] = Subscription(subscription_id, text)
        return subscription

    def take(self, event: core.SubscriberEvent) -> None:
        """Take the machine's events about them."""
        known = self._known
        if isinstance(event, core.Acknowledged):
            for each in event.ids:
                if each in known:
                    known[each].acknowledged, known[each].unreached = True, event.unreached
        elif isinstance(event, core.Forgotten):
            for each in event.ids:
                if each in known:
                    known.pop(each).is_withdrawn = True
        elif isinstance(event, core.SubscriptionRefused):
            if event.id in known:
                known.pop(event.id).refused = event.text
        elif isinstance(event, core.Lapsed):
            for subscription in known.values():
                subscription.acknowledged = False
