"""The fewest subscribers that do as much as a plan, where so few plans are possible that all can be tried.

Of plans with as many subscribers it is the one that leaves the fleet most even.

The algorithms of PADRES 2006 choose one set after another and take none back. A first choice that a later one makes
needless costs a hand-over, and a set with little traffic goes where one with much would have been enough. They even
out two brokers though a third has less than both, and what went too far goes on from there. With few subscribers that
is a large part of all moves, so there every smaller plan between the two brokers is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from plimsoll.core.policies.model.broker_pair import BrokerPair, PairPrediction
from plimsoll.core.policies.model.load import METRICS, RESOURCES, Metric
from plimsoll.core.policies.model.plan import OffloadPlan
from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.policies.padres.report_cards import MIN_GAIN, OffloadGoal, weighted_excess, whole_objection
from plimsoll.core.policies.padres.selection import goal_end

PLANS_AT_MOST = 1_000
"""The most possible plans of which all are tried: some ten thousandths of a second each."""

FEW = PLANS_AT_MOST.bit_length() - 1
"""Subscribers of whom every choice can be tried, since there are at most two to the power of their number.

Each is a large part of all, so that metrics cannot be made equal, and what counts is what is beyond the triggers. Where
there are more, a plan ends as near to its goal as the one that was made, or what was measured badly would be due again.
"""

Counts = tuple[tuple[str, int], ...]
"""How many subscribers of each row move."""


def with_fewest_moves(made: OffloadPlan, begin: Callable[[], PlanBuilder], goal: OffloadGoal) -> OffloadPlan:
    """The plan, or one with fewer subscribers that does as much. `begin` makes an empty draft of the same pair."""
    first = begin().pair
    rows = [(row.key, len(first.movable[row.key])) for row in first.profile.rows if first.movable[row.key]]
    if not made.members or math.prod(count + 1 for _, count in rows) > PLANS_AT_MOST:
        return made
    reached = PairPrediction(made.predicted_source.measures, made.predicted_target.measures, 0.0, 0.0)
    for total in range(1, len(made.members) + 1):
        able = [(_quality(first, at), counts) for counts in _spread(rows, total)
                if _does_as_much(first, goal, at := _chosen(begin(), counts).pair.now, reached)]  # fmt: skip
        quality, counts = min(able, default=(_quality(first, reached), ()))
        if counts and (total < len(made.members) or quality[2] < _quality(first, reached)[2] - MIN_GAIN):
            return _plan_of(begin(), counts, goal, made)
    return made


def _spread(rows: Sequence[tuple[str, int]], total: int) -> Iterator[Counts]:
    """Every way to take this number of subscribers from the rows."""
    if not total:
        yield ()
    elif rows:
        (key, most), rest = rows[0], rows[1:]
        for count in range(min(most, total), -1, -1):
            for others in _spread(rest, total - count):
                yield ((key, count), *others) if count else others


def _chosen(draft: PlanBuilder, counts: Counts) -> PlanBuilder:
    rows = {row.key: row for row in draft.pair.profile.rows}
    for key, count in counts:
        draft.pair.choose(rows[key], count)
    return draft


def _does_as_much(pair: BrokerPair, goal: OffloadGoal, at: PairPrediction, reached: PairPrediction) -> bool:
    """Whether a plan is as good for the fleet as the one that was made, by the same rules."""
    limits = pair.parameters
    if limits.thresholds.above_lower(at.target) or whole_objection(pair, goal, at):
        return False
    few, near = sum(pair.present.values()) <= FEW, 0.0 if goal.relieves else limits.balance_threshold
    is_far = goal.distance(pair, at) > max(goal.distance(pair, reached) + MIN_GAIN, near)
    if is_far and (goal.relieves or not few):
        return False
    better = [one <= two + MIN_GAIN for one, two in zip(_quality(pair, at), _quality(pair, reached), strict=True)]
    return all(better) or (few and all(better[:2]) and not goal.relieves and bool(_shared_metric(pair, at)))


def _quality(pair: BrokerPair, at: PairPrediction) -> tuple[float, float, float, float]:
    """What is above where relief ends; the overload of the source; differences beyond triggers, weighed and as such."""
    limits = pair.parameters.thresholds
    above = sum(max(0.0, m.of_resource(r) - limits.of(r).relieved) for m in (at.source, at.target) for r in RESOURCES)
    over = sum(max(0.0, at.source.of_resource(each) - limits.of(each).lower) for each in RESOURCES)
    return above, over, weighted_excess(pair, at), pair.excess(METRICS, at)


def _shared_metric(pair: BrokerPair, at: PairPrediction) -> Metric | None:
    """The metric of which the target has its share: as much as the brokers of its fleet have on average."""
    for metric in METRICS if pair.others else ():
        factor = pair.parameters.normalization_seconds
        levels = [each.of_metric(metric, factor) for each in (at.source, at.target, *pair.others)]
        if levels[1] >= sum(levels) / len(levels):
            return metric
    return None


def _plan_of(draft: PlanBuilder, counts: Counts, goal: OffloadGoal, made: OffloadPlan) -> OffloadPlan:
    rows, pair = {row.key: row for row in draft.pair.profile.rows}, draft.pair
    for key, count in counts:
        before, at = pair.difference(goal.metric), pair.predict_move(rows[key], count)
        what = f"{goal.metric} difference {before:+.4f} -> {pair.difference(goal.metric, at):+.4f}"
        draft.choose(rows[key], count, f"fewest moves: {what}; {count} of {rows[key].count}")
    return draft.plan(goal_end(draft, goal) or _end(pair, sum(count for _, count in counts), made))


def _end(pair: BrokerPair, count: int, made: OffloadPlan) -> PlanEnd:
    reached = PairPrediction(made.predicted_source.measures, made.predicted_target.measures, 0.0, 0.0)
    before, after = _quality(pair, reached), _quality(pair, pair.now)
    if all(one <= two + MIN_GAIN for one, two in zip(after, before, strict=True)):
        return PlanEnd(made.ended, f"{count} do as much as {len(made.members)}: {made.stopped}")
    shared = _shared_metric(pair, pair.now)
    text = f"{pair.target.name} has its share, the average of all in {shared}, with {count} instead of"
    return PlanEnd("Balanced", f"{text} {len(made.members)}; the others have less")
