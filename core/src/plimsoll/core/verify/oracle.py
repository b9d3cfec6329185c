"""What matches what, by the definition of the operators and by nothing else.

The definition. A subscription matches when each of its predicates does. `exists` asks for the attribute alone. Every
other operator asks for a value of the same kind as its own: text, number or truth value. So a missing attribute and a
value of another kind match nothing, `!=` included, and `True` is not `1`. Whole and floating numbers are compared
exactly. NaN is equal to nothing, unequal to nothing and in no order. `< <= > >=` are for numbers; `prefix suffix
contains` for texts, by code points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plimsoll.core.verify.observations import Triple, Value

Filter = tuple[tuple[str, str, Any], ...]

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_TEXTS: dict[str, Callable[[str, str], bool]] = {
    "prefix": lambda a, b: a[: len(b)] == b,
    "suffix": lambda a, b: len(a) >= len(b) and a[len(a) - len(b) :] == b,
    "contains": lambda a, b: b in a,
}
OPERATORS = frozenset({"=", "!=", "in", "exists", *_ORDERS, *_TEXTS})


def kind(value: Value) -> str:
    """`truth`, `number`, `text`, or `none` for what is comparable with nothing."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "text"
    return "number" if value == value else "none"


def holds(operator: str, found: Value, wanted: Any) -> bool:
    """Whether one predicate holds for a value that is there.

    Raises:
        ValueError: for an operator that is not defined.

    """
    if operator == "exists":
        return True
    if operator == "in":
        return any(holds("=", found, one) for one in wanted)
    if operator not in OPERATORS:
        raise ValueError(f"operator {operator!r} is not defined; operators are {' '.join(sorted(OPERATORS))}")
    mine = kind(found)
    if mine == "none" or mine != kind(wanted):
        return False
    if operator in _TEXTS:
        return mine == "text" and _TEXTS[operator](str(found), wanted)
    if operator in _ORDERS:
        return mine == "number" and _ORDERS[operator](found, wanted)
    return bool(found == wanted) is (operator == "=")


def matches(predicates: Sequence[Triple] | Filter, attributes: Mapping[str, Value]) -> bool:
    """Whether every predicate holds for these attributes."""
    return all(
        name in attributes and holds(operator, attributes[name], wanted) for name, operator, wanted in predicates
    )


def frozen(predicates: Sequence[Triple]) -> Filter:
    """The same predicates as a key: equal keys match the same publications."""
    return tuple((name, op, tuple(value) if isinstance(value, list) else value) for name, op, value in predicates)


class Filters:
    """Distinct filters, each asked once per publication.

    The only short cut: a filter with an equality is asked only where that attribute has that value, which it needs to
    match.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._filters: list[Filter] = []
        self._by_equality: dict[tuple[str, str, Value], list[int]] = {}
        self._others: list[int] = []

    def __len__(self) -> int:
        return len(self._filters)

    def number(self, predicates: Sequence[Triple]) -> int:
        """The number of this filter, the same for equal ones."""
        rule = frozen(predicates)
        for _, operator, _ in rule:
            if operator not in OPERATORS:
                raise ValueError(f"operator {operator!r} is not defined; operators are {' '.join(sorted(OPERATORS))}")
        key = repr(rule)  # not the rule itself: 1, 1.0 and True are equal there
        if key not in self._numbers:
            self._numbers[key] = len(self._filters)
            self._file(len(self._filters), rule)
            self._filters.append(rule)
        return self._numbers[key]

    def _file(self, number: int, rule: Filter) -> None:
        for name, operator, value in rule:
            if operator == "=":
                self._by_equality.setdefault((name, kind(value), value), []).append(number)
                return
        self._others.append(number)

    def matching(self, attributes: Mapping[str, Value]) -> list[int]:
        """Numbers of the filters that match, ascending."""
        asked = list(self._others)
        for name, value in attributes.items():
            asked += self._by_equality.get((name, kind(value), value), ())
        return sorted(number for number in asked if matches(self._filters[number], attributes))
