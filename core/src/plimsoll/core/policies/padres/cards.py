"""Report cards: what offloading a set of subscriptions would do, and how many of its subscribers should go.

PADRES 2006, 5.1. Two conditions restrain the number: the target must not be overloaded, and no more go than balance
the metric or bring the source below the target. The paper lets a set be chosen if the difference gets smaller; here the
higher of the two must get lower as well, and differences of the other metrics may not be traded for this one's:

- input and match: what input utilisation and matching delay differ by beyond their triggers, squared and added up,
  gets less, or is nothing. One may pay for the other, but only the smaller for the larger;
- output: it does not get more (the idea of 5.3's stability rule, for every move).

That counts all pairs that one of the two is in, if the others' loads are given. So the loads of a fleet, compared by
what is overloaded, then by what input and delay differ by beyond the triggers, then by output, only ever get better,
and never come back to where they were. An overloaded source is exempt: its overload gets less, which comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.core.policies.fleet import Metric, Resource
from plimsoll.core.policies.pair import Pair, Prospect
from plimsoll.core.policies.profile import Row
from plimsoll.core.policies.steps import Rejection

LEAST = 1e-9
"""Less than this is no difference: it is within what sums of rates are rounded by."""

PROTECTED: dict[Metric, tuple[Metric, ...]] = {
    "input": ("input", "match"),
    "match": ("input", "match"),
    "output": ("input", "match"),
}


@dataclass(frozen=True, slots=True)
class ReportCard:
    """PADRES 2006, 5.1: the five fields, for one set of subscriptions.

    `difference` is of the metric of interest, source less target, when so many have gone. Rates are per second.
    """

    row: Row
    subscribers: int
    difference: float
    is_covered: bool
    saved_rate: float
    output_bytes_per_second: float
    prospect: Prospect

    def words(self, metric: Metric, before: float) -> str:
        """Why these go."""
        taken = "takes this in already" if self.is_covered else f"takes in {self.prospect.extra_rate:.2f}/s more"
        spared = f"source is spared {self.saved_rate:.2f}/s" if self.saved_rate else "source takes in the same"
        return (
            f"{metric} difference {before:+.4f} -> {self.difference:+.4f}; {self.subscribers} of {self.row.count} at "
            f"{self.output_bytes_per_second:.0f} B/s each; {spared}, target {taken}"
        )


@dataclass(frozen=True, slots=True)
class Goal:
    """What an offload algorithm is after.

    `relieves`: resources of the source that should come safely below their lower thresholds, instead of balance.
    `exempt`: the source is overloaded, and what other metrics differ by does not count.
    """

    metric: Metric
    relieves: tuple[Resource, ...] = ()
    exempt: bool = False

    def is_reached(self, pair: Pair, prospect: Prospect | None = None) -> bool:
        """Balanced within the threshold, or the source below the target; or relieved."""
        at = prospect or pair.now
        if self.relieves:
            limits = pair.parameters.thresholds
            return all(at.source.of_resource(each) <= limits.of(each).relieved for each in self.relieves)
        return pair.difference(self.metric, at) <= pair.parameters.balance_threshold

    def distance(self, pair: Pair, prospect: Prospect | None = None) -> float:
        """How far the two are from it."""
        at = prospect or pair.now
        if self.relieves:
            limits = pair.parameters.thresholds
            return sum(max(0.0, at.source.of_resource(each) - limits.of(each).relieved) for each in self.relieves)
        return abs(pair.difference(self.metric, at))


def card(pair: Pair, row: Row, goal: Goal) -> ReportCard | Rejection:
    """How many of a row should go and what that does, or why none should."""
    movable = min(len(pair.movable[row.key]), pair.room)
    if not movable:
        return Rejection("Staying", row.key, pair.present[row.key], "all of its subscribers have a reason to stay")
    fitting = _largest(movable, lambda k: _fits(pair, pair.prospect(row, k)))
    if not fitting:
        over = pair.parameters.thresholds.above_lower(pair.prospect(row, 1).target)
        why = (
            f"one more subscriber would bring {pair.target.name} above its lower overload threshold: {', '.join(over)}"
        )
        return Rejection("WouldOverload", row.key, movable, why)
    best = min(_counts(pair, row, goal, fitting), key=lambda k: (goal.distance(pair, pair.prospect(row, k)), k))
    found = report(pair, row, best, goal.metric)
    return objection(pair, goal, found) or found


def report(pair: Pair, row: Row, count: int, metric: Metric) -> ReportCard:
    """The report card of so many subscribers of a row."""
    at = pair.prospect(row, count)
    return ReportCard(
        row=row,
        subscribers=count,
        difference=pair.difference(metric, at),
        is_covered=pair.is_covered(row),
        saved_rate=at.saved_rate,
        output_bytes_per_second=pair.bytes[row.key],
        prospect=at,
    )


def _counts(pair: Pair, row: Row, goal: Goal, fitting: int) -> set[int]:
    """The numbers that may be best: where the goal is reached, one less, and as many as fit.

    All but the last subscriber of a row change loads alike; with the last one its input goes too.
    """
    last = fitting - 1 if fitting == pair.present[row.key] else fitting
    reached = _smallest(last, lambda k: goal.is_reached(pair, pair.prospect(row, k)))
    counts = {reached, reached - 1} if reached else {last, fitting}
    return {k for k in counts if k >= 1}


def _fits(pair: Pair, prospect: Prospect) -> bool:
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


def objection(pair: Pair, goal: Goal, found: ReportCard) -> Rejection | None:
    """Why this would not do, if so."""
    at, metric, key, count = found.prospect, goal.metric, found.row.key, found.subscribers
    before, after = goal.distance(pair), goal.distance(pair, at)
    if after > before - LEAST:
        what = "overload" if goal.relieves else f"{metric} difference"
        why = f"would not lessen the {what}: {before:.4f} -> {after:.4f}"
        return Rejection("NoBetter", key, count, why)
    if not goal.relieves and pair.higher(metric, at) > (highest := pair.higher(metric)) - LEAST:
        why = f"would load {pair.target.name} more than it relieves {pair.source.name}: {metric} {highest:.4f} -> "
        return Rejection("NoBetter", key, count, f"{why}{pair.higher(metric, at):.4f}")
    return None if goal.exempt else _side_effect(pair, goal, found)


def _side_effect(pair: Pair, goal: Goal, found: ReportCard) -> Rejection | None:
    kept = PROTECTED[goal.metric]
    before, after = pair.excess(kept), pair.excess(kept, found.prospect)
    is_worse = after > before + LEAST if goal.metric == "output" else after > max(0.0, before - LEAST)
    if not is_worse:
        return None
    told = ", ".join(f"{m} {pair.difference(m):+.4f} -> {pair.difference(m, found.prospect):+.4f}" for m in kept)
    among = ", and theirs to the other brokers" if pair.others else ""
    why = f"would bring metrics further apart beyond their triggers: {told}{among}"
    return Rejection("Unstable", found.row.key, found.subscribers, why)
