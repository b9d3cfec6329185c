"""The result of balancing in a run: when it converged, at what cost, and how accurate its predictions were.

Everything is computed from load reports and the sessions in the store, for any policy. What PADRES load balancing must
show (PADRES 2006, 6.2) is claimed only when PADRES is the policy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.core.policies.registry import parameters_of_spec
from plimsoll.core.spec import Resources, SourceDocument
from plimsoll.core.spec.types.policy import POLICY_TYPES, PolicyType
from plimsoll.demo.analysis import convergence, overhead
from plimsoll.demo.analysis.convergence import ConvergenceLimits, DetectionSample, StabilityStop
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.analysis.session_outcomes import METRICS, ReportedSession, prediction_accuracy, stopped_by_stability
from plimsoll.demo.workload import DemoScenario

POLICIES: Final[Mapping[str, PolicyType | None]] = {"off": None, **POLICY_TYPES}
MAX_OVERHEAD_CONVERGING: Final = 0.015
MAX_OVERHEAD_STEADY: Final = 0.005
"""Overhead as a share of all messages. PADRES 2006, 6.2 reports 1.5 % while balancing and 0.2 % after."""


def with_policy(documents: Sequence[SourceDocument], policy: str) -> list[SourceDocument]:
    """Replace the policy of every cluster in the fleet's documents; detection and estimation stay.

    Raises:
        ValueError: the documents have no fleet, or the fleet has no policy to replace.

    """
    found, replaced = [], False
    for document in documents:
        content = document.content
        if isinstance(content, dict) and content.get("kind") == "BrokerFleet":
            content = _with_policy_replaced(content, policy)
            replaced = True
        found.append(SourceDocument(content, document.file, document.line_of))
    if not replaced:
        raise ValueError("the files hold no BrokerFleet, so there is no policy to choose")
    return found


def _with_policy_replaced(fleet: Mapping[str, Any], policy: str) -> dict[str, Any]:
    defaults = dict(fleet.get("spec", {}).get("defaults", {}))
    own = defaults.pop("policy", {})
    if POLICIES[policy] is not None:
        common = {name: own[name] for name in ("detection", "estimation") if name in own}
        kept = {name: own[name] for name in own if own.get("type") == POLICIES[policy] and name != "type"}
        defaults["policy"] = {"type": POLICIES[policy], **common, **kept}
    return {**fleet, "spec": {**fleet.get("spec", {}), "defaults": defaults}}


def convergence_limits(resources: Resources) -> ConvergenceLimits:
    """The criteria for a fleet: the paper's thresholds, not its own triggers, with its detection interval and N_f."""
    fleet = resources.fleet.spec
    spec = fleet.defaults.policy
    if spec is None:
        return ConvergenceLimits()
    own = parameters_of_spec(spec, fleet.time_scale_percent / 100)
    return ConvergenceLimits(
        interval_seconds=own.detection_seconds,
        normalization_seconds=own.normalization_seconds,
        overload=min(own.thresholds.input.higher, own.thresholds.output.higher),
    )


