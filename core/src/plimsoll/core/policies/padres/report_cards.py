"""Report cards: what offloading a set of subscriptions would do, and how many of its subscribers should go.

PADRES 2006, 5.1. Two conditions limit the number: the target must not be overloaded, and no more go than balance the
metric or bring the source below the target. The paper lets a set be chosen if the difference shrinks; here the higher
of the two must fall as well, and the move must not trade differences of other metrics for this one's:

- input and match: the squared differences of input utilisation and matching delay beyond their triggers, summed up,
  must fall or be zero. One may grow while the other shrinks, but only the smaller at the expense of the larger;
- output: the difference beyond the trigger must not grow (5.3's stability rule, applied to every move).

Given the others' loads, the sums cover all pairs that contain one of the two. So the loads of a fleet, ordered by
overload, then by the differences of input and delay beyond the triggers, then by output, only ever improve and never
return to an earlier state. An overloaded source is exempt: its overload shrinks, which comes first in that order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.core.policies.model.broker_pair import BrokerPair, PairPrediction
from plimsoll.core.policies.model.load import Metric, Resource
from plimsoll.core.policies.model.plan import PlanRejection
from plimsoll.core.policies.model.profile import ProfileRow

MIN_GAIN = 1e-9
"""Smaller differences count as none: they are within the rounding error of sums of rates."""

PROTECTED: dict[Metric, tuple[Metric, ...]] = {
    "input": ("input", "match"),
    "match": ("input", "match"),
    "output": ("input", "match"),
}


@dataclass(frozen=True, slots=True)
class ReportCard:
    """PADRES 2006, 5.1: the five fields, for one set of subscriptions.

    `difference` is of the metric to balance, source minus target, after the move. Rates are per second.
    """

    row: ProfileRow
    subscribers: int
    difference: float
    is_covered: bool
    saved_rate: float
    output_bytes_per_second: float
    prospect: PairPrediction

    def words(self, metric: Metric, before: float) -> str:
        """Why these go."""
        taken = "takes this in already" if self.is_covered else f"takes in {self.prospect.extra_rate:.2f}/s more"
        spared = f"source is spared {self.saved_rate:.2f}/s" if self.saved_rate else "source takes in the same"
        return (
            f"{metric} difference {before:+.4f} -> {self.difference:+.4f}; {self.subscribers} of {self.row.count} at "
            f"{self.output_bytes_per_second:.0f} B/s each; {spared}, target {taken}"
        )


@dataclass(frozen=True, slots=True)
class OffloadGoal:
    """What an offload algorithm should achieve.

    `relieves`: resources of the source that should get safely below their lower thresholds, instead of balance.
    `exempt`: the source is overloaded, so differences of other metrics do not count.
    """

    metric: Metric
    relieves: tuple[Resource, ...] = ()
    exempt: bool = False

    def is_reached(self, pair: BrokerPair, prospect: PairPrediction | None = None) -> bool:
        """Balanced within the threshold, or the source below the target; or relieved."""
        at = prospect or pair.now
        if self.relieves:
            limits = pair.parameters.thresholds
            return all(at.source.of_resource(each) <= limits.of(each).relieved for each in self.relieves)
        return pair.difference(self.metric, at) <= pair.parameters.balance_threshold

    def distance(self, pair: BrokerPair, prospect: PairPrediction | None = None) -> float:
        """How far the two are from the goal."""
        at = prospect or pair.now
        if self.relieves:
            limits = pair.parameters.thresholds
            return sum(max(0.0, at.source.of_resource(each) - limits.of(each).relieved) for each in self.relieves)
        return abs(pair.difference(self.metric, at))


def best_report_card(pair: BrokerPair, row: ProfileRow, goal: OffloadGoal) -> ReportCard | PlanRejection:
    """How many of a row should go, with the effect; or why none should."""
    movable = min(len(pair.movable[row.key]), pair.moves_left)
    if not movable:
        return PlanRejection("Staying", row.key, pair.present[row.key], "all of its subscribers have a reason to stay")
    fitting = _largest(movable, lambda k: _fits(pair, pair.predict_move(row, k)))
    if not fitting:
        over = pair.parameters.thresholds.above_lower(pair.predict_move(row, 1).target)
        why = (
            f"one more subscriber would bring {pair.target.name} above its lower overload threshold: {', '.join(over)}"
        )
        return PlanRejection("WouldOverload", row.key, movable, why)
    best = min(_counts(pair, row, goal, fitting), key=lambda k: (goal.distance(pair, pair.predict_move(row, k)), k))
    found = report_card(pair, row, best, goal.metric)
    return objection(pair, goal, found) or found


def report_card(pair: BrokerPair, row: ProfileRow, count: int, metric: Metric) -> ReportCard:
    """The report card of `count` subscribers of a row."""
    at = pair.predict_move(row, count)
    return ReportCard(
        row=row,
        subscribers=count,
        difference=pair.difference(metric, at),
        is_covered=pair.is_covered(row),
        saved_rate=at.saved_rate,
        output_bytes_per_second=pair.bytes[row.key],
        prospect=at,
    )


def _counts(pair: BrokerPair, row: ProfileRow, goal: OffloadGoal, fitting: int) -> set[int]:
    """The numbers that may be best: the one that reaches the goal, one less, and as many as fit.

    All but the last subscriber of a row change loads alike; the last one takes the row's input with it.
    """
    last = fitting - 1 if fitting == pair.present[row.key] else fitting
    reached = _smallest(last, lambda k: goal.is_reached(pair, pair.predict_move(row, k)))
    counts = {reached, reached - 1} if reached else {last, fitting}
    return {k for k in counts if k >= 1}


def _fits(pair: BrokerPair, prospect: PairPrediction) -> bool:
    return not pair.parameters.thresholds.above_lower(prospect.target)


def _largest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest k from 1 to `most` for which it holds, if it holds for all below; 0 if for none."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _smallest(most: int, holds: Callable[[int], bool]) -> int:
    """The smallest k from 1 to `most` for which it holds, if it holds for all above; 0 if for none."""
    below = _largest(most, lambda k: not holds(k))
    return below + 1 if below < most else 0


def objection(pair: BrokerPair, goal: OffloadGoal, found: ReportCard) -> PlanRejection | None:
    """The reason against a card, or None."""
    at, metric, key, count = found.prospect, goal.metric, found.row.key, found.subscribers
    before, after = goal.distance(pair), goal.distance(pair, at)
    if after > before - MIN_GAIN:
        what = "overload" if goal.relieves else f"{metric} difference"
        why = f"would not lessen the {what}: {before:.4f} -> {after:.4f}"
        return PlanRejection("NoBetter", key, count, why)
    if not goal.relieves and pair.higher_metric(metric, at) > (highest := pair.higher_metric(metric)) - MIN_GAIN:
        why = f"would load {pair.target.name} more than it relieves {pair.source.name}: {metric} {highest:.4f} -> "
        return PlanRejection("NoBetter", key, count, f"{why}{pair.higher_metric(metric, at):.4f}")
    return None if goal.exempt else _side_effect(pair, goal, found)


def _side_effect(pair: BrokerPair, goal: OffloadGoal, found: ReportCard) -> PlanRejection | None:
    kept = PROTECTED[goal.metric]
    before, after = pair.excess(kept), pair.excess(kept, found.prospect)
    is_worse = after > before + MIN_GAIN if goal.metric == "output" else after > max(0.0, before - MIN_GAIN)
    if not is_worse:
        return None
    told = ", ".join(f"{m} {pair.difference(m):+.4f} -> {pair.difference(m, found.prospect):+.4f}" for m in kept)
    among = ", and theirs to the other brokers" if pair.others else ""
    why = f"would bring metrics further apart beyond their triggers: {told}{among}"
    return PlanRejection("Unstable", found.row.key, found.subscribers, why)
