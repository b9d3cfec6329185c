"""Handles of subscriptions, with their state."""

from __future__ import annotations

from typing import assert_never

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
        """Take an event of the machine, if it is about them."""
        known = self._known
        match event:
            case core.Acknowledged():
                for each in event.ids:
                    if each in known:
                        known[each].acknowledged, known[each].unreached = True, event.unreached
            case core.Forgotten():
                for each in event.ids:
                    if each in known:
                        known.pop(each).is_withdrawn = True
            case core.SubscriptionRefused():
                if event.id in known:
                    known.pop(event.id).refused = event.text
            case core.Lapsed():
                for subscription in known.values():
                    subscription.acknowledged = False
            case core.Delivery() | core.GapNotice() | core.Attached() | core.Detached() | core.Failed():
                pass
            case _:
                assert_never(event)
