"""The bundles of a cluster for its status: where each is, and what it brings, as head and edges report it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plimsoll.core.policies.model.bundle_load import BundleLoad, reported_bundles
from plimsoll.core.policies.model.hash_ranges import HashRange, partition_of
from plimsoll.mediator.resource_status import ObservedBroker


def bundle_status(head: ObservedBroker, edges: Sequence[ObservedBroker], memory: object = None) -> dict[str, Any]:
    """`bundles`, in the order of their ranges; nothing where the policy has none.

    `memory`: `policyMemory` of the cluster's status, which has the ranges of bundles that no subscriber has asked for.
    """
    owners = (head.report or {}).get("bundle_owners")
    if not isinstance(owners, Mapping):
        return {}
    loads: dict[HashRange, list[BundleLoad]] = {}
    for edge in edges:
        for load in reported_bundles(edge.report or {}):
            loads.setdefault(load.bundle, []).append(load)
    known = {str(name): str(edge) for name, edge in owners.items()}
    named = {*known, *(bundle.name for bundle in loads), *_ranges(memory)}
    return {"bundles": [_row(name, known.get(name, ""), loads) for name in sorted(named) if _is_range(name)]}


def _ranges(memory: object) -> Iterable[str]:
    kept = memory.get("memory") if isinstance(memory, Mapping) else None
    parted = partition_of(kept.get("boundaries")) if isinstance(kept, Mapping) else None
    return () if parted is None else (bundle.name for bundle in parted.ranges)


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
