"""The list of subscriptions of one subscriber, and which of its changes count.

Rules of the place:
- The subscriber owns the list; `bytes_taken` is its size in a message.
- Every change has a version; changes that have not been sent yet share one.
- A change that counts is reported once; a lapse makes all of them wait again.
- While heads are unreached, a change counts except for them, and is reported again when they have it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plimsoll.core.client.events import Acknowledged, Forgotten
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.messages import SubscriptionItem
from plimsoll.core.protocol.wire import Scalar


class SubscriptionChanges:
    """`items` by id. Waiting, by id and with the version that they came in: `unacked`, `leaving`, `unreached`."""

    __slots__ = (
        "_acknowledged", "_added", "_last_id", "_removed", "_sizes", "bytes_taken", "items", "leaving", "unacked",
        "unreached", "version",
    )  # fmt: skip

    def __init__(self) -> None:
        self.version = 1
        self.items: dict[int, SubscriptionItem] = {}
        self.unacked: dict[int, int] = {}
        self.leaving: dict[int, int] = {}
        self.unreached: dict[int, int] = {}
        self._last_id = self._acknowledged = self.bytes_taken = 0
        self._sizes: dict[int, int] = {}
        self._added: list[SubscriptionItem] | None = None
        self._removed: list[int] = []

    # -- changing

    def begin(self, *, gather: bool) -> bool:
        """Begin a change. `gather`: edges have the list, so it is sent; returns whether it is the first of these."""
        if self._added is not None:
            return False
        self.version += 1
        if gather:
            self._added, self._removed = [], []
        return gather

    def add(self, text: str, options: Mapping[str, Scalar]) -> int:
        item = self._next_item(text, options)
        self._last_id = item.id
        self.items[item.id], self._sizes[item.id] = item, len(wire.encode(item))
        self.bytes_taken += self._sizes[item.id]
        self.unacked[item.id] = self.version
        if self._added is not None:
            self._added.append(item)
        return item.id

    def reserve(self, text: str, options: Mapping[str, Scalar]) -> SubscriptionItem:
        """The next id, for a subscription that is not on this list."""
        item = self._next_item(text, options)
        self._last_id = item.id
        return item

    def bytes_with(self, text: str, options: Mapping[str, Scalar]) -> int:
        """How many bytes the list takes in a message once this subscription is added."""
        return self.bytes_taken + len(wire.encode(self._next_item(text, options)))

    def _next_item(self, text: str, options: Mapping[str, Scalar]) -> SubscriptionItem:
        return SubscriptionItem(self._last_id + 1, text, dict(options))

    def withdraw(self, subscription_id: int) -> None:
        self.drop(subscription_id)
        self.leaving[subscription_id] = self.version
        self.remove(subscription_id)

    def drop(self, subscription_id: int) -> bool:
        """Take it off the list; returns whether it was there."""
        self.unacked.pop(subscription_id, None)
        self.unreached.pop(subscription_id, None)
        self.bytes_taken -= self._sizes.pop(subscription_id, 0)
        return self.items.pop(subscription_id, None) is not None

    def remove(self, subscription_id: int) -> None:
        """Note for the edges that this one is withdrawn."""
        if self._added is not None:
            self._added = [item for item in self._added if item.id != subscription_id]
            self._removed.append(subscription_id)

    def take(self) -> tuple[list[SubscriptionItem], list[int]] | None:
        """The additions and removals of this version; None if the whole list was sent."""
        added, removed = self._added, self._removed
        self.said()
        return None if added is None else (added, removed)

    def said(self) -> None:
        """The whole list is sent, or will be, so single changes need not be."""
        self._added, self._removed = None, []

    # -- counting

    def settle(self, version: int, unreached: tuple[str, ...], head: str) -> Iterator[Acknowledged | Forgotten]:
        """Count all changes up to this version, except for the heads in `unreached`; returns the new ones."""
        self._acknowledged = max(self._acknowledged, version)
        known = () if unreached else up_to(version, self.unreached)
        new = up_to(version, self.unacked)
        for i in new:
            self.unreached[i] = self.unacked.pop(i)
        if not unreached:
            for i in known + new:
                del self.unreached[i]
        if known + new:
            yield Acknowledged(known + new, head, unreached)
        gone = up_to(version, self.leaving)
        for i in gone:
            del self.leaving[i]
        if gone:
            yield Forgotten(gone)

    def void(self) -> bool:
        """No acknowledgement holds any more; whether there was one."""
        if not self._acknowledged:
            return False
        self.unacked = dict.fromkeys(self.items, self.version) | self.unacked
        self.unreached.clear()
        self._acknowledged = 0
        return True


def up_to(version: int, waiting: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(i for i, since in waiting.items() if since <= version)
