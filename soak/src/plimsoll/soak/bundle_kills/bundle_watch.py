"""What is read of a fleet with bundles during a cell: the store's ranges, the head's owners, what edges serve.

Ranges and owners are right when the head has the ranges of the store, every unit is served, at the edge that owns its
bundle, and no session is open. Load reports say so, half a second apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plimsoll.core.policies.model.bundle_load import reported_bundles
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition, partition_of

Report = Mapping[str, Any]


def owners_of(head: Report) -> dict[str, str]:
    """By bundle its edge, as the head reports it."""
    return {str(name): str(edge) for name, edge in (head.get("bundle_owners") or {}).items()}


def units_at(edges: Sequence[Report]) -> int:
    """How many units the edges serve together."""
    return sum(load.sessions for report in edges for load in reported_bundles(report))


def largest_bundle(edges: Sequence[Report]) -> HashRange:
    """The bundle with most units, of those with several topics."""
    loads = [load for report in edges for load in reported_bundles(report) if load.topics > 1]
    return max(loads, key=lambda load: (load.sessions, load.bundle)).bundle


def stored_ranges(cluster: Mapping[str, Any], initial: int) -> Partition:
    """The ranges that the store has; those of the policy, if no session has divided them."""
    memory = ((cluster.get("status") or {}).get("policyMemory") or {}).get("memory") or {}
    return partition_of(memory.get("boundaries")) or Partition.of_count(initial)


def faults(head: Report, edges: Sequence[Report], stored: Partition, units: int, open_sessions: int) -> Iterator[str]:
    """What is wrong with ranges and owners, a sentence each."""
    if (known := head.get("bundles")) != len(stored):
        yield f"the head has {known} bundles, and the store {len(stored)}"
    owners, names = owners_of(head), {bundle.name for bundle in stored.ranges}
    yield from (f"the head names an owner of {name}, which is no bundle" for name in sorted(owners.keys() - names))
    for report in edges:
        for load in (each for each in reported_bundles(report) if each.sessions):
            name, edge = load.bundle.name, str(report["broker"])
            if name not in names:
                yield f"{edge} serves units of {name}, which is no bundle"
            elif owners.get(name) != edge:
                yield f"{edge} serves units of {name}, and {owners.get(name) or 'no edge'} owns it"
    if (served := units_at(edges)) != units:
        yield f"{served} of {units} units are served"
    if open_sessions:
        yield f"{open_sessions} sessions are open"
