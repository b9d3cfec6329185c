"""The Pulsar policy: what it remembers of a cluster, when it asks for a plan, and the steps of one.

Its memory holds the partition of the topics, which is stored before any broker is told of it. Splits happen at a look,
since nothing moves by them; bundles move by the steps of a plan.

Where the letter of the text goes on for ever or makes things worse (docs/pulsar.md), `rules` decide: Plimsoll's take a
move only if it brings the higher of both usages down, shed only while the present usage asks for it, too, ask for no
plan for an edge with one bundle, which it keeps, and relieve overloaded edges first.
"""

# ruff: noqa: RUF009  # frozen values, safe as defaults

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from plimsoll.core.policies.model.bundle_load import BundleLoad
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition, partition_of
from plimsoll.core.policies.model.load import ResourceThresholds
from plimsoll.core.policies.pulsar.bundle_moves import BundleMoves
from plimsoll.core.policies.pulsar.fleet import PulsarFleet, pulsar_fleet
from plimsoll.core.policies.pulsar.placer import LeastLongTermMessageRate
from plimsoll.core.policies.pulsar.shedding import (
    AvgThresholds,
    Relief,
    Shedder,
    avg_reliefs,
    pair_hits,
    threshold_reliefs,
)
from plimsoll.core.policies.pulsar.splitting import Split, SplitAlgorithm, SplitLimits, split_point, splits_wanted
from plimsoll.core.policies.pulsar.usage import UsageWeights, smoothed_usage
from plimsoll.core.policies.rebalancer import NO_MEMORY, FleetLook, FleetSample, Memory, ProfileDetail, Steps

Unloading = Literal["Transfer", "Lookup"]
Rules = Literal["Plimsoll", "Text"]

LATE_LOOKS = 2
"""Looks in a row at which units are away from their bundle, before a plan brings them: some are on their way."""


