"""The fewest subscribers that do as much as a plan, where so few plans are possible that all can be tried.

Of plans with as many subscribers it is the one that leaves the fleet most even.

The algorithms of PADRES 2006 choose one set after another and take none back. A first choice that a later one makes
needless costs a hand-over, and a set with little traffic goes where one with much would have been enough. With few
subscribers that is a large part of all moves, so there every smaller plan between the two brokers is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from plimsoll.core.policies.model.broker_pair import BrokerPair, PairPrediction
from plimsoll.core.policies.model.load import METRICS, RESOURCES, LoadMeasures
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import OffloadPlan
from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.policies.padres.report_cards import MIN_GAIN, OffloadGoal, weighted_excess, whole_objection
from plimsoll.core.policies.padres.selection import goal_end

PLANS_AT_MOST = 1_000
"""The most possible plans of which all are tried: some ten thousandths of a second each."""

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
        if counts and (total < len(made.members) or quality[1] < _quality(first, reached)[1] - MIN_GAIN):
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
    """Whether a plan comes as far as the one that was made, by the same rules."""
    limits = pair.parameters
    if limits.thresholds.above_lower(at.target) or whole_objection(pair, goal, at):
        return False
    near = 0.0 if goal.relieves else limits.balance_threshold
    if goal.distance(pair, at) > max(goal.distance(pair, reached) + MIN_GAIN, near):
        return False
    return all(one <= other + MIN_GAIN for one, other in zip(_quality(pair, at), _quality(pair, reached), strict=True))


def _quality(pair: BrokerPair, at: PairPrediction) -> tuple[float, float, float]:
    """Overload of the source; differences beyond the triggers, weighted as in the rules, and as they are."""
    return _overload(at.source, pair.parameters), weighted_excess(pair, at), pair.excess(METRICS, at)


def _overload(measures: LoadMeasures, limits: BalancingParameters) -> float:
    return sum(max(0.0, measures.of_resource(each) - limits.thresholds.of(each).lower) for each in RESOURCES)


def _plan_of(draft: PlanBuilder, counts: Counts, goal: OffloadGoal, made: OffloadPlan) -> OffloadPlan:
    rows, pair = {row.key: row for row in draft.pair.profile.rows}, draft.pair
    for key, count in counts:
        before, at = pair.difference(goal.metric), pair.predict_move(rows[key], count)
        what = f"{goal.metric} difference {before:+.4f} -> {pair.difference(goal.metric, at):+.4f}"
        draft.choose(rows[key], count, f"fewest moves: {what}; {count} of {rows[key].count}")
    text = f"{sum(count for _, count in counts)} do as much as {len(made.members)}: {made.stopped}"
    return draft.plan(goal_end(draft, goal) or PlanEnd(made.ended, text))
