"""The template of a subscription: the shape under which the index files it.

Equalities are hashed, one bound is bisected. So a subscription of some equalities and at most one bound is filed
exactly by (names and kinds of the equalities, side of the bound), its template. All others are `residual`.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from plimsoll.core.predicates import Exactly, Interval, Subscription, Value

EqualityNames = tuple[tuple[str, str], ...]  # (attribute, kind) of each equality, in attribute order


class BoundSide(IntEnum):
    """Which numbers a bound admits."""

    ABOVE = 0  # >
    AT_LEAST = 1  # >=
    BELOW = 2  # <
    AT_MOST = 3  # <=


# Of keys in ascending order, a value satisfies the head [:cut] of lower bounds or the tail [cut:] of upper bounds.
BOUND_CUTS: tuple[Callable[..., int], ...] = (bisect_left, bisect_right, bisect_right, bisect_left)


# Names of the equalities, and the bounded attribute with its side; attribute "" when there is no bound.
Template = tuple[EqualityNames, str, BoundSide]
# A template, the values of the equalities as a table key (the value itself for one equality, else a tuple of values:
# what `operator.itemgetter` returns), and the bound.
TemplateFiling = tuple[Template, Any, float]


def side_of(interval: Interval) -> tuple[BoundSide, float] | None:
    """Side and bound of an interval with one bound and no holes, else None. The whole line counts as >= -inf."""
    if interval.without:
        return None
    if interval.high == math.inf and not interval.high_open:
        return (BoundSide.ABOVE if interval.low_open else BoundSide.AT_LEAST), interval.low
    if interval.low == -math.inf and not interval.low_open:
        return (BoundSide.BELOW if interval.high_open else BoundSide.AT_MOST), interval.high
    return None


def template_filing(subscription: Subscription) -> TemplateFiling | None:
    """The template filing of a subscription, or None if it has more than equalities and one bound."""
    names: list[tuple[str, str]] = []
    values: list[Value] = []
    bound: tuple[str, BoundSide, float] | None = None
    for name, constraint in subscription.constraints:
        if constraint.__class__ is Exactly:
            names.append((name, constraint.kind))
            values.append(constraint.value)
            continue
        if bound is not None or constraint.__class__ is not Interval:
            return None
        side = side_of(constraint)
        if side is None:
            return None
        bound = (name, *side)
    key = values[0] if len(values) == 1 else tuple(values)
    if bound is None:
        return (tuple(names), "", BoundSide.ABOVE), key, 0.0
    return (tuple(names), bound[0], bound[1]), key, bound[2]
