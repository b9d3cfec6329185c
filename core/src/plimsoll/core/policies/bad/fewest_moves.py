"""The fewest moves that do as much as a plan of BAD, where so few placements are possible that all can be tried.

BAD takes the heaviest first and takes nothing back, and its shuffle begins with empty brokers. In a small fleet many of
these moves are not needed. Ours (`rules: Plimsoll`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from plimsoll.core.policies.bad.dynamic_moves import TOLERANCE, imbalance_of
from plimsoll.core.policies.bad.fleet import BadFleet, BadSubscriber
from plimsoll.core.policies.bad.relief import OverloadRules
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.rebalancer import Step

PLACEMENTS_AT_MOST = 2_500
"""The most placements of which all are tried: some ten thousandths of a second each."""

Placement = Mapping[tuple[str, str], Sequence[str]]
"""Who goes from one broker to another, by both."""


def fewest_moves(first: BadFleet, reached: BadFleet, rules: OverloadRules) -> Step | None:
    """Fewer moves from the first fleet to one as good as the one reached; None if there are none."""
    home = {name: broker.name for broker in first.brokers.values() for name in broker.subscribers}
    moved = sum(name not in reached.brokers[at].subscribers for name, at in home.items())
    groups = list(_groups(first).items())
    able = sorted(name for name, broker in first.brokers.items() if broker.takes)
    others = len(able)
    if math.prod(math.comb(len(some) + others - 1, others - 1) if others else 1 for _, some in groups) > (
        PLACEMENTS_AT_MOST
    ):
        return None
    wanted = _quality(reached, rules)
    for most in range(1, moved):
        found = []
        for placed in _placements(groups, able, most):
            step = _step(first, placed)
            after = first.after(step)
            one = _quality(after, rules)
            if all(a <= b + TOLERANCE * max(1.0, b) for a, b in zip(one, wanted, strict=True)) and _spares(
                after, step, rules
            ):
                found.append((one, [(move.source, move.target, move.subscribers) for move in step.moves], step))
        if found:
            return min(found, key=lambda each: each[:2])[2]
    return None


_Alike = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Where subscribers are, what they ask for, and where they should not return."""


def _groups(fleet: BadFleet) -> dict[_Alike, list[BadSubscriber]]:
    """Subscribers that may move and are alike: at one broker, with the same subscriptions."""
    found: dict[_Alike, list[BadSubscriber]] = {}
    for name, broker in sorted(fleet.brokers.items()):
        for _, subscriber in sorted(broker.subscribers.items()):
            if not subscriber.fixed:
                key = name, subscriber.subscriptions, tuple(sorted(subscriber.left))
                found.setdefault(key, []).append(subscriber)
    return found


def _placements(
    groups: Sequence[tuple[_Alike, list[BadSubscriber]]], able: Sequence[str], total: int
) -> Iterator[list[tuple[BadSubscriber, str, str]]]:
    """Every way in which this number of subscribers can move."""
    if not groups:
        if not total:
            yield []
        return
    ((home, _, left), some), rest = groups[0], groups[1:]
    targets = [name for name in able if name != home and name not in left]
    for count in range(min(len(some), total) + 1):
        for chosen in _spread(some[:count], home, targets):
            for others in _placements(rest, able, total - count):
                yield [*chosen, *others]


def _spread(
    some: Sequence[BadSubscriber], home: str, targets: Sequence[str]
) -> Iterator[list[tuple[BadSubscriber, str, str]]]:
    """Every way to send all of these, who are alike, to these brokers."""
    if not some:
        yield []
    elif targets:
        for count in range(len(some) + 1):
            here = [(each, home, targets[0]) for each in some[:count]]
            for rest in _spread(some[count:], home, targets[1:]):
                yield [*here, *rest]


def _step(fleet: BadFleet, placed: Sequence[tuple[BadSubscriber, str, str]]) -> Step:
    why = "fewest moves: F of {} is {:.4g}, and {:.4g} at {} before all moves"
    return Step(tuple(
        PlanMove(each.key, (each.name,), home, target,
                 why.format(home, fleet.brokers[home].load, fleet.brokers[target].load, target))
        for each, home, target in placed
    ))  # fmt: skip


def _quality(fleet: BadFleet, rules: OverloadRules) -> tuple[float, float, float]:
    """Overload; the highest F; cov."""
    highest = max((broker.load for broker in fleet.brokers.values()), default=0.0)
    return rules.excess(fleet.loads), highest, imbalance_of(fleet).cov


def _spares(fleet: BadFleet, step: Step, rules: OverloadRules) -> bool:
    """Whether no target of a step is above a lower threshold."""
    targets = {move.target for move in step.moves}
    return not any(rules.thresholds.above_lower(load.measures) for load in fleet.loads if load.name in targets)
