"""When a bundle is split, and where: Pulsar 2023, "Splitting overloaded bundles", sections 2 and 3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from plimsoll.core.policies.model.bundle_load import BundleLoad
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition

SplitAlgorithm = Literal["RangeEquallyDivide", "TopicCountEquallyDivide"]


@dataclass(frozen=True, slots=True)
class SplitLimits:
    """Above one of these a bundle is split, unless there are `most_bundles` already. Rates are per second."""

    topics: int = 1000
    sessions: int = 1000
    message_rate: float = 30_000.0
    bandwidth_bytes: float = 100e6
    most_bundles: int = 128

    def exceeded(self, load: BundleLoad) -> str:
        """The first limit that a bundle exceeds, in words; empty if it exceeds none."""
        if load.topics > self.topics:
            return f"{load.topics} topics, at most {self.topics}"
        if load.sessions > self.sessions:
            return f"{load.sessions} sessions, at most {self.sessions}"
        if load.message_rate > self.message_rate:
            return f"{load.message_rate:.4g} messages/s, at most {self.message_rate:.4g}"
        if load.throughput > self.bandwidth_bytes:
            return f"{load.throughput:.4g} B/s, at most {self.bandwidth_bytes:.4g}"
        return ""


@dataclass(frozen=True, slots=True)
class Split:
    """A bundle that is split at a hash, and why."""

    bundle: HashRange
    at: int
    reason: str

    @property
    def halves(self) -> tuple[HashRange, HashRange]:
        """The two bundles that it becomes."""
        return HashRange(self.bundle.low, self.at), HashRange(self.at, self.bundle.high)


def topics_middle(topics: Iterable[int]) -> int:
    """The first hash of the second half if both are to have the same number of topics; 0 for fewer than two.

    Halfway between the last topic of the first half and the first of the second (Pulsar 2023, section 3).
    """
    known = sorted(set(topics))
    if len(known) < 2:
        return 0
    left, right = known[len(known) // 2 - 1], known[len(known) // 2]
    return max((left + right) // 2, left + 1)


def split_point(load: BundleLoad, algorithm: SplitAlgorithm) -> int | str:
    """The first hash of the second half, or why the bundle cannot be split, as a sentence."""
    bundle = load.bundle
    if bundle.end - bundle.low < 2:
        return f"{bundle.name} holds a single hash"
    if load.topics < 2:
        return f"{bundle.name} has {load.topics} topics; one edge serves all of a topic, so a split changes nothing"
    if algorithm == "RangeEquallyDivide":
        return (bundle.low + bundle.end) // 2
    inside = bundle.low < load.middle < bundle.high
    return load.middle if inside else f"{bundle.name}: its edge does not report where its topics halve"


def splits_wanted(
    partition: Partition, loads: Sequence[BundleLoad], limits: SplitLimits
) -> tuple[tuple[BundleLoad, str], ...]:
    """The bundles above a limit, each with it in words, those with most messages first; no more than there is room."""
    room = limits.most_bundles - len(partition)
    known = [load for load in loads if partition.has(load.bundle)]
    above = [(load, why) for load in known if (why := limits.exceeded(load))]
    above.sort(key=lambda each: (-each[0].message_rate, -each[0].throughput, each[0].bundle))
    return tuple(above[: max(0, room)])