@dataclass(frozen=True)
class BalancingResult:
    """The result. Times are seconds of the traffic; None means that it did not happen.

    `again_at` is when the fleet had converged after the step of the rates; None also if there was no step.
    """

    policy: str
    limits: ConvergenceLimits
    samples: Sequence[DetectionSample]
    sessions: Sequence[ReportedSession]
    stopped: Sequence[StabilityStop]
    joined_at: float
    step_at: float
    until: float
    converged_at: float | None
    again_at: float | None
    converging: Mapping[str, int]
    steady: Mapping[str, int]
    steady_share: float | None
    overhead_series: Mapping[str, Sequence[float | None]]
    kinds: Mapping[str, int]

    @property
    def has_step(self) -> bool:
        return self.step_at < self.until

    @property
    def unmet_claims(self) -> list[str]:
        """Claims of PADRES load balancing that this run did not show, a sentence each; other policies claim nothing."""
        if self.policy != "padres":
            return []
        found = []
        if self.converged_at is None:
            found.append(f"it had not converged {self._apart_at(min(self.step_at, self.until))}")
        if self.has_step and self.again_at is None:
            found.append(f"it had not converged again {self._apart_at(self.until)}")
        if self.samples:
            found += [f"at the end {text}" for text in convergence.overloaded_edges(self.samples[-1], self.limits)]
        for name, counts, most in (
            ("converging", self.converging, MAX_OVERHEAD_CONVERGING), ("steady", self.steady, MAX_OVERHEAD_STEADY),
        ):  # fmt: skip
            share = overhead.overhead_ratio(counts)
            if share is not None and share > most:
                found.append(f"balancing took {share:.2%} of all messages while {name}, at most {most:.1%} is claimed")
        return found

    def _apart_at(self, seconds: float) -> str:
        seen = [sample for sample in self.samples if sample.seconds <= seconds]
        pairs = convergence.imbalances(seen[-1], self.limits, self.stopped) if seen else []
        return f"by {seconds:.0f} s: " + ("; ".join(map(str, pairs[:3])) or "not for three detections running")

    def lines(self) -> list[str]:
        """A few lines for the terminal."""

        def at(seconds: float | None) -> str:
            return "never" if seconds is None else f"at {seconds:.0f} s"

        def share(counts: Mapping[str, int]) -> str:
            found = overhead.overhead_ratio(counts)
            return "-" if found is None else f"{found:.2%}"

        moved, known = sum(row.subscribers for row in self.sessions), prediction_accuracy(self.sessions)
        again = f"; after the rates had risen {at(self.again_at)}" if self.has_step else ""
        said = {name: "-" if known[name] is None else f"{known['median'][name]:.1%}" for name, _ in METRICS}
        futile = sum(row.subscribers == 0 for row in self.sessions)
        return [
            f"balancing by {self.policy}: converged {at(self.converged_at)}{again}",
            f"{len(self.sessions)} sessions, {futile} of which moved none, moved {moved:,} subscribers; "
            "predictions were right in the median to "
            f"{said['input_utilization']} of input, {said['output_utilization']} of output, "
            f"{said['match_delay_seconds']} of matching delay",
            f"overhead {share(self.converging)} of all messages while converging, {share(self.steady)} after",
        ]

    def plain(self) -> dict[str, Any]:
        """The section of `report.json`."""
        counted = {
            name: {kind: counts.get(kind, 0) for kind in (*overhead.CATEGORIES, "payload", "replayed",
                                                          "subscriptions", "acknowledgements")}
            for name, counts in (("converging", self.converging), ("steady", self.steady))
        }  # fmt: skip
        return {
            "policy": self.policy,
            "converged_at_seconds": self.converged_at,
            "converged_again_at_seconds": self.again_at,
            "joined_at_seconds": self.joined_at,
            "step_at_seconds": self.step_at if self.has_step else None,
            "share_of_detections_balanced_after": self.steady_share,
            "overhead_ratio": {
                "converging": overhead.overhead_ratio(self.converging), "steady": overhead.overhead_ratio(self.steady),
                "counted": counted,
            },
            "overhead_series": self.overhead_series,
            "messages_by_kind": self.kinds,
            "differences": self._differences(),
            "estimation_accuracy": prediction_accuracy(self.sessions),
            "sessions": [row.plain() for row in self.sessions],
        }  # fmt: skip

    def _differences(self) -> dict[str, list[float]]:
        widest = [convergence.largest_differences(sample, self.limits) for sample in self.samples]
        return {
            "seconds": [sample.seconds for sample in self.samples],
            **{metric: [round(each[metric], 5) for each in widest] for metric in ("input", "output", "match")},
        }


def assess_balancing(
    policy: str,
    scenario: DemoScenario,
    limits: ConvergenceLimits,
    edges: Sequence[str],
    series: LoadSeries,
    sessions: Sequence[ReportedSession],
) -> BalancingResult:
    """Analyse a finished run."""
    joined, step, until = scenario.join_to * scenario.seconds, scenario.step_seconds, scenario.seconds
    stopped = stopped_by_stability(sessions)
    taken = convergence.detection_samples({name: series.of(name) for name in edges}, limits, until)
    first = convergence.converged_at(taken, limits, joined, min(step, until), stopped)
    again = convergence.converged_at(taken, limits, step, until, stopped) if step < until else None
    moving, resting = converging_and_steady_windows(first, again, step, until)
    shares = [
        (end - start, share) for start, end in resting
        if (share := convergence.share_balanced(taken, limits, start, end, stopped)) is not None
    ]  # fmt: skip
    spent = sum(seconds for seconds, _ in shares)
    return BalancingResult(
        policy, limits, taken, sessions, stopped, joined, step, until, first, again,
        overhead.counts_between(series.ledger, *moving), overhead.counts_between(series.ledger, *resting),
        sum(seconds * share for seconds, share in shares) / spent if spent else None,
        _overhead_series(series, until), dict(series.ledger.total(until).most_common()),
    )  # fmt: skip


def converging_and_steady_windows(
    first: float | None, again: float | None, step: float, until: float
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """The times of convergence and of rest: converging from the start, and again from the step of the rates."""
    moving, resting = [], []
    for start, found, end in ((0.0, first, min(step, until)), (step, again, until)):
        if start < end:
            rest = end if found is None else found
            moving.append((start, rest))
            resting.append((rest, end))
    return moving, [window for window in resting if window[0] < window[1]]


WINDOW_SECONDS: Final = 5.0


def _overhead_series(series: LoadSeries, until: float) -> dict[str, list[float | None]]:
    """The overhead of each stretch of several seconds, as a share and per second by category."""
    found: dict[str, list[float | None]] = {"seconds": [], "ratio": [], **{name: [] for name in overhead.CATEGORIES}}
    for number in range(math.floor(until / WINDOW_SECONDS)):
        start, end = number * WINDOW_SECONDS, (number + 1) * WINDOW_SECONDS
        counts = overhead.counts_between(series.ledger, (start, end))
        found["seconds"].append(end)
        found["ratio"].append(overhead.overhead_ratio(counts))
        for name in overhead.CATEGORIES:
            found[name].append(counts[name] / WINDOW_SECONDS)
    return found
