"""The bundles of a cluster for its status: where each is, and what it brings, as head and edges report it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.core.policies.model.bundle_load import BundleLoad, reported_bundles
from plimsoll.core.policies.model.hash_ranges import HashRange, partition_of
from plimsoll.mediator.resource_status import ObservedBroker


def bundle_status(head: ObservedBroker, edges: Sequence[ObservedBroker], memory: object = None) -> dict[str, Any]:
    """`bundles`, in the order of their ranges; nothing where the policy has none.

    `memory`: `policyMemory` of the cluster's status, which has all ranges as they are divided now.
    """
    owners = (head.report or {}).get("bundle_owners")
    if not isinstance(owners, Mapping):
        return {}
    loads: dict[HashRange, list[BundleLoad]] = {}
    for edge in edges:
        for load in reported_bundles(edge.report or {}):
            loads.setdefault(load.bundle, []).append(load)
    known = {str(name): str(edge) for name, edge in owners.items() if _is_range(str(name))}
    stored = _ranges(memory)
    if not stored:
        names = {*known, *(bundle.name for bundle in loads)}
        return {"bundles": [_row(name, known.get(name, ""), loads) for name in sorted(names)]}
    edges_of = {HashRange.of_name(name): edge for name, edge in known.items()}
    return {"bundles": [_row(bundle.name, _owner(bundle, edges_of), loads) for bundle in stored]}


def _ranges(memory: object) -> Sequence[HashRange]:
    """As they are stored: after a split some brokers still report the whole, and others its halves."""
    kept = memory.get("memory") if isinstance(memory, Mapping) else None
    parted = partition_of(kept.get("boundaries")) if isinstance(kept, Mapping) else None
    return () if parted is None else parted.ranges


def _owner(bundle: HashRange, owners: Mapping[HashRange, str]) -> str:
    """The owner that the head reports, or that of the whole, if it has not heard of the split yet."""
    found = owners.get(bundle)
    if found is not None:
        return found
    wholes = (edge for whole, edge in owners.items() if whole.low <= bundle.low and bundle.end <= whole.end)
    return next(wholes, "")


def _is_range(name: str) -> bool:
    try:
        HashRange.of_name(name)
    except ValueError:
        return False  # of a head of a later version
    return True


def _row(name: str, edge: str, loads: Mapping[HashRange, Sequence[BundleLoad]]) -> dict[str, Any]:
    some = loads.get(HashRange.of_name(name), ())
    return {
        "name": name,
        **({"edge": edge} if edge else {}),
        "topics": max((load.topics for load in some), default=0),
        "sessions": sum(load.sessions for load in some),
        "publicationsPerSecond": round(max((load.input_rate for load in some), default=0.0)),
        "deliveriesPerSecond": round(sum(load.output_rate for load in some)),
        "bytesPerSecond": round(sum(load.throughput for load in some)),
    }
