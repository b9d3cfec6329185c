"""Covering updates of edges and neighbours, in turns: no link's updates delay the others by more than its turn.

Rules:
- A round does a bounded amount of work on covering updates. When that is used up, a link waits from its next update on:
  all that it sends after that, in order, so that nothing passes an update on its own link.
- An update is one step (P4 in docs/handover.md, 1), so one message may exceed what is left of a round, never two.
- A frame's credit is returned once all of it is done: a link has at most its window waiting.
- What waits on a link that is lost is void, but for its publications: those have been acknowledged to their sender.
- A RESUME waits until all edges have reported to a head that has recovered: another edge may have its place.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, Protocol

from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import Link

HALF_ROUND_UNITS = 4_000
"""Work on covering updates in one round, a millisecond as they arrive and one in turns; a unit is some quarter of a
microsecond."""
TURN_UNITS = 2_000
MESSAGE_UNITS = 100
"""Of a message that has waited, beside what it changes in covers."""

COVERING = frozenset({msg.Cover, msg.ResumeUp, msg.CutRequest, msg.NeighborReport, msg.EdgeReport})
"""Messages that carry a covering update."""

BrokerMessage = msg.FromEdge | msg.BetweenHeads | msg.FromClient


class WaitingMessage(NamedTuple):
    """A message that came behind an update for which its round had no time. None: it could not be read."""

    message: BrokerMessage | None
    ends_frame: bool


class TurnsContext(Protocol):
    """What the turns need of a head."""

    covers: CoverUpdates

    def is_early(self, message: BrokerMessage | None, /) -> bool:
        """Whether a message has to wait, however much time there is."""

    def deal(self, link: Link, message: BrokerMessage | None, ends_frame: bool, /) -> None:
        """Deal with a message now, and return the credit of the frame that it ends."""


class CoverTurns:
    """`waiting`: the messages of each link that waits, in order; the link whose turn is next comes first."""

    def __init__(self, host: TurnsContext) -> None:
        self.host = host
        self.waiting: dict[Link, deque[WaitingMessage]] = {}
        self._left = HALF_ROUND_UNITS

    @property
    def has_work(self) -> bool:
        """Whether a link waits for nothing but time."""
        return any(not self.host.is_early(queue[0].message) for queue in self.waiting.values())

    def take(self, link: Link, message: BrokerMessage | None, ends_frame: bool) -> None:
        """Take an update, or a message of a link that waits; deal with it now if the round has time for it."""
        queue = self.waiting.get(link)
        if queue is not None:
            queue.append(WaitingMessage(message, ends_frame))
        elif self._left > 0 and not self.host.is_early(message):
            self._left -= self._deal(link, WaitingMessage(message, ends_frame))
        else:
            self.waiting[link] = deque([WaitingMessage(message, ends_frame)])

    def tick(self) -> None:
        """A turn for each link that waits, as long as there is time left; after that a round begins."""
        self._left = HALF_ROUND_UNITS
        for link in list(self.waiting) if self.waiting else ():
            if self._left <= 0:
                break
            queue = self.waiting.pop(link)
            self._turn(link, queue)
            if queue:
                self.waiting[link] = queue  # behind the others
        self._left = HALF_ROUND_UNITS

    def drop(self, link: Link) -> list[msg.Pub | msg.Gap]:
        """The link is over: forget what waits; returns the publications and gaps among it."""
        queue = self.waiting.pop(link, ())
        return [each.message for each in queue if isinstance(each.message, msg.Pub | msg.Gap)]

    def _turn(self, link: Link, queue: deque[WaitingMessage]) -> None:
        units = 0
        while queue and units < TURN_UNITS and self._left > 0 and not self.host.is_early(queue[0].message):
            spent = MESSAGE_UNITS + self._deal(link, queue.popleft())
            units += spent
            self._left -= spent

    def _deal(self, link: Link, each: WaitingMessage) -> int:
        """Deal with a message; returns the units of work on covers."""
        before = self.host.covers.units_spent
        self.host.deal(link, each.message, each.ends_frame)
        return self.host.covers.units_spent - before
