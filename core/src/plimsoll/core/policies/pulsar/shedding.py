"""Which edges give bundles up, and how much: ThresholdShedder (Pulsar 2023, section 5) and AvgShedder (PIP-364).

Both name edges and the throughput that should leave them; which bundles these are is the plan's choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from plimsoll.core.policies.pulsar.usage import average_usage

Shedder = Literal["ThresholdShedder", "AvgShedder", "None"]

Hits = Mapping[str, int]
"""Looks in a row at which a pair of edges, written `high/low`, was apart by more than a threshold."""


@dataclass(frozen=True, slots=True)
class Relief:
    """An edge that sheds bundles: `share` of its throughput, to `target` if that is fixed.

    `hits_all`: bundles are taken until the share is reached, even if the last exceeds it; otherwise only what fits.
    `is_overloaded`: bundles are taken until no resource is above its lower threshold, whatever their share (ours).
    """

    source: str
    share: float
    reason: str
    target: str = ""
    hits_all: bool = True
    is_overloaded: bool = False


def threshold_reliefs(usage: Mapping[str, float], threshold: float) -> tuple[Relief, ...]:
    """Edges above the average plus `threshold`, the highest first; each sheds down to that line."""
    line = average_usage(usage) + threshold
    above = sorted((name for name in usage if usage[name] > line), key=lambda name: (-usage[name], name))
    return tuple(
        Relief(name, (usage[name] - line) / usage[name], f"usage {usage[name]:.3f} is above {line:.3f}, the average"
                                                         f" plus {threshold:g}")
        for name in above
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class AvgThresholds:
    """A pair of edges is evened out after `low_hits` looks above `low`, or `high_hits` looks above `high`."""

    low: float = 0.15
    high: float = 0.40
    low_hits: int = 8
    high_hits: int = 2


def pairs(usage: Mapping[str, float]) -> list[tuple[str, str]]:
    """The highest with the lowest, the second highest with the second lowest, and so on."""
    ranked = sorted(usage, key=lambda name: (-usage[name], name))
    return [(ranked[at], ranked[-1 - at]) for at in range(len(ranked) // 2)]


def pair_hits(before: Hits, usage: Mapping[str, float], limits: AvgThresholds) -> dict[str, int]:
    """The hits after one more look. Those of a pair that has changed, or is close together, begin again.

    A look above `high` counts for both thresholds, under one name each.
    """
    found: dict[str, int] = {}
    for high, low in pairs(usage):
        apart = usage[high] - usage[low]
        for kind, bound in (("low", limits.low), ("high", limits.high)):
            key = f"{kind}:{high}/{low}"
            if apart > bound:
                found[key] = min(before.get(key, 0) + 1, limits.low_hits)
    return found


def avg_reliefs(hits: Hits, usage: Mapping[str, float], limits: AvgThresholds) -> tuple[Relief, ...]:
    """Pairs that have been apart for long enough; half the difference goes from one to the other."""
    found = []
    for high, low in pairs(usage):
        apart = usage[high] - usage[low]
        if not apart:
            continue
        if hits.get(f"high:{high}/{low}", 0) >= limits.high_hits:
            why = f"above {limits.high:g} at {limits.high_hits} looks"
        elif hits.get(f"low:{high}/{low}", 0) >= limits.low_hits:
            why = f"above {limits.low:g} at {limits.low_hits} looks"
        else:
            continue
        reason = f"usage {usage[high]:.3f} and {usage[low]:.3f} at {low} differ by {apart:.3f}, {why}"
        found.append(Relief(high, apart / 2 / usage[high], reason, low, hits_all=False))
    return tuple(found)
