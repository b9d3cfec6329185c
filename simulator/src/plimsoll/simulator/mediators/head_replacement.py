"""Heads that are drained of publishers and then replaced, as a user or the operator does it.

A head is cordoned from the request of its drain on, as it is then; once the drain has ended well its process is killed
and another one started. No publication may be `unknown` by that.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from plimsoll.core import session as s
from plimsoll.core.protocol import messages as msg
from plimsoll.core.spec.kinds import LoadBalancingSessionSpec
from plimsoll.simulator.world.brokers import SimulatedFleet

DOWN_SECONDS = (0.05, 0.4)
ALL_PERCENT = 100


class HeadReplacement:
    """`cordons`: by head, up to which epoch it takes no new publishers. `replaced`: heads that were, in their order."""

    def __init__(self, fleet: SimulatedFleet, rng: random.Random) -> None:
        self._fleet, self._rng = fleet, rng
        self.cordons: dict[str, int] = {}
        self.replaced: list[str] = []
        self._dealt_with: set[str] = set()

    def requested(self, spec: LoadBalancingSessionSpec) -> None:
        """Cordon the head of a drain."""
        share = spec.select.share_percent if spec.select is not None else None
        if spec.action == "MovePublishers" and share == ALL_PERCENT and spec.source is not None:
            self.cordons[spec.source.name] = self._fleet.brokers[spec.source.name].epoch

    def saved(self, session: s.Session) -> None:
        """Replace the head of a drain that has ended well."""
        if session.uid in self._dealt_with or not session.is_over or session.reason != "Drained":
            return
        self._dealt_with.add(session.uid)
        head = session.sources[0]
        if self._fleet.brokers[head].epoch == self.cordons.get(head):
            self.replaced.append(head)
            self._fleet.crash(head)
            self._fleet.schedule.after(self._rng.uniform(*DOWN_SECONDS), self._fleet.start, head)

    def is_cordoned(self, head: str, epoch: int) -> bool:
        """Whether a head of this epoch takes no new publishers."""
        return epoch <= self.cordons.get(head, 0)

    def members(self, head: str, epochs: Mapping[str, int]) -> msg.ClusterMembers:
        """What a head is told. `epochs`: of the heads that have reported lately."""
        others = [
            msg.HeadAddress(name, self._fleet.brokers[name].config.data, "")
            for name, epoch in sorted(epochs.items())
            if name != head and not self.is_cordoned(name, epoch)
        ]
        return msg.ClusterMembers(self._fleet.shape.edges_of(head), [], self.cordons.get(head, 0), others)
