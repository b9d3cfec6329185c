"""Report cards: what offloading a set of subscriptions would do, and how many of its subscribers should go.

PADRES 2006, 5.1. Two conditions limit the number: the target must not be overloaded, and no more go than balance the
metric or bring the source below the target. The paper lets a set be chosen if the difference shrinks. Our rules demand
more, unless the source is overloaded; `BalancingParameters.rules` selects the letter of the paper.

- The higher of the two must fall as well.
- A move for input or match: the squared differences of input and match beyond their triggers, with a tenth of those of
  output, must fall in sum or be zero, and the target's output may not rise to where a relieved broker is not. One
  metric may grow apart while another is evened out, but only the smaller at the expense of the larger.
- A move for output: the sum for input and match must not grow (5.3's stability rule, applied to every move), and that
  of output must fall or be zero.

Given the others' loads, the sums cover all pairs that contain one of the two. So one sum over all pairs of a fleet
falls with every move, or is zero, and no fleet returns to an earlier state. An overloaded source is exempt: its
overload shrinks, which comes first. If the best number of a set is not allowed, the largest smaller one that is goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.core.policies.model.broker_pair import BrokerPair, PairPrediction
from plimsoll.core.policies.model.load import METRICS, Metric, Resource
from plimsoll.core.policies.model.plan import PlanRejection
from plimsoll.core.policies.model.profile import ProfileRow

MIN_GAIN = 1e-9
"""Smaller differences count as none: they are within the rounding error of sums of rates."""

OUTPUT_WEIGHT = 0.1
"""What a squared difference of output counts beside one of input or delay, in moves for input and match.

Enough that a set with little input and much output is not moved for the input. With 1, fleets like that of PADRES 2006,
6.2 end with inputs and delays up to 0.19 apart, since most moves for input bring output along; with 0.1, up to 0.13."""


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
            return all(at.source.of_resource(each) <= relief_level(pair, each) for each in self.relieves)
        return pair.difference(self.metric, at) <= pair.parameters.balance_threshold

    def distance(self, pair: BrokerPair, prospect: PairPrediction | None = None) -> float:
        """How far the two are from the goal."""
        at = prospect or pair.now
        if self.relieves:
            return sum(max(0.0, at.source.of_resource(each) - relief_level(pair, each)) for each in self.relieves)
        return abs(pair.difference(self.metric, at))


def relief_level(pair: BrokerPair, resource: Resource) -> float:
    """How high a resource of a relieved source may be.

    By the paper, safely below its lower threshold. By our rules still so with the subscribers that come until another
    session can help, each with the load of one of those before; at least half of that level.
    """
    relieved = pair.parameters.thresholds.of(resource).relieved
    if pair.parameters.rules == "Paper" or not pair.source.subscribers:
        return relieved
    share = pair.source.growth * pair.parameters.relief_seconds / pair.source.subscribers
    return relieved - min(share * pair.source.measures.of_resource(resource), relieved / 2.0)


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
    counts = sorted(
        _counts(pair, row, goal, fitting), key=lambda k: (goal.distance(pair, pair.predict_move(row, k)), k)
    )
    cards = [report_card(pair, row, k, goal.metric) for k in counts]
    if pair.parameters.rules == "Paper":
        return objection(pair, goal, cards[0]) or cards[0]
    if (allowed := next((card for card in cards if objection(pair, goal, card) is None), None)) is not None:
        return allowed
    fewer = _largest_allowed(pair, row, goal, min(counts) - 1)
    return report_card(pair, row, fewer, goal.metric) if fewer else objection(pair, goal, cards[0]) or cards[0]


def _largest_allowed(pair: BrokerPair, row: ProfileRow, goal: OffloadGoal, most: int) -> int:
    """The largest number from 1 to `most` against which there is no objection; 0 if there is one against each.

    Every margin is convex in the number, as loads are linear in it: so the numbers without an objection lie together,
    around the one with the least of the highest margins.
    """

    def margin(k: int) -> float:
        return max(after - limit for after, limit in _margins(pair, goal, pair.predict_move(row, k)).values())

    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if margin(middle) <= margin(middle + 1) else (middle + 1, high)
    if high < 1 or margin(low) > 0.0:
        return 0
    return low + _largest(most - low, lambda more: margin(low + more) <= 0.0)


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


def _margins(pair: BrokerPair, goal: OffloadGoal, at: PairPrediction) -> dict[str, tuple[float, float]]:
    """What a move must not exceed, each by its name: the value after the move, and the most that it may be."""
    metric, is_paper = goal.metric, pair.parameters.rules == "Paper"
    found = {"goal": (goal.distance(pair, at), goal.distance(pair) - MIN_GAIN)}
    if is_paper:
        return found
    if not goal.relieves:
        found["higher"] = (pair.higher_metric(metric, at), pair.higher_metric(metric) - MIN_GAIN)
    if goal.exempt:
        return found
    if metric == "output":
        found["stability"] = (pair.excess(("input", "match"), at), pair.excess(("input", "match")) + MIN_GAIN)
        found["balance"] = (pair.excess(("output",), at), max(0.0, pair.excess(("output",)) - MIN_GAIN))
        return found
    found["balance"] = (weighted_excess(pair, at), max(0.0, weighted_excess(pair) - MIN_GAIN))
    highest = max(pair.higher_metric("output"), pair.parameters.thresholds.output.relieved)
    found["output"] = (pair.higher_metric("output", at), highest + MIN_GAIN)
    return found


def weighted_excess(pair: BrokerPair, at: PairPrediction | None = None) -> float:
    """What moves for input and match must lessen: the squared differences beyond the triggers, output as a tenth."""
    return pair.excess(("input", "match"), at) + OUTPUT_WEIGHT * pair.excess(("output",), at)


def whole_objection(pair: BrokerPair, goal: OffloadGoal, at: PairPrediction) -> str:
    """The rule against a plan as a whole, with what it leads to; empty if there is none."""
    return next((name for name, (after, limit) in _margins(pair, goal, at).items() if after > limit), "")


def objection(pair: BrokerPair, goal: OffloadGoal, found: ReportCard) -> PlanRejection | None:
    """The reason against a card, or None."""
    key, count, metric = found.row.key, found.subscribers, goal.metric
    for name, (after, limit) in _margins(pair, goal, found.prospect).items():
        if after <= limit:
            continue
        if name == "goal":
            what = "overload" if goal.relieves else f"{metric} difference"
            why = f"would not lessen the {what}: {goal.distance(pair):.4f} -> {after:.4f}"
        elif name == "higher":
            why = f"would load {pair.target.name} more than it relieves {pair.source.name}: {metric} "
            why += f"{pair.higher_metric(metric):.4f} -> {after:.4f}"
        elif name == "output":
            why = f"would bring output of {pair.target.name} too close to its threshold: "
            why += f"{pair.higher_metric('output'):.4f} -> {after:.4f}"
        else:
            why = _apart(pair, found)
        return PlanRejection("NoBetter" if name in ("goal", "higher") else "Unstable", key, count, why)
    return None


def _apart(pair: BrokerPair, found: ReportCard) -> str:
    told = ", ".join(f"{m} {pair.difference(m):+.4f} -> {pair.difference(m, found.prospect):+.4f}" for m in METRICS)
    among = ", and theirs to the other brokers" if pair.others else ""
    return f"would bring metrics further apart beyond their triggers: {told}{among}"
