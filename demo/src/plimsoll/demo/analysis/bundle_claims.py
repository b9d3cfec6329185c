"""What a run with bundles claims."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any, Final

from plimsoll.core.policies.model.hash_ranges import HashRange
from plimsoll.demo.analysis import bundle_history
from plimsoll.demo.analysis.bundle_history import BundleLook, SeenSplit, is_part
from plimsoll.demo.analysis.measured_claims import MeasuredClaim, at_least, at_most, no_faults

TRANSFER_SECONDS: Final = 2.0
LOOKUP_SECONDS: Final = 5.0
OWNED_AGAIN_SECONDS: Final = 10.0
"""Bounds on what a subscriber notices, with room for a machine of two processors that does all the work."""


@dataclass(frozen=True, slots=True)
class UsageSpread:
    """How far apart the usages of edges are. `cov`: standard deviation by mean.

    `above`: how far the highest is above the average, by which ThresholdShedder judges. `above_of_several`: the same
    among edges with several bundles, which alone shed.
    """

    cov: float | None
    above: float | None
    above_of_several: float | None


@dataclass(frozen=True)
class BundleFigures:
    """What was measured in a run. `counts`: of the audit; `shed`: sessions of ThresholdShedder that moved something.

    `limit`: messages per second at which a bundle is split; `threshold`: of usage above the average, from which on an
    edge sheds; waits and times are in seconds, None if not measured.
    """

    counts: Mapping[str, int]
    looks: Sequence[BundleLook]
    limit: float
    threshold: float
    shed: int
    before: UsageSpread
    after: UsageSpread
    transfer_seconds: float | None
    lookup_seconds: float | None
    owned_again_seconds: float | None


def spread(usages: Mapping[str, float], owners: Iterable[str]) -> UsageSpread:
    """The spread of the usages of all edges. `owners`: the edge of each bundle."""
    mean = fmean(usages.values()) if usages else 0.0
    if mean <= 0.0:
        return UsageSpread(None, None, None)
    counts = Counter(owners)
    several = [usage for edge, usage in usages.items() if counts[edge] > 1]
    above = max(several) - mean if several else None
    return UsageSpread(pstdev(usages.values()) / mean, max(usages.values()) - mean, above)


def mean_usage(columns: Mapping[str, Sequence[Any]], start: float, end: float) -> float:
    """The usage of one edge by its reports between two times: the higher of input and output utilisation.

    Processor and memory weigh nothing in this fleet. 0 without a report.
    """
    found = [
        max(taken, sent)
        for at, taken, sent in zip(
            columns["seconds"], columns["input_utilization"], columns["output_utilization"], strict=True
        )
        if start <= at <= end
    ]
    return fmean(found) if found else 0.0


def judged_claims(figures: BundleFigures) -> list[MeasuredClaim]:
    """All claims in the order of the report."""
    return [
        *no_faults(figures.counts),
        _one_owner(figures.looks),
        *_split(figures),
        at_least("sessions of ThresholdShedder that moved bundles", figures.shed, 1),
        at_most("highest usage above the average at the end, of an edge with several bundles",
                figures.after.above_of_several, figures.threshold),
        at_most("longest wait of a subscriber of a bundle moved by Transfer (s)", figures.transfer_seconds,
                 TRANSFER_SECONDS),
        at_most("longest wait of a subscriber of a bundle unloaded by Lookup (s)", figures.lookup_seconds,
                 LOOKUP_SECONDS),
        at_most("time until all bundles of the killed edge had owners again (s)", figures.owned_again_seconds,
                 OWNED_AGAIN_SECONDS),
    ]  # fmt: skip


def _one_owner(looks: Sequence[BundleLook]) -> MeasuredClaim:
    claim = "bundles without one owner at the end"
    if not looks or not looks[-1].owners:
        return MeasuredClaim(claim, None, "<= 0", held=False)
    return at_most(claim, len(bundle_history.wrongly_owned(looks[-1])), 0)


def hottest_split(figures: BundleFigures) -> SeenSplit | None:
    """The split of the bundle with most messages."""
    return max(bundle_history.splits_seen(figures.looks), key=lambda each: each.rate, default=None)


def _split(figures: BundleFigures) -> list[MeasuredClaim]:
    """The hot bundle was split, and each half was relieved: by another owner, or by a load below the limit."""
    hot = hottest_split(figures)
    if hot is None:
        return [
            MeasuredClaim(
                "messages per second of the hot bundle when it was split", None, f"> {figures.limit:g}", False
            ),
            MeasuredClaim("parts of the hot bundle with one owner and a load above the limit", None, "<= 0", False),
        ]
    return [
        MeasuredClaim(
            "messages per second of the hot bundle when it was split", hot.rate, f"> {figures.limit:g}",
            hot.rate > figures.limit,
        ),
        at_most("parts of the hot bundle with one owner and a load above the limit", _unrelieved(figures, hot), 0),
    ]  # fmt: skip


def _unrelieved(figures: BundleFigures, hot: SeenSplit) -> int:
    """Parts of the hot bundle above the limit at the end, if they have one owner; a half may have been split again."""
    last, whole = figures.looks[-1], HashRange.of_name(hot.bundle)
    parts = [name for name in last.owners if is_part(HashRange.of_name(name), whole)]
    if len({last.owners[name] for name in parts}) > 1:
        return 0
    return sum(last.rates.get(name, math.inf) > figures.limit for name in parts) if parts else len(hot.halves)
