"""Topics of a cluster that are owned singly: all subscribers of a topic go to one edge.

Tao, Poslad, Bigham 2013, IV.A, principle 1. Which edge takes a new topic is the placer's choice; while a session moves
a topic its mediator assigns it to the target, where newcomers then go at once. Memory is bounded by subscribers: topics
without a unit are forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from plimsoll.core.head.unit_owners import UnitOwners
from plimsoll.core.policies.model.topic_requirements import topic_attribute
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import hash_of_unit
from plimsoll.core.spec.types.policy import PolicySpec

REPORTED_AT_MOST: Final = 1024
"""Owners in a load report of the head; edges report the loads of topics themselves."""

FORGET_ABOVE: Final = 1024
"""Owners above which those without a unit are looked for, whenever there are twice as many as after the last time."""


class TopicOwners(UnitOwners[int]):
    """`owners`: edges by the hash of the topic."""

    def __init__(self, policy: PolicySpec | None) -> None:
        super().__init__()
        self._forget_above = FORGET_ABOVE
        self._doubtful: set[int] = set()
        """Topics whose owner was gone, and of which no unit has attached anywhere since."""
        self.take_policy(policy)

    def take_policy(self, policy: PolicySpec | None) -> None:
        """Begin, go on or end with topics as a policy wants it."""
        attribute = topic_attribute(policy)
        if attribute != self.attribute:
            self.owners, self._doubtful = {}, set()
        self.attribute = attribute

    def key_of(self, unit: int) -> int:
        return unit

    def edge_lost(self, edge: str, served: Mapping[str, str]) -> None:
        """An edge is gone: its topics are those of the edges that serve their units by now, or soon will.

        Units that could not reach it may have been sent elsewhere before this head has learned that it is gone, or will
        be after it is back. `served`: the edge of each subscriber.
        """
        lost = {topic for topic, owner in self.owners.items() if owner == edge}
        elsewhere = {name: other for name, other in served.items() if other != edge and hash_of_unit(name) in lost}
        for topic in {hash_of_unit(name) for name in elsewhere} & lost:
            del self.owners[topic]
        self.adopt(elsewhere)
        self._doubtful |= {topic for topic in lost if self.owners.get(topic) == edge}

    def attached(self, subscriber: str, edge: str) -> None:
        topic = hash_of_unit(subscriber) if self.is_used else None
        if topic in self._doubtful:
            self._doubtful.discard(topic)
            self.owners.pop(topic, None)
        super().attached(subscriber, edge)

    def take_table(self, table: msg.BundleTable) -> bool:
        """Take over what a mediator assigns; False if it speaks of ranges, or there are no such topics here."""
        if not self.is_used or table.boundaries:
            return False
        for assigned in table.assigned:
            self.owners[assigned.low] = assigned.edge
            self._doubtful.discard(assigned.low)
        return True

    def forget(self, served: Collection[str]) -> None:
        """Forget topics without a unit, if there may be many. `served`: the names of all subscribers."""
        if len(self.owners) > self._forget_above:
            topics = {hash_of_unit(name) for name in served}
            self.owners = {topic: edge for topic, edge in self.owners.items() if topic in topics}
            self._doubtful &= self.owners.keys()
            self._forget_above = max(FORGET_ABOVE, 2 * len(self.owners))

    def report(self) -> dict[str, Any]:
        """Fields of a head's load report: the edge of each topic that has one."""
        if not self.is_used:
            return {}
        some: Iterable[tuple[int, str]] = sorted(self.owners.items())[:REPORTED_AT_MOST]
        return {"topic_owners": {f"{topic:08x}": edge for topic, edge in some}, "owned_topics": len(self.owners)}