@dataclass(frozen=True)
class Pulsar:
    """Pulsar 2023. Ratios are of 1; `threshold` is the buffer above the average usage, `history` the weight of it."""

    name: ClassVar[str] = "Pulsar"
    metric: ClassVar[str] = "usage of the busiest resource"
    profiles: ClassVar[ProfileDetail] = "each"

    topic_attribute: str = "topic"
    bundles: int = 4
    limits: SplitLimits = SplitLimits()
    splits: bool = True
    algorithm: SplitAlgorithm = "RangeEquallyDivide"
    unload_halves: bool = True
    shedder: Shedder = "ThresholdShedder"
    threshold: float = 0.1
    history: float = 0.9
    weights: UsageWeights = UsageWeights()
    pairs: AvgThresholds = AvgThresholds()
    placer: LeastLongTermMessageRate = LeastLongTermMessageRate()
    unload: Unloading = "Transfer"
    rules: Rules = "Plimsoll"
    overload: ResourceThresholds = ResourceThresholds()
    interval_seconds: float = 10.0

    # -- the partition

    def partition(self, memory: Memory) -> Partition:
        """The ranges of the bundles; equal ones to begin with."""
        return partition_of(memory.get("boundaries")) or Partition.of_count(self.bundles)

    def split(self, memory: Memory, split: Split) -> Memory:
        """The memory with a bundle divided, its halves to be unloaded if that is wanted."""
        parted = self.partition(memory).split(split.bundle, split.at)
        waiting = [name for name in _names(memory, "unload") if name != split.bundle.name]
        halves = [half.name for half in split.halves] if self.unload_halves else []
        version = _whole(memory, "version") + 1
        return {**memory, "boundaries": list(parted.boundaries), "version": version, "unload": [*waiting, *halves]}

    def split_of(self, memory: Memory, bundle: HashRange, loads: Iterable[BundleLoad], why: str) -> Split | str:
        """How a bundle would be split, or why it cannot be, as a sentence."""
        parted = self.partition(memory)
        if not parted.has(bundle):
            known = parted.range_of(bundle.low).name
            return f"{bundle.name} is not a bundle of the cluster now; {known} has its first hash"
        if len(parted) >= self.limits.most_bundles:
            return f"there are {len(parted)} bundles, and {self.limits.most_bundles} is the most that the policy allows"
        point = split_point(whole_load(bundle, loads), self.algorithm)
        return point if isinstance(point, str) else Split(bundle, point, why)

    # -- looks

    def observe(self, memory: Memory, look: FleetLook) -> Memory:
        """Smoothed usage, hits of pairs, units that are late; and the splits that limits ask for."""
        before = _numbers(memory, "usage")
        usage = smoothed_usage(before, look.loads, self.weights, self.history)
        now = {load.name: self.weights.usage(load) for load in look.loads}
        late = min(_whole(memory, "late") + 1, LATE_LOOKS) if _has_late(look, self.partition(memory)) else 0
        found = {
            "boundaries": list(self.partition(memory).boundaries),
            "version": _whole(memory, "version"),
            "unload": _names(memory, "unload"),
            "usage": {name: round(value, 6) for name, value in sorted(usage.items())},
            "now": {name: round(value, 6) for name, value in sorted(now.items())},
            "hits": pair_hits(_wholes(memory, "hits"), now, self.pairs) if self.shedder == "AvgShedder" else {},
            "late": late,
            "overloaded": self._overloaded(look),
            "single": sorted(load.name for load in look.loads if len({each.bundle for each in load.bundles}) == 1),
        }
        return self._with_splits(found, look) if self.splits else found

    def _overloaded(self, look: FleetLook) -> dict[str, float]:
        """The highest of the overloaded resources of each edge that has one; by the letter of the text none has."""
        if self.rules == "Text" or self.shedder == "None":
            return {}
        over = {load.name: [load.measures.of_resource(each) for each in self.overload.above_higher(load.measures)]
                for load in look.loads}  # fmt: skip
        return {name: round(max(levels), 6) for name, levels in sorted(over.items()) if levels}

    def _with_splits(self, memory: Memory, look: FleetLook) -> Memory:
        loads = [each for load in look.loads for each in load.bundles]
        whole = [whole_load(bundle, loads) for bundle in sorted({each.bundle for each in loads})]
        for load, why in splits_wanted(self.partition(memory), whole, self.limits):
            split = self.split_of(memory, load.bundle, loads, why)
            if isinstance(split, Split):
                memory = self.split(memory, split)
        return memory

    def after_moves(self, memory: Memory) -> Memory:
        """The partition. The letter of the text keeps its smoothed usage, too."""
        kept = {name: memory[name] for name in ("boundaries", "version") if name in memory}
        return {**kept, "usage": _numbers(memory, "usage")} if self.rules == "Text" else kept

    def imbalance(self, look: FleetLook) -> str:
        """What asks for a plan by these reports alone."""
        return self.wanted(self.observe({}, look))

    def wanted(self, memory: Memory) -> str:
        """Why bundles should move."""
        if unload := _names(memory, "unload"):
            return f"{len(unload)} bundles to unload: {', '.join(unload[:3])}"
        if _whole(memory, "late") >= LATE_LOOKS:
            return "units are served by another edge than their bundle"
        reliefs = self.reliefs(memory)
        return f"{reliefs[0].source}: {reliefs[0].reason}" if reliefs else ""

    def reliefs(self, memory: Memory) -> tuple[Relief, ...]:
        """The edges that should shed bundles; those that are overloaded first, by our rules."""
        over = _numbers(memory, "overloaded") if self.rules != "Text" else {}
        first = sorted(over, key=lambda name: (-over[name], name))
        relieved = tuple(
            Relief(name, 1.0, f"is overloaded, a resource at {over[name]:.3f}", is_overloaded=True) for name in first
        )
        return (*relieved, *(each for each in self._shedding(memory) if each.source not in over))

    def _shedding(self, memory: Memory) -> tuple[Relief, ...]:
        usage, now = _numbers(memory, "usage"), _numbers(memory, "now")
        if self.shedder == "AvgShedder":
            return avg_reliefs(_wholes(memory, "hits"), now, self.pairs)
        if self.shedder == "None":
            return ()
        found = threshold_reliefs(usage, self.threshold)
        if self.rules == "Text":
            return found
        still = {each.source for each in threshold_reliefs(now, self.threshold)} - set(_names(memory, "single"))
        return tuple(each for each in found if each.source in still)

    # -- plans

    def fleet(self, sample: FleetSample, memory: Memory = NO_MEMORY) -> PulsarFleet:
        """The edges with their bundles, as the memory divides the topics."""
        return pulsar_fleet(sample, self.partition(memory), _names(memory, "unload"))

    def steps(self, fleet: PulsarFleet, memory: Memory) -> Steps:
        """Units that have come late first, then bundles to unload, then those that edges shed."""
        is_letter, is_by_lookup = self.rules == "Text", self.unload == "Lookup"
        moves = BundleMoves(
            self.placer, self.weights, is_letter=is_letter, is_by_lookup=is_by_lookup, overload=self.overload
        )
        reliefs = () if fleet.unload else self.reliefs(memory)
        return moves.steps(fleet, reliefs)


def _has_late(look: FleetLook, partition: Partition) -> bool:
    """Whether an edge serves units of a bundle that another edge owns."""
    return any(
        each.sessions and partition.has(each.bundle) and look.owners.get(each.bundle.name, load.name) != load.name
        for load in look.loads for each in load.bundles
    )  # fmt: skip


def whole_load(bundle: HashRange, loads: Iterable[BundleLoad]) -> BundleLoad:
    """The load of a bundle over all edges that serve some of it. It halves where the edge with most topics says."""
    some = [load for load in loads if load.bundle == bundle]
    most = max(some, key=lambda load: load.topics, default=BundleLoad(bundle))
    return BundleLoad(
        bundle,
        most.topics,
        sum(load.sessions for load in some),
        most.middle,
        max((load.input_rate for load in some), default=0.0),
        sum(load.output_rate for load in some),
        max((load.input_bytes for load in some), default=0.0),
        sum(load.output_bytes for load in some),
    )


def _names(memory: Memory, name: str) -> list[str]:
    found = memory.get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _numbers(memory: Memory, name: str) -> dict[str, float]:
    found: Any = memory.get(name)
    some = found.items() if isinstance(found, Mapping) else ()
    return {key: float(value) for key, value in some if isinstance(value, int | float) and math.isfinite(value)}


def _whole(memory: Memory, name: str) -> int:
    """A count. Memory comes from the store, and may have been written by another version."""
    found: Any = memory.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else 0


def _wholes(memory: Memory, name: str) -> dict[str, int]:
    return {key: int(value) for key, value in _numbers(memory, name).items()}
