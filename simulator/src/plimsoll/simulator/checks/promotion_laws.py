"""The law of heads that are lost with their nodes: publishers publish again within the lease and a second.

Nothing tells the peers of such a head: their connections stay, and are silent. The next one waits for edges that are
lost with it for no longer than `ABSENT_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plimsoll.core.head.machine import Head
from plimsoll.core.head.standby.leadership import LEASE_SECONDS
from plimsoll.core.head.startup import ABSENT_SECONDS
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.world.applications import SimulatedApplications
from plimsoll.simulator.world.brokers import SimulatedFleet

WITHIN_SECONDS = LEASE_SECONDS + 1.0


class PromotionLaws:
    """`add`: takes each breach."""

    def __init__(
        self,
        fleet: SimulatedFleet,
        apps: SimulatedApplications,
        schedule: EventQueue,
        add: Callable[[seen.ResidueObserved], None],
    ) -> None:
        self._fleet, self._apps, self._schedule, self._add = fleet, apps, schedule, add
        self.checked = 0

    def node_lost(self, head: str, with_edge: bool) -> None:
        """This head has been lost: look in time whether its standby has taken over all that is to it."""
        starts, within = self._fleet.brokers[head].starts, WITHIN_SECONDS + (ABSENT_SECONDS if with_edge else 0.0)
        self._schedule.after(within, self._check, head, starts, within)

    def _check(self, head: str, starts: int, within: float) -> None:
        if self._fleet.brokers[head].starts != starts + 1 or not self._fleet.brokers[head].is_up:
            return  # the next one has been lost as well
        self.checked += 1
        for what in self._breaches(head):
            self._add(seen.ResidueObserved(head, f"{within:g} s after its loss {what}", 1, self._schedule.now))

    def _breaches(self, head: str) -> Iterator[str]:
        """What keeps a publisher from being answered now."""
        broker = self._fleet.brokers[head]
        node = broker.host.node
        if not isinstance(node, Head) or node.startup.is_starting:
            yield "it still waits for others"
        for process in self._apps.processes.values():
            client = process.client
            if process.head != head or client is None:
                continue
            link = client.home_link
            if link is None or not link.open or link.incarnation != broker.epoch:
                yield f"{process.name} has not found its successor"
            for name in process.publishers:
                if not client.publishers[name].is_open:
                    yield f"{name} is not open"
