"""How many subscriptions ask for each value: which equality of a subscription is rare, and what a probe would save."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain

from plimsoll.core.predicates import Exactly, Subscription


class EqualityCounts:
    """Equalities of the subscriptions of an index, by attribute and value."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[object, int]] = {}  # attribute -> value -> subscriptions with that equality
        self._with: dict[str, int] = {}  # attribute -> subscriptions with any equality on it

    def of(self, name: str, value: object) -> int:
        """How many subscriptions ask for this value."""
        return self._seen[name][value]

    def chance(self, subscription: Subscription) -> float:
        """The chance that a publication opens a subscription's bucket, if values are distributed as in equalities."""
        return min(
            (
                self._seen[name][constraint.value] / self._with[name]
                for name, constraint in subscription.constraints
                if isinstance(constraint, Exactly)
            ),
            default=1.0,
        )

    def count(self, subscription: Subscription, by: int) -> None:
        """Add a subscription (1), or take it away (-1)."""
        for name, constraint in subscription.constraints:
            if constraint.__class__ is Exactly:
                self._change(name, constraint, by)

    def count_all(self, subscriptions: Iterable[Subscription]) -> None:
        """Add many; equalities that they share as objects are counted in one step."""
        constraints = chain.from_iterable([subscription.constraints for subscription in subscriptions])
        pairs = [pair for pair in constraints if pair[1].__class__ is Exactly]
        by_identity = dict(zip(map(id, pairs), pairs, strict=True))
        for identity, count in Counter(map(id, pairs)).items():
            name, constraint = by_identity[identity]
            if isinstance(constraint, Exactly):
                self._change(name, constraint, count)

    def _change(self, name: str, constraint: Exactly, by: int) -> None:
        values = self._seen.setdefault(name, {})
        count = values[constraint.value] = values.get(constraint.value, 0) + by
        self._with[name] = self._with.get(name, 0) + by
        if not count:
            del values[constraint.value]
            if not values:
                del self._seen[name], self._with[name]
