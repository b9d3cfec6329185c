"""From an edge of the queueing model to its head: messages and covering updates, with the delay of the link."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import OwnerEpoch
from plimsoll.simulator.queueing.edge import QueueingEdge
from plimsoll.simulator.queueing.head import QueueingHead
from plimsoll.simulator.queueing.overlay_paths import OverlayPaths
from plimsoll.simulator.queueing.pauses import Pauses, Way
from plimsoll.simulator.queueing.publications import Publication


class HandoverWorld(Protocol):
    """What hand-overs need of their world."""

    @property
    def edges(self) -> Mapping[str, QueueingEdge]: ...
    @property
    def heads(self) -> Mapping[str, QueueingHead]: ...
    @property
    def now(self) -> float: ...
    def at(self, at: float, action: Any, /, *args: object) -> None: ...
    def bit(self, subscriber: str, /) -> int: ...
    def mask(self, subscribers: Sequence[str], /) -> int: ...
    def texts(self, subscriber: str, /) -> tuple[str, ...]: ...
    @property
    def paths(self) -> OverlayPaths: ...
    @property
    def pauses(self) -> Pauses: ...
    def edge_for(self, subscriber: str, /) -> QueueingEdge:
        """The edge that the head of its cluster names."""

    @property
    def link_seconds(self) -> float: ...
    @property
    def client_seconds(self) -> float: ...


@dataclass(slots=True)
class MemberInTransit:
    """A member between START_MOVE or REVOKE and its end. `missed`: what it asks the log for, by replay.

    `silent_from`: when the last delivery of its source reached it. By lookup it has no `target` before it is told one.
    """

    session: str
    epoch: OwnerEpoch
    source: str
    target: str
    is_installed: bool = False
    has_go: bool = False
    way: Way = "drain"
    silent_from: float = math.inf
    missed: list[Publication] = field(default_factory=list)


class Upward:
    """`receive` is called at the head with each message of an edge."""

    def __init__(self, world: HandoverWorld, receive: Callable[[QueueingEdge, msg.FromEdge], None]) -> None:
        self.world, self.receive = world, receive

    def send(self, edge: QueueingEdge, message: msg.FromEdge) -> None:
        edge.count_sent((message,))
        self.world.at(self.world.now + self.world.link_seconds, self.receive, edge, message)

    def cover(self, edge: QueueingEdge, covers: Sequence[msg.Cover], adds: int, removes: int) -> None:
        edge.count_sent(covers)
        self.world.at(self.world.now + self.world.link_seconds, self._covered, edge, covers, adds, removes)

    def _covered(self, edge: QueueingEdge, covers: Sequence[msg.Cover], adds: int, removes: int) -> None:
        head = self.world.heads[edge.config.head_name]
        for cover in covers:
            head.apply_cover(edge.name, cover)
        head.routed[edge.name] = (head.routed[edge.name] | adds) & ~removes
        self.world.paths.changed()
