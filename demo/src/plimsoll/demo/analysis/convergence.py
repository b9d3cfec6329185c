"""Whether balancing has come to rest, judged from the loads that brokers reported and nothing else.

Loads are averaged over a detection interval, as the detector averages them. A fleet has converged when every pair of
edges has been within the triggering thresholds for three detections in a row. A pair may differ more in output if the
session between the two ended by the stability rule (PADRES 2006, 5.3), which is recorded with its reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

DETECTIONS_IN_A_ROW: Final = 3
"""Detections in a row that must find all pairs balanced."""

VALID_INTERVALS: Final = 3.0
"""Detection intervals for which a report counts, unless a later one replaces it."""

SLACK: Final = 1e-9


class EdgeLevels(NamedTuple):
    """The metrics of one edge, averaged over an interval; the matching delay in seconds."""

    input: float
    output: float
    match_seconds: float


@dataclass(frozen=True)
class ConvergenceLimits:
    """How much edges may differ. A difference in matching delay is divided by `normalization_seconds` (N_f, eq. 1)."""

    interval_seconds: float = 5.0
    ratio: float = 0.1
    delay: float = 0.1
    normalization_seconds: float = 0.1
    overload: float = 0.95


class StabilityStop(NamedTuple):
    """A session of these two ended by the stability rule, at this second of the traffic."""

    source: str
    target: str
    at: float


@dataclass(frozen=True)
class DetectionSample:
    """The fleet as a detection at this second sees it."""

    seconds: float
    edges: Mapping[str, EdgeLevels]


def detection_samples(
    columns: Mapping[str, Mapping[str, Sequence[Any]]], limits: ConvergenceLimits, until: float
) -> list[DetectionSample]:
    """One sample per detection interval. `columns`: by edge, as `series.Series.of` returns them.

    As in detection, the last report of an edge that has not reported within the interval counts for a while; after that
    there is no sample.
    """
    found = []
    for number in range(1, math.floor(until / limits.interval_seconds + SLACK) + 1):
        end = number * limits.interval_seconds
        edges = {name: _mean(of, end - limits.interval_seconds, end) for name, of in columns.items()}
        known = {name: levels for name, levels in edges.items() if levels is not None}
        if len(known) == len(columns) > 0:
            found.append(DetectionSample(end, known))
    return found


def _mean(columns: Mapping[str, Sequence[Any]], after: float, until: float) -> EdgeLevels | None:
    rows = [i for i, at in enumerate(columns["seconds"]) if after < at <= until]
    if not rows:
        valid_from = until - VALID_INTERVALS * (until - after)
        rows = [i for i, at in enumerate(columns["seconds"]) if valid_from < at <= after][-1:]
    if not rows:
        return None

    def mean(metric: str) -> float:
        return float(sum(columns[metric][i] for i in rows)) / len(rows)

    return EdgeLevels(mean("input_utilization"), mean("output_utilization"), mean("match_delay_seconds"))


class EdgeImbalance(NamedTuple):
    """Two edges that differ by more than the thresholds allow. `higher` carries more."""

    metric: str
    higher: str
    lower: str
    difference: float

    def __str__(self) -> str:
        return f"{self.metric} of {self.higher} and {self.lower} differs by {self.difference:.3f}"


def imbalances(
    sample: DetectionSample, limits: ConvergenceLimits, stopped: Iterable[StabilityStop] = ()
) -> list[EdgeImbalance]:
    """The unbalanced pairs, metric by metric."""
    excused = {frozenset(one[:2]) for one in stopped if one.at <= sample.seconds}
    found = []
    for (a, of_a), (b, of_b) in itertools.combinations(sorted(sample.edges.items()), 2):
        for metric, difference, limit in _differences(of_a, of_b, limits):
            if abs(difference) <= limit + SLACK or (metric == "output" and frozenset((a, b)) in excused):
                continue
            higher, lower = (a, b) if difference > 0 else (b, a)
            found.append(EdgeImbalance(metric, higher, lower, abs(difference)))
    return found


def _differences(a: EdgeLevels, b: EdgeLevels, limits: ConvergenceLimits) -> tuple[tuple[str, float, float], ...]:
    return (
        ("input", a.input - b.input, limits.ratio),
        ("match", (a.match_seconds - b.match_seconds) / limits.normalization_seconds, limits.delay),
        ("output", a.output - b.output, limits.ratio),
    )


def largest_differences(sample: DetectionSample, limits: ConvergenceLimits) -> dict[str, float]:
    """The largest difference between any two edges, by metric."""
    found = {"input": 0.0, "match": 0.0, "output": 0.0}
    for a, b in itertools.combinations(sample.edges.values(), 2):
        for metric, difference, _ in _differences(a, b, limits):
            found[metric] = max(found[metric], abs(difference))
    return found


def converged_at(
    taken: Sequence[DetectionSample],
    limits: ConvergenceLimits,
    since: float,
    until: float,
    stopped: Sequence[StabilityStop] = (),
) -> float | None:
    """The second of the third detection in a row that finds all pairs balanced, after `since` and no later than
    `until`.
    """
    running, before = 0, -math.inf
    for sample in taken:
        if not since < sample.seconds <= until + SLACK:
            continue
        follows = sample.seconds - before <= limits.interval_seconds + SLACK
        balanced = not imbalances(sample, limits, stopped)
        running = (running + 1 if follows else 1) if balanced else 0
        before = sample.seconds
        if running == DETECTIONS_IN_A_ROW:
            return sample.seconds
    return None


def share_balanced(
    taken: Sequence[DetectionSample],
    limits: ConvergenceLimits,
    since: float,
    until: float,
    stopped: Sequence[StabilityStop] = (),
) -> float | None:
    """The share of detections between these times that find all pairs balanced; None if there are none."""
    looked = [not imbalances(sample, limits, stopped) for sample in taken if since < sample.seconds <= until + SLACK]
    return sum(looked) / len(looked) if looked else None


def overloaded_edges(sample: DetectionSample, limits: ConvergenceLimits) -> list[str]:
    """Edges above the overload threshold, one phrase each."""
    return [
        f"{name} is overloaded: {what} at {value:.0%}"
        for name, levels in sample.edges.items()
        for what, value in (("input", levels.input), ("output", levels.output))
        if value > limits.overload
    ]
