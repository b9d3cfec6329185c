"""A subscription: the conjunction of its attributes' constraints, as a value.

Laws. A subscription is satisfiable, canonical and immutable: two are equal exactly when they select the same
publications, even if their texts differ. An attribute that a publication lacks satisfies nothing, `!=` included.
"""

import itertools
from collections.abc import Iterable, Mapping
from functools import lru_cache

from plimsoll.core.predicates import syntax
from plimsoll.core.predicates.canonical_form import Predicate, canonical, checked, exactly
from plimsoll.core.predicates.constraints import AnyConstraint, Exactly, NoValueError, Value

Attributes = Mapping[str, Value]


class Unsatisfiable(ValueError):  # noqa: N818  # a public name: it says what the subscription is
    """No publication can match; `attribute` says where, `reason` why."""

    def __init__(self, attribute: str, reason: str) -> None:
        super().__init__(f"attribute {attribute!r}: {reason}")
        self.attribute = attribute
        self.reason = reason

    def __reduce__(self) -> tuple[type["Unsatisfiable"], tuple[str, str]]:
        return Unsatisfiable, (self.attribute, self.reason)


class Subscription:
    """Selects the publications that satisfy every constraint. Made by `parse` or `conjunction`.

    `constraints` holds (attribute, constraint) pairs in attribute order, one per attribute.
    """

    __slots__ = ("_hash", "constraints")
    constraints: tuple[tuple[str, AnyConstraint], ...]
    _hash: int

    def __init__(self, constraints: tuple[tuple[str, AnyConstraint], ...]) -> None:
        object.__setattr__(self, "constraints", constraints)
        object.__setattr__(self, "_hash", hash(constraints))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a subscription is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a subscription is immutable; cannot delete {name!r}")

    def matches(self, attributes: Attributes) -> bool:
        """Whether a publication with these attributes is selected."""
        for name, constraint in self.constraints:
            if name not in attributes or not constraint.accepts(attributes[name]):
                return False
        return True

    def covers(self, other: "Subscription") -> bool:
        """Whether every publication that `other` selects is selected here too. A subscription covers itself."""
        theirs = dict(other.constraints)
        for name, constraint in self.constraints:
            # `other` is satisfiable, so a publication that it selects may lack an attribute that it leaves free.
            if name not in theirs or not constraint.covers(theirs[name]):
                return False
        return True

    def predicates(self) -> tuple[Predicate, ...]:
        """The canonical predicates: fewest per attribute, in attribute order."""
        return tuple(
            Predicate(name, operator, operand)
            for name, constraint in self.constraints
            for operator, operand in constraint.predicates()
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Subscription):
            return NotImplemented
        return self is other or (self._hash == other._hash and self.constraints == other.constraints)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return ",".join(
            syntax.format_predicate(name, operator, operand)
            for name, constraint in self.constraints
            for operator, operand in constraint.predicates()
        )

    def __repr__(self) -> str:
        return f"parse({str(self)!r})"

    def __reduce__(self) -> tuple[type["Subscription"], tuple[tuple[tuple[str, AnyConstraint], ...]]]:
        return Subscription, (self.constraints,)


@lru_cache(maxsize=16_384)
def _shared(name: str, value: str) -> tuple[str, AnyConstraint]:
    """One shared object per string equality: equalities take most of the memory of subscriptions."""
    return syntax.interned(name), exactly(value, "string")


def conjunction(predicates: Iterable[Predicate]) -> Subscription:
    """The conjunction of the predicates. Raises `Unsatisfiable`; ValueError if there are no predicates."""
    by_attribute: dict[str, list[Predicate]] = {}
    for predicate in predicates:
        by_attribute.setdefault(predicate.attribute, []).append(predicate)
    if not by_attribute:
        raise ValueError("a subscription has at least one predicate")
    constraints: list[tuple[str, AnyConstraint]] = []
    for name in sorted(by_attribute):
        try:
            constraint = canonical(by_attribute[name])
        except NoValueError as empty:
            raise Unsatisfiable(name, str(empty)) from None
        if isinstance(constraint, Exactly) and isinstance(constraint.value, str):
            constraints.append(_shared(name, constraint.value))
        else:
            constraints.append((syntax.interned(name), constraint))
    return Subscription(tuple(constraints))


def parse(written: str) -> Subscription:
    """The subscription of a text such as `[class,=,'STOCK'],[high,>,25.0]`. Raises `ParseError` or `Unsatisfiable`."""
    return conjunction(itertools.starmap(checked, syntax.parse_triples(written)))
