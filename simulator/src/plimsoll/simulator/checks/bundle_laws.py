"""The laws of bundles: the ranges that brokers know are those of the store, and each bundle is at one live edge.

At all times: ranges divide all hashes, no broker knows ranges that the store has not had, and ranges never become
older: neither those of the store, nor within one life those of a broker. Bundles are split and never joined, so newer
ranges have all boundaries of older ones.

Once all faults have healed: the head has the ranges of the store, each bundle with units has one owner, that edge runs,
and it serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from plimsoll.core.edge.attachment import SERVED
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.protocol.topic_units import HASH_END, hash_of_unit
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.world.brokers import SimulatedFleet

Ranges = tuple[tuple[int, ...], tuple[int, int]]
"""Boundaries and their version."""


class BundleLaws:
    """`memory_of`: what the store holds of a cluster's policy."""

    def __init__(
        self,
        fleet: SimulatedFleet,
        memory_of: Callable[[str], Mapping[str, Any]],
        observe: Callable[[seen.Observation], None],
    ) -> None:
        self._fleet, self._memory_of, self._observe = fleet, memory_of, observe
        self._newest: dict[tuple[str, int], Ranges] = {}

    # -- at all times

    def measure(self, at: float) -> None:
        """Report what breaks a law that holds at all times."""
        for broker in self._fleet.brokers.values():
            memory = self._memory_of(broker.config.head_name)
            stored = _number(memory)
            known = _known(broker.host.node)
            if known is not None:
                self._compare(broker.name, broker.epoch, known, at)
                if known[1][1] > stored:
                    what = f"ranges of version {known[1][1]}, and the store has {stored}"
                    self._observe(seen.ResidueObserved(broker.name, what, 1, at))
            if broker.is_head and "boundaries" in memory:
                self._compare(f"store of {broker.name}", 0, (tuple(memory["boundaries"]), (0, stored)), at)

    def _compare(self, where: str, life: int, now: Ranges, at: float) -> None:
        """Compare ranges with those that were last known at the same place."""
        for what in _problems(now, self._newest.get((where, life), now)):
            self._observe(seen.ResidueObserved(where, what, 1, at))
        self._newest[where, life] = now

    # -- once all faults have healed

    def leftovers(self, at: float) -> Iterator[seen.ResidueObserved]:
        """Bundles that have no owner, one that is gone, or units at another edge; ranges that are not the store's."""
        for broker in self._fleet.heads():
            head = broker.host.node
            if isinstance(head, Head):
                for what in (*self._ranges(head), *self._owners(head)):
                    yield seen.ResidueObserved(broker.name, what, 1, at)

    def _ranges(self, head: Head) -> Iterator[str]:
        stored = self._memory_of(head.name).get("boundaries")
        known = head.bundles.partition.boundaries
        if stored is not None and tuple(stored) != known:
            yield f"ranges of bundles that are not those of the store: {len(known) - 1} instead of {len(stored) - 1}"

    def _owners(self, head: Head) -> Iterator[str]:
        for unit, edge in self._served(head.name):
            topic = hash_of_unit(unit)
            if topic is None:
                yield f"{unit} is served whole, and asks for a topic"
                continue
            bundle = head.bundles.partition.range_of(topic)
            owner = head.bundles.owners.get(bundle, "")
            if owner not in self._fleet.brokers or not self._fleet.brokers[owner].is_up:
                yield f"{bundle.name} is owned by {owner!r}, which is no edge that runs"
            elif owner != edge:
                yield f"{unit} of {bundle.name} is at {edge}, and {owner} owns the bundle"

    def _served(self, head: str) -> Iterator[tuple[str, str]]:
        """Every subscriber that an edge of a cluster serves, and the edge."""
        for broker in self._fleet.edges():
            if broker.config.head_name == head and isinstance(edge := broker.host.node, Edge):
                for name, attachment in sorted(edge.attachments.by_subscriber.items()):
                    if attachment.state in SERVED:
                        yield name, broker.name


def _known(node: object) -> Ranges | None:
    """The boundaries that a broker knows, and their version."""
    if isinstance(node, Head):
        return node.bundles.partition.boundaries, node.bundles.version
    if isinstance(node, Edge) and (meter := node.bundle_meter) is not None:
        return meter.partition.boundaries, meter.version
    return None


def _problems(now: Ranges, before: Ranges) -> Iterator[str]:
    boundaries, version = now
    is_rising = all(low < high for low, high in pairwise(boundaries))
    if boundaries[0] != 0 or boundaries[-1] != HASH_END or not is_rising:
        yield f"ranges of bundles that do not divide all hashes: {boundaries[:4]}"
    if version < before[1]:
        yield f"ranges of version {version} after those of {before[1]}"
    if not set(before[0]) <= set(boundaries):
        yield f"{len(boundaries) - 1} ranges that are not parts of the {len(before[0]) - 1} before"


def _number(memory: Mapping[str, Any]) -> int:
    found = memory.get("version", 0)
    return found if isinstance(found, int) else 0
