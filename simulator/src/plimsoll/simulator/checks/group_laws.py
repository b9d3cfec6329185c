"""The laws of a consumer group: each slice has one consumer that runs, and consumers and head agree which it is.

At all times: no two consumers that run have the same slice under the same assignment. Once all faults have healed: each
consumer that runs is a member and has finished what it was sent, each slice is held by one of them, no slice is on its
way, and no consumer is idle without need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from plimsoll.core import client as c
from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.machine import Head
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.world.brokers import SimulatedFleet
from plimsoll.simulator.world.consumers import GROUP, GroupConsumer


class GroupLaws:
    """`consumers`: all of the run, running or not. `head`: the name of the group's head."""

    def __init__(
        self,
        fleet: SimulatedFleet,
        head: str,
        consumers: Callable[[], Iterable[GroupConsumer]],
        observe: Callable[[seen.Observation], None],
    ) -> None:
        self._fleet, self._head, self._consumers, self._observe = fleet, head, consumers, observe

    # -- at all times

    def measure(self, at: float) -> None:
        """Report an assignment that two consumers have."""
        having: dict[tuple[int, int], str] = {}
        for consumer, member in self._members():
            for owned in member.slices.values():
                other = having.setdefault((owned.slice, owned.assignment), consumer.name)
                if other != consumer.name:
                    what = f"slice {owned.slice} in assignment {owned.assignment} is had by {other} and {consumer.name}"
                    self._observe(seen.ResidueObserved(GROUP, what, 1, at))

    # -- once all faults have healed

    def leftovers(self, at: float) -> Iterator[seen.ResidueObserved]:
        for what in self._problems():
            yield seen.ResidueObserved(f"group {GROUP}", what, 1, at)

    def _problems(self) -> Iterator[str]:
        group = self._group()
        if group is None:
            yield "its head does not know it"
            return
        members = {consumer.name: member for consumer, member in self._members()}
        if sorted(group.members) != sorted(members):
            yield f"the head has members {sorted(group.members)}, and {sorted(members)} run"
        for each in group.slices:
            member = members.get(each.holder)
            owned = None if member is None else member.slices.get(each.number)
            if each.is_revoked:
                yield f"slice {each.number} is on its way to {each.taker!r}"
            elif owned is None or owned.assignment != each.epoch:
                yield f"slice {each.number} is assigned to {each.holder!r}, which does not have it"
        for consumer, member in self._members():
            if consumer.hand or member.items.has_any:
                yield f"items wait at {consumer.name}"
        emptied = {name for name, each in group.members.items() if each.is_emptied}  # by a session: it is to have none
        idle = sorted(name for name, member in members.items() if not member.slices and name not in emptied)
        if idle and len(members) <= len(group.slices):
            yield f"consumers without a slice, though there are enough: {idle}"

    def _group(self) -> ConsumerGroup | None:
        head = self._fleet.brokers[self._head].host.node
        return head.groups.by_name.get(GROUP) if isinstance(head, Head) else None

    def _members(self) -> Iterator[tuple[GroupConsumer, c.GroupMember]]:
        for consumer in self._consumers():
            if consumer.member is not None and not consumer.has_left:
                yield consumer, consumer.member

    def counts(self) -> dict[str, int]:
        """What has happened to slices, as consumers were told, and how many moves the present head has made."""
        found: dict[str, int] = {}
        for consumer in self._consumers():
            for why, count in consumer.changes.items():
                found[f"slices_{why}"] = found.get(f"slices_{why}", 0) + count
        group = self._group()
        if group is not None:
            found |= {f"caches_{why}": count for why, count in sorted(group.caches.counts.items())}
        return {**found, "slices_moved": 0 if group is None else group.counts["moved"]}
