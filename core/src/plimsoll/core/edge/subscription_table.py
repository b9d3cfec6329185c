"""The subscriptions of an edge: the index that publications are matched against, and the cover announced upward.

Rules:
- A subscription is taken (checked and numbered), then installed (matched) and covered (announced upward). A number is
  never used again.
- Covering updates are numbered, and each is one whole step (P4 in docs/handover.md): on the way from one set to the
  next nothing is uncovered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from plimsoll.core import predicates
from plimsoll.core.config import BrokerLimits
from plimsoll.core.covering.cover_set import CoverDelta, CoveringSet
from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.edge.channel_rights import ClosedToResults, channel_refusal
from plimsoll.core.edge.parameters_in_force import ParametersInForce
from plimsoll.core.matching import Index
from plimsoll.core.predicates import Subscription
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.cover_parts import REPORT_PART_ITEMS, split_cover
from plimsoll.core.protocol.subscription_options import required_latency

Numbered = tuple[int, Subscription]

TEXT_CHARACTERS = 65_536
"""Of a subscription in a message (`wire.Text`)."""
WRITTEN_OUT_CHARACTERS = TEXT_CHARACTERS // 10
"""A longer text may exceed that in canonical form: an unprintable character becomes an escape of ten."""
NUMBERS_CHARACTERS = 32_768
"""By which the numbers of a subscription may grow: `9e15` is written out."""
REMOVED_CONSTRAINTS = 64
"""Of subscriptions removed in one step, after which the next round goes on."""
STEP_UNITS = 4_000
"""Work of one covering step, in units of some quarter of a microsecond; `tidy` does the rest in the next rounds."""


class SubscriptionTable:
    """`holders`: the attachment of each number in the index. `with_several`: those that have more than one there."""

    def __init__(self, edge: str, limits: BrokerLimits, *, compiled: bool = True) -> None:
        self.edge, self.limits = edge, limits
        self.index: Index = Index(compiled=compiled)
        self.holders: dict[int, EdgeAttachment] = {}
        self.with_several: set[EdgeAttachment] = set()
        self.cover: CoveringSet[int] = CoveringSet()
        self.parameters = ParametersInForce()
        self.closed = ClosedToResults()
        self.seq = 0
        self.widenings = 0
        """Updates that announced something not covered before: from then on the edge sees more of the traffic."""
        self._last = 0
        self._waiting = 0
        self._unmatching: deque[int] = deque()  # in the index still, for holders that take nothing
        self._uncovering: deque[int] = deque()

    def __len__(self) -> int:
        """Subscriptions taken, installed or not."""
        return len(self.index) + self._waiting

    # -- one attachment

    def take(
        self,
        attachment: EdgeAttachment,
        item: msg.SubscriptionItem,
        leaving: Collection[int] = (),
        subscription: Subscription | None = None,
    ) -> Numbered:
        """Add one to an attachment's list, not yet to the index; `confirm` gives it its id.

        `subscription`: what its text says, if that has been read.

        Raises:
            ValueError: its text cannot be parsed, its required latency is out of bounds, its id is in use and not
                `leaving`, a limit is reached, or its identity may not have it.

        """
        limits, arriving = self.limits, attachment.arriving
        if item.id in arriving or (item.id in attachment.subscriptions and item.id not in leaving):
            raise ValueError(f"subscription {item.id} is there already; remove it first")
        most = attachment.link.grant.max_subscriptions or limits.max_subscriptions_per_subscriber
        if len(attachment.subscriptions) - len(leaving) >= most:
            raise ValueError(f"a subscriber has at most {most} subscriptions here")
        if len(self) >= limits.max_subscriptions:
            raise ValueError(f"edge {self.edge} has its {limits.max_subscriptions} subscriptions")
        if subscription is None:
            subscription = predicates.parse(item.text)
        latency = required_latency(item.options)
        if why := channel_refusal(attachment.link.grant, subscription):
            raise ValueError(why)
        if may_grow(item.text) and len(str(subscription)) > TEXT_CHARACTERS:
            raise ValueError(f"its canonical form has more than {TEXT_CHARACTERS} characters: it has too many escapes")
        self._last += 1
        self._waiting += 1
        arriving[item.id] = self._last
        attachment.subscriptions[-self._last] = (subscription, self._last)
        if latency is not None:
            attachment.require(self._last, latency)
        return self._last, subscription

    def confirm(self, attachment: EdgeAttachment, leaving: Iterable[int] = ()) -> list[int]:
        """End a change: those that arrived get their ids, those that leave are removed. Returns numbers as `remove`."""
        removed = self.remove(attachment, leaving)
        for item_id, number in attachment.arriving.items():
            attachment.subscriptions[item_id] = attachment.subscriptions.pop(-number)
        attachment.arriving = {}
        return removed

    def put_back(self, attachment: EdgeAttachment, taken: Iterable[Numbered]) -> None:
        """Undo `take` of what has not been confirmed or installed."""
        numbers = {number for number, _ in taken}
        attachment.arriving = {i: number for i, number in attachment.arriving.items() if number not in numbers}
        for number in numbers:
            del attachment.subscriptions[-number]
            attachment.require_no_more(number)
        self._waiting -= len(numbers)

    def install(self, attachment: EdgeAttachment, taken: Iterable[Numbered]) -> None:
        """Match publications from here on against these subscriptions of the attachment's list."""
        attachment.is_installed = True
        for number, subscription in taken:
            self.index.add(number, subscription)
            self.closed.judge(attachment.link.grant, number, subscription)
            self.holders[number] = attachment
            self._waiting -= 1
        if len(attachment.subscriptions) > 1:
            self.with_several.add(attachment)

    def remove(self, attachment: EdgeAttachment, item_ids: Iterable[int]) -> list[int]:
        """Remove some from an attachment's list, and deliver no more for them; returns the numbers, still in the cover.

        They leave the index in bounded steps, perhaps after SUBACK. What they match until then is delivered to nobody.
        """
        numbers = [attachment.subscriptions.pop(i)[1] for i in item_ids if i in attachment.subscriptions]
        for number in numbers:
            attachment.require_no_more(number)
        if attachment.is_installed:
            self._unmatching.extend(numbers)
            self._unmatch()
            self.holders.update(dict.fromkeys(filter(self.holders.__contains__, numbers), passed_over(attachment)))
        else:
            self._waiting -= len(numbers)
        return numbers

    def regrant(self, attachment: EdgeAttachment) -> str:
        """Judge an attachment's list under a new grant of its link; why it may not have all of it, if it may not."""
        for subscription, number in attachment.subscriptions.values():
            if why := channel_refusal(attachment.link.grant, subscription):
                return why
            if number in self.holders:
                self.closed.judge(attachment.link.grant, number, subscription)
        return ""

    def once(self, ids: Iterable[int], position: int) -> list[int]:
        """Of these numbers, which match the publication at a position, one for each attachment."""
        found = []
        for number in ids:
            attachment = self.holders[number]
            if attachment.last_position != position:
                attachment.last_position = position
                found.append(number)
        return found

    def uninstall(self, attachment: EdgeAttachment) -> None:
        """Stop matching it, in bounded steps from the end of this round on: meanwhile it takes nothing.

        A covered list stays in the cover; one that never was is forgotten.
        """
        self.with_several.discard(attachment)
        numbers = [number for _, number in attachment.subscriptions.values()]
        if attachment.is_installed:
            self._unmatching.extend(numbers)
        elif not attachment.is_covered:
            self._waiting -= len(numbers)
            attachment.clear_subscriptions()
        attachment.is_installed = False

    def _unmatch(self) -> None:
        constraints = 0
        while self._unmatching and constraints < REMOVED_CONSTRAINTS:
            number = self._unmatching.popleft()
            constraints += len(self.index[number].constraints)
            self.index.remove(number)
            self.closed.numbers.discard(number)
            del self.holders[number]

    def uncover(self, attachment: EdgeAttachment) -> list[int]:
        """Forget its covered list; returns the numbers, which the caller takes out of the cover in its next step."""
        replaced, attachment.replaced = attachment.replaced, []
        numbers = [number for _, number in attachment.subscriptions.values()] if attachment.is_covered else []
        if numbers:
            attachment.is_covered = False
            attachment.clear_subscriptions()
        return replaced + numbers

    # -- upward

    def step(self, adds: Iterable[Numbered], removes: Iterable[int]) -> list[msg.Cover]:
        """The next numbered update, in parts; there is one even when the covering set does not change.

        What does not fit into a bounded step is left to `tidy`: until then the cover is larger than needed.
        """
        self._uncovering.extend(removes)
        return self._numbered(self._apply(adds))

    def retire(self, removes: Iterable[int]) -> None:
        """Leave removals that no SUBACK waits for to `tidy`."""
        self._uncovering.extend(removes)

    def tidy(self) -> list[msg.Cover]:
        """A round's bounded share of what is left over; returns the update, if it changes anything."""
        self._unmatch()
        if self._uncovering:
            delta = self._apply(())
        elif not self.cover.is_tidy:
            delta = self.cover.tidy(STEP_UNITS)
        else:
            return []
        return self._numbered(delta) if delta else []

    def _apply(self, adds: Iterable[Numbered]) -> CoverDelta[int]:
        removes: list[int] = []
        removed: list[Subscription] = []
        constraints = 0
        while self._uncovering and constraints < REMOVED_CONSTRAINTS:
            removes.append(self._uncovering.popleft())
            removed.append(self.cover.member(removes[-1]))
            constraints += len(removed[-1].constraints)
        added = list(adds)
        delta = self.cover.apply(added, removes, units=STEP_UNITS)
        self.parameters.change((subscription for _, subscription in added), removed)
        return delta

    @property
    def is_tidy(self) -> bool:
        """Whether nothing is left over."""
        return not self._unmatching and not self._uncovering and self.cover.is_tidy

    @property
    def units_spent(self) -> int:
        """The work of the latest step."""
        return self.cover.units_spent

    def _numbered(self, delta: CoverDelta[int]) -> list[msg.Cover]:
        self.seq += 1
        self.widenings += bool(delta.announce)
        adds = [msg.CoverItem(number, str(subscription)) for number, subscription in delta.announce]
        return split_cover(msg.Cover(self.seq, adds, list(delta.withdraw)))

    def whole(self) -> list[msg.Cover]:
        """The whole covering set, for a head that knows nothing of it. Numbers of updates begin again."""
        self.seq = 1
        items = [msg.CoverItem(number, str(s)) for number, s in self.cover.items()]
        return split_cover(msg.Cover(1, items, []), REPORT_PART_ITEMS)


def may_grow(text: str) -> bool:
    """Whether the canonical form of a subscription may have more characters than a message holds."""
    if len(text) <= WRITTEN_OUT_CHARACTERS:
        return False
    is_literal = text.isprintable() and '"' not in text  # so that no character of it becomes an escape
    return not is_literal or len(text) > TEXT_CHARACTERS - NUMBERS_CHARACTERS


def passed_over(attachment: EdgeAttachment) -> EdgeAttachment:
    """A closed one in the place of this one, for those of its subscriptions that are withdrawn."""
    # never empty, so that no link has to be flushed for it
    void = deque([b""], maxlen=1)
    gone = EdgeAttachment(attachment.subscriber, attachment.id, attachment.link, attachment.epoch, 0, void)
    gone.state = AttachmentState.CLOSED
    return gone
