"""The applications of the model: publishers publish at their times, subscribers join and leave at theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from plimsoll.core.protocol import messages as msg
from plimsoll.core.spec.brokers import head_name
from plimsoll.simulator.queueing.edge import QueueingEdge
from plimsoll.simulator.queueing.handover import Handovers
from plimsoll.simulator.queueing.head import QueueingHead
from plimsoll.simulator.queueing.overlay_paths import OverlayPaths
from plimsoll.simulator.queueing.publications import ContentTable, Publication
from plimsoll.simulator.queueing.traffic import Traffic, TrafficPublisher, TrafficSubscriber


@dataclass(slots=True)
class Counts:
    """What was published and delivered. Of topics with a deadline: deliveries, and those that came late, by topic."""

    published: int = 0
    delivered: int = 0
    of_topics: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)


class ApplicationWorld(Protocol):
    """What applications need of their world."""

    contents: ContentTable
    counts: Counts
    handovers: Handovers
    paths: OverlayPaths
    heads: dict[str, QueueingHead]
    edges: dict[str, QueueingEdge]

    @property
    def now(self) -> float: ...
    def at(self, at: float, action: Any, /, *args: object) -> None: ...
    @property
    def link_seconds(self) -> float: ...
    @property
    def publisher_seconds(self) -> float: ...
    def bit(self, subscriber: str, /) -> int: ...
    def edge_for(self, subscriber: str, /) -> QueueingEdge: ...


class QueueingApplications:
    """The publishers and subscribers of a run."""

    def __init__(self, world: ApplicationWorld) -> None:
        self.world = world

    def plan(self, traffic: Traffic) -> None:
        """Schedule all that they do."""
        for publisher in traffic.publishers:
            self.world.at(publisher.begins_at, self._publish, publisher, 0, publisher.begins_at)
        by_name = {each.name: each for each in traffic.subscribers}
        for head in self.world.heads.values():
            at_home = {x: own.prefer for x, own in by_name.items() if _is_at_home(own, head)}
            head.bundles.adopt(at_home)
            head.topics.adopt(at_home)
        for subscriber in traffic.subscribers:
            self.world.at(subscriber.joins_at, self._join, subscriber)
            if subscriber.leaves_at != float("inf"):
                self.world.at(subscriber.leaves_at, self.leave, subscriber)

    def _publish(self, publisher: TrafficPublisher, number: int, due: float) -> None:
        world = self.world
        if publisher.publishes_at(due):
            content = world.contents.content(publisher, number)
            world.counts.published += 1
            pub = Publication(publisher.name, content, world.now, content.mask)
            world.at(world.now + world.publisher_seconds, world.heads[publisher.head].take, pub)
            number += 1
        if (after := publisher.after(due)) != float("inf"):
            world.at(after, self._publish, publisher, number, after)

    def _join(self, subscriber: TrafficSubscriber) -> None:
        world = self.world
        edge = world.edge_for(subscriber.name)
        edge.advance(world.now)
        covers = edge.attach(subscriber.name, subscriber.subscriptions, (1, 1))
        edge.count_sent((*covers, msg.ResumeUp))
        world.at(world.now + world.link_seconds, self._joined, subscriber.name, edge, covers)

    def _joined(self, name: str, edge: QueueingEdge, covers: Sequence[msg.Cover]) -> None:
        world = self.world
        head = world.heads[edge.config.head_name]
        for cover in covers:
            head.apply_cover(edge.name, cover)
        head.join(name, edge.name)
        head.routed[edge.name] |= world.bit(name)
        world.paths.changed()
        world.handovers.replays.resume_in_stream(head, edge, name, (1, 1))

    def leave(self, subscriber: TrafficSubscriber) -> None:
        """A subscriber, or a unit of one, ends, also in the middle of a hand-over."""
        world, name = self.world, subscriber.name
        world.handovers.leave(name)
        for head in world.heads.values():
            owner = head.owners.entries.get(name)
            if owner is not None:
                edge = world.edges[owner.edge]
                edge.advance(world.now)
                edge.stop_serving(name)
                for cover in edge.withdraw([name]):
                    head.apply_cover(edge.name, cover)
                head.routed[edge.name] &= ~world.bit(name)
                head.owners.forget(name, world.now)
                head.coordinator.lapsed(name, owner.epoch)
                head.plan_tick()
        world.paths.changed()


def _is_at_home(subscriber: TrafficSubscriber, head: QueueingHead) -> bool:
    """Whether it names an edge of this head: in a World of a running fleet bundles have their owners already."""
    return bool(subscriber.prefer) and head_name(subscriber.cluster) == head.name
