"""The bundles of a head's cluster: their ranges, which edge owns each, and where a unit that joins belongs.

Owners are those of all units (`unit_owners.py`). Ranges come from a mediator, which stores them before; edges keep a
copy and report it, so that a restarted head has ranges and owners again without a mediator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plimsoll.core.head.unit_owners import UnitOwners
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition, partition_of
from plimsoll.core.protocol import messages as msg
from plimsoll.core.spec.types.policy import PolicySpec

Version = tuple[int, int]
"""How new a partition is: the mediator's epoch, and its number."""

FIRST: Version = (0, 0)
"""The version of the ranges that a policy begins with, of which no mediator has told yet."""


class Bundles(UnitOwners[HashRange]):
    """`attribute`: whose values are topics, empty under a policy without bundles. `owners`: edges by range."""

    def __init__(self, policy: PolicySpec | None) -> None:
        super().__init__()
        self.partition = Partition.of_count(1)
        self.version = FIRST
        self._released: dict[HashRange, int] = {}
        self.take_policy(policy)

    def take_policy(self, policy: PolicySpec | None) -> None:
        """Begin, go on or end with bundles as a policy wants it. Ranges that a mediator has told of stay."""
        own = policy.pulsar if policy is not None and policy.type == "Pulsar" else None
        if own is None or own.topic_attribute != self.attribute:
            self.version, self.owners = FIRST, {}
        self.attribute = "" if own is None else own.topic_attribute
        if own is not None and self.version == FIRST:
            self._divide(Partition.of_count(own.bundles.initial), FIRST)

    # -- what a mediator says, and what edges remember

    def take_table(self, table: msg.BundleTable) -> bool:
        """Take over what a mediator says, if it is no older than what is known; returns whether it is."""
        version = table.mediator, table.version
        if not self.is_used or not self.take_ranges(table.boundaries, version):
            return False
        for assigned in table.assigned:
            self.owners[self.partition.range_of(assigned.low)] = assigned.edge
        for released in table.released:
            bundle = self.partition.range_of(released.low)
            if self._released.get(bundle) != released.number:
                self._released[bundle] = released.number
                self.owners.pop(bundle, None)
        return True

    def take_ranges(self, boundaries: Iterable[int], version: Version) -> bool:
        """Divide the topics in another way, unless this is older than the present one or no partition."""
        parted = partition_of(boundaries)
        if parted is None or version < self.version:
            return False
        if parted != self.partition:
            self._divide(parted, version)
        self.version = version
        return True

    def _divide(self, partition: Partition, version: Version) -> None:
        """Halves of a bundle have its owner."""
        before = self.partition
        owners = {bundle: self.owners.get(before.range_of(bundle.low)) for bundle in partition.ranges}
        self.partition, self.version = partition, version
        self.owners = {bundle: edge for bundle, edge in owners.items() if edge is not None}
        self._released = {bundle: number for bundle, number in self._released.items() if partition.has(bundle)}

    def key_of(self, unit: int) -> HashRange:
        return self.partition.range_of(unit)

    # -- reports

    def report(self) -> dict[str, Any]:
        """Fields of a head's load report: the owner of each bundle that has one, and how new the ranges are."""
        if not self.is_used:
            return {}
        owners = {bundle.name: edge for bundle, edge in sorted(self.owners.items())}
        return {"bundle_owners": owners, "bundles": len(self.partition), "bundles_version": self.version[1]}

    def table(self, released: Iterable[msg.ReleasedBundle] = ()) -> msg.BundleTable:
        """What edges are told."""
        return msg.BundleTable(*self.version, list(self.partition.boundaries), [], list(released))
