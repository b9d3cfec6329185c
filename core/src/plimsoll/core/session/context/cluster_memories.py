"""What policies remember of each cluster: values that are stored in the status of the cluster.

The engine changes them at its looks and asks the shell to store each change; a new life of the mediator begins with
what it finds in the view of the fleet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.core.policies.rebalancer import MEMORY_BYTES, Memory
from plimsoll.core.session.inputs import FleetView


def stored_memory(policy: str, memory: Memory) -> dict[str, Any]:
    """The value as it is stored: with the name of the policy, since another one cannot read it."""
    return {"policy": policy, "memory": dict(memory)}


def is_bounded(memory: Memory) -> bool:
    """Whether a memory is small enough to be stored, and is JSON."""
    try:
        return len(json.dumps(dict(memory), allow_nan=False)) <= MEMORY_BYTES
    except (TypeError, ValueError):
        return False


def stored_of(fleet: FleetView, cluster: str, policy: str) -> Memory:
    """What the store has of a policy's memory, as it was last seen; nothing if another policy was at work."""
    stored = fleet.memories.get(cluster, {})
    memory = stored.get("memory")
    return memory if stored.get("policy") == policy and isinstance(memory, Mapping) else {}


@dataclass
class ClusterMemories:
    """By cluster: the name of the policy, and its memory."""

    known: dict[str, tuple[str, Memory]] = field(default_factory=dict)

    def adopt(self, fleet: FleetView) -> None:
        """Take the stored value of each cluster that this life knows nothing of yet."""
        for cluster, stored in fleet.memories.items():
            if cluster not in self.known:
                memory = stored.get("memory")
                self.known[cluster] = str(stored.get("policy", "")), memory if isinstance(memory, Mapping) else {}

    def of(self, cluster: str, policy: str) -> Memory:
        """What a policy remembers of a cluster; nothing if another one was at work before."""
        name, memory = self.known.get(cluster, ("", {}))
        return memory if name == policy else {}

    def put(self, cluster: str, policy: str, memory: Memory) -> bool:
        """Remember a value; returns whether it is another one. One that is too large is dropped."""
        value = (policy, memory if is_bounded(memory) else {})
        is_new = self.known.get(cluster) != value
        self.known[cluster] = value
        return is_new
