"""Samples of consumer groups, which heads send page by page: consumers, and what each slice brings to its consumer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceLoad
from plimsoll.core.protocol.messages import ConsumerItem, HeldSliceItem, SlicePage, SliceQuery
from plimsoll.core.session.context.command_outbox import CommandOutbox

ITEMS_AT_MOST: Final = 50_000
"""Consumers and slices of a sample: more than a head has. What says more is not believed."""


@dataclass(frozen=True)
class GroupSample:
    """A group at one time. `balancing`: empty if the head has no such group. `is_settled`: the head knows which member
    has what; one that has restarted waits for them to say so. `moving`: slices that count as their taker's, and that
    their giver has yet to let go of.
    """

    head_epoch: int
    balancing: str
    is_settled: bool
    consumers: tuple[ConsumerLoad, ...]
    unowned: tuple[int, ...] = ()
    moving: frozenset[int] = frozenset()

    @property
    def holders(self) -> dict[int, str]:
        """The consumer of each slice that has one."""
        return {each.number: c.name for c in self.consumers for each in c.slices}


@dataclass
class _Pages:
    """The pages so far. `query_id` is 0 while none is awaited."""

    head: str
    group: str
    query_id: int = 0
    version: tuple[int, int] = (0, 0)
    consumers: list[ConsumerItem] = field(default_factory=list)
    slices: list[HeldSliceItem] = field(default_factory=list)
    sample: GroupSample | None = None

    @property
    def count(self) -> int:
        return len(self.consumers) + len(self.slices)

    def add(self, page: SlicePage) -> None:
        """Add a page. If members or their slices have changed between two pages, the sample begins again."""
        self.query_id = 0
        version = page.head_epoch, page.version
        if page.begin != self.count or (page.begin and version != self.version) or self.count > ITEMS_AT_MOST:
            self.consumers, self.slices = [], []
            return
        self.version = version
        self.consumers += page.consumers
        self.slices += page.slices
        if not page.more or not (page.consumers or page.slices):
            self.sample = self._made(page)

    def _made(self, last: SlicePage) -> GroupSample:
        held: dict[str, list[SliceLoad]] = {each.consumer: [] for each in self.consumers}
        unowned = []
        for each in self.slices:
            load = each.load
            if each.consumer in held:
                found = SliceLoad(load.number, load.items_per_second, load.seconds_per_item, load.backlog)
                held[each.consumer].append(found)
            else:
                unowned.append(load.number)
        consumers = tuple(
            ConsumerLoad(
                c.consumer, tuple(held[c.consumer]), c.cpu, c.memory, c.has_measured, takes=c.takes_part
            )
            for c in self.consumers
        )  # fmt: skip
        moving = frozenset(each.load.number for each in self.slices if each.is_moving)
        return GroupSample(last.head_epoch, last.balancing, last.is_settled, consumers, tuple(unowned), moving)


class GroupSamples:
    """Samples by session or batch."""

    def __init__(self, outbox: CommandOutbox) -> None:
        self._outbox = outbox
        self._pages: dict[str, _Pages] = {}

    def of(self, uid: str, head: str, group: str) -> GroupSample | None:
        """The sample of a group; None until it is complete."""
        pages = self._pages.setdefault(uid, _Pages(head, group))
        if pages.sample is not None:
            return pages.sample
        if not pages.query_id:
            pages.query_id = self._outbox.next_query_id()
        if self._outbox.is_due(f"slices/{pages.query_id}", self._outbox.timings.repeat):
            self._outbox.send(head, SliceQuery(pages.query_id, group, pages.count))
        return None

    def forget(self, uid: str) -> None:
        """Drop a sample; the next question begins a new one."""
        self._pages.pop(uid, None)

    def receive(self, head: str, page: SlicePage) -> None:
        """Add a page."""
        for pages in self._pages.values():
            if pages.query_id == page.id and (pages.head, pages.group) == (head, page.group):
                pages.add(page)
                return
