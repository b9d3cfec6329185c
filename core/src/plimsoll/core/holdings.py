"""What an edge holds for its subscribers: subscriptions that publications are matched against, and their cover.

Laws of the place:
- A subscription is taken (checked and numbered), then installed (matched) and covered (announced upward). A number is
  never used again.
- What is announced upward is numbered, whole steps only: nothing is uncovered on the way from one set to the next.
"""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.core import predicates
from plimsoll.core import records as r
from plimsoll.core.attachment import Attachment
from plimsoll.core.config import Limits
from plimsoll.core.covering import CoveringSet, Delta
from plimsoll.core.matching import Index
from plimsoll.core.predicates import Subscription
from plimsoll.core.routes import parts

Numbered = tuple[int, Subscription]


class Holdings:
    """`holders`: the attachment of each number in the index. `several`: those that have more than one there."""

    def __init__(self, edge: str, limits: Limits, *, compiled: bool = True) -> None:
        self.edge, self.limits = edge, limits
        self.index: Index = Index(compiled=compiled)
        self.holders: dict[int, Attachment] = {}
        self.several: set[Attachment] = set()
        self.cover: CoveringSet[int] = CoveringSet()
        self.seq = 0
        self.widenings = 0
        """How often something was announced that nothing announced before covers."""
        self._last = 0
        self._waiting = 0

    def __len__(self) -> int:
        """How many subscriptions are taken, installed or not."""
        return len(self.index) + self._waiting

    # -- one attachment

    def take(self, attachment: Attachment, item: r.SubscriptionItem) -> Numbered:
        """Add one to an attachment's list, not yet to the index.

        Raises:
            ValueError: it cannot be read, or is one too many.

        """
        limits = self.limits
        if item.id in attachment.subscriptions:
            raise ValueError(f"subscription {item.id} is there already; remove it first")
        most = attachment.link.grant.max_subscriptions or limits.max_subscriptions_per_subscriber
        if len(attachment.subscriptions) >= most:
            raise ValueError(f"a subscriber has at most {most} subscriptions here")
        if len(self) >= limits.max_subscriptions:
            raise ValueError(f"edge {self.edge} has its {limits.max_subscriptions} subscriptions")
        subscription = predicates.parse(item.text)
        self._last += 1
        self._waiting += 1
        attachment.subscriptions[item.id] = (subscription, self._last)
        return self._last, subscription

    def install(self, attachment: Attachment, taken: Iterable[Numbered]) -> None:
        """From here on publications are matched against these, which the attachment's list has."""
        attachment.is_installed = True
        for number, subscription in taken:
            self.index.add(number, subscription)
            self.holders[number] = attachment
            self._waiting -= 1
        if len(attachment.subscriptions) > 1:
            self.several.add(attachment)

    def remove(self, attachment: Attachment, item_ids: Iterable[int]) -> list[int]:
        """Take some off an attachment's list, and out of the index; returns their numbers."""
        numbers = [attachment.subscriptions.pop(i)[1] for i in item_ids if i in attachment.subscriptions]
        if attachment.is_installed:
            self._remove(numbers)
        else:
            self._waiting -= len(numbers)
        return numbers

    def uninstall(self, attachment: Attachment) -> None:
        """Match it no more. What is covered stays covered; what is not, is forgotten."""
        self.several.discard(attachment)
        numbers = [number for _, number in attachment.subscriptions.values()]
        if attachment.is_installed:
            self._remove(numbers)
        elif not attachment.is_covered:
            self._waiting -= len(numbers)
            attachment.subscriptions.clear()
        attachment.is_installed = False

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.index.remove(number)
            del self.holders[number]

    def numbered(self, attachment: Attachment) -> list[Numbered]:
        """The list of an attachment."""
        return [(number, subscription) for subscription, number in attachment.subscriptions.values()]

    def uncover(self, attachment: Attachment) -> list[int]:
        """The numbers that it has in the cover, for a step that takes them out: it has nothing there any more."""
        numbers = [number for _, number in attachment.subscriptions.values()] if attachment.is_covered else []
        if numbers:
            attachment.is_covered = False
            attachment.subscriptions.clear()
        return numbers

    # -- upward

    def step(self, adds: Iterable[Numbered], removes: Iterable[int]) -> list[r.Cover]:
        """The next numbered update, in parts; there is one even when the covering set does not change."""
        return self._numbered(self.cover.apply(adds, removes))

    def shrink(self, removes: Iterable[int]) -> list[r.Cover]:
        """The same for what nobody waits for: nothing, if the covering set does not change."""
        delta = self.cover.apply([], removes)
        return self._numbered(delta) if delta else []

    def _numbered(self, delta: Delta[int]) -> list[r.Cover]:
        self.seq += 1
        self.widenings += bool(delta.announce)
        adds = [r.CoverItem(number, str(subscription)) for number, subscription in delta.announce]
        return parts(r.Cover(self.seq, adds, list(delta.withdraw)))

    def whole(self) -> list[r.Cover]:
        """The whole covering set, for a head that knows nothing of it: numbers of updates begin again."""
        self.seq = 1
        return parts(r.Cover(1, [r.CoverItem(number, str(s)) for number, s in self.cover.items()], []))
