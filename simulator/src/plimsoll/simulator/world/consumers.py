"""Consumers of a group: applications that take an item, work on it, and take the next; and when each comes and goes.

A consumer writes down each item that it was given and when it finished it. One whose slice is gone by then has finished
it for nothing: another consumer may have been given it meanwhile, marked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from plimsoll.core import client as c
from plimsoll.core.config import DeclaredGroup
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_name
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.engine.host import SimulatedHost

GROUP = "readings"
GROUP_ATTRIBUTE = "v"
"""What its slices are divided by. Some publications have a value that is no whole number: they are in no slice."""

TAKING_SECONDS = 1e-9
"""Between two items that are taken together: their order is that of the times at which they were given."""


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """A consumer group of the first cluster: a consumer for each of `consumers` is there from the start.

    `changes`: how often one leaves, or a further one joins. `work_seconds`: the least and the most that an item takes,
    drawn once for each consumer, so that the slow ones are to give slices to others. `in_hand`: the most items that one
    has at a time; half of the consumers finish the newest first, and then take as many again. `clusters`: over which
    consumers are spread in turn; with more than one the group is declared, with one if
    `is_declared`.
    """

    slices: int = 5
    consumers: int = 3
    changes: int = 4
    work_seconds: tuple[float, float] = (0.001, 0.03)
    in_hand: int = 3
    balancing: str = "Rates"
    in_session: str = "Deliver"
    clusters: int = 1
    is_declared: bool = False

    def home(self, consumer: str, heads: Sequence[str]) -> str:
        """The head that a consumer connects to."""
        return heads[int(consumer.removeprefix("g")) % self.clusters]

    def declared(self, head: str) -> tuple[DeclaredGroup, ...]:
        """The group as heads are started with it, if it is declared; `head`: of its cluster."""
        if self.clusters == 1 and not self.is_declared:
            return ()
        what = self.definition()
        return (
            DeclaredGroup(
                cluster=head, name=GROUP, filter=what.filter, count=what.count, function=what.function, by=what.by,
                balancing=what.balancing, in_session=what.in_session, head=head,
            ),
        )  # fmt: skip

    def definition(self) -> msg.GroupDefinition:
        return msg.GroupDefinition(
            "", self.slices, "Modulo", GROUP_ATTRIBUTE, balancing=self.balancing, in_session=self.in_session
        )


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """At a time, a consumer leaves, or joins."""

    at: float
    consumer: str
    joins: bool


def draw_consumer_changes(load: GroupLoad, rng: random.Random, start: float, seconds: float) -> list[PlannedChange]:
    """All changes in time order; the first consumer never leaves, so each slice can have a consumer at the end."""
    there, found = [f"g{i}" for i in range(load.consumers)], list[PlannedChange]()
    total = load.consumers
    for at in sorted(start + rng.uniform(0.0, seconds) for _ in range(load.changes)):
        if len(there) > 1 and rng.random() < 0.5:
            found.append(PlannedChange(at, there.pop(rng.randrange(1, len(there))), joins=False))
        else:
            there.append(f"g{total}")
            total += 1
            found.append(PlannedChange(at, there[-1], joins=True))
    return found


@dataclass(slots=True)
class GroupConsumer:
    """What one process does as a consumer, through all its lives. `is_leaving`: it has been asked to."""

    name: str
    load: GroupLoad
    work_seconds: float
    in_hand: int
    newest_first: bool
    host: SimulatedHost
    observe: Callable[[seen.Observation], None]
    is_leaving: bool = False
    life: int = 0
    member: c.GroupMember | None = None
    hand: list[tuple[c.HandedItem, float]] = field(default_factory=list)
    due: float = 0.0
    changes: dict[str, int] = field(default_factory=dict)
    edges: dict[str, str] = field(default_factory=dict)

    def start(self, client: c.Client) -> None:
        self.life += 1
        self.member = client.group_member(GROUP, self.name, self.load.definition())

    def leave(self) -> None:
        """Give up all slices; the process ends once it has none."""
        self.is_leaving = True
        if self.member is not None:
            self.member.leave()

    @property
    def has_left(self) -> bool:
        return self.is_leaving and (self.member is None or self.member.has_left)

    def crash(self) -> None:
        """SIGKILL: what it has in hand is never finished."""
        for handed, at in self.hand:
            self._note(handed, at, None)
        self.member, self.hand, self.edges = None, [], {}

    def take_event(self, event: object) -> None:
        if isinstance(event, c.SlicesChanged):
            self.changes[event.why] = self.changes.get(event.why, 0) + len(event.came) + len(event.went)
        elif isinstance(event, c.GroupFailed):
            what = f"failure: {event.code}: {event.text}"
            self.observe(seen.ResidueObserved(self.name, what, 1, self.host.schedule.now))

    def note_edges(self, now: float) -> None:
        """Write down which edge serves each slice from now on."""
        if self.member is None:
            return
        serving = {owned.name: edge for owned in self.member.slices.values() if (edge := _edge_of(owned))}
        for name, edge in serving.items():
            if self.edges.get(name) != edge:
                self.observe(seen.AttachmentObserved(name, 0, edge, now))
        self.edges = serving

    def work(self, now: float) -> None:
        """Finish what is due, and take the next items; called in each round of the process."""
        while (member := self.member) is not None:
            if self.hand and now < self.due:
                self.host.wake(self.due - now)
                return
            if self.hand:
                self._finish(member, *self.hand.pop(-1 if self.newest_first else 0), now)
            if not self.hand or not self.newest_first:
                taken = member.items.take(self.in_hand - len(self.hand))
                self.hand += [(handed, now + i * TAKING_SECONDS) for i, handed in enumerate(taken)]
            if not self.hand:
                return
            self.due = now + self.work_seconds

    def _finish(self, member: c.GroupMember, handed: c.HandedItem, taken_at: float, now: float) -> None:
        is_held = member.slices.get(handed.owned.slice) is handed.owned
        self._note(handed, taken_at, now if is_held else None)
        member.items.finish(handed)

    def _note(self, handed: c.HandedItem, taken_at: float, until: float | None) -> None:
        item, owned = handed.item, handed.owned
        if isinstance(item, c.GapNotice):
            gap = item.gap
            self.observe(
                seen.GapObserved(
                    slice_name(GROUP, owned.slice), 0, gap.head, gap.low_epoch, gap.low, gap.epoch, gap.high, gap.last,
                    gap.reason, taken_at,
                )
            )  # fmt: skip
            return
        self.observe(
            seen.SliceItemObserved(
                GROUP, owned.slice, f"{self.name}/{self.life}", item.identity, handed.is_redelivered, taken_at, until
            )
        )


def _edge_of(owned: c.ClientSubscriber) -> str:
    """The edge that serves a slice; empty if none does yet."""
    current = owned.current
    is_live = current is not None and current.state is c.attachment.ClientAttachmentState.LIVE
    return current.port.edge if current is not None and is_live else ""
