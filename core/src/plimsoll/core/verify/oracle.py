"""Matching by the definition of the operators alone.

The definition. A subscription matches if each of its predicates does. `exists` requires the attribute alone. Every
other operator requires a value of the same kind as its operand: text, number or truth value. So a missing attribute
and a value of another kind match nothing, `!=` included, and `True` is not `1`. Integers and floats are compared
exactly. NaN is equal to nothing, unequal to nothing and in no order. `< <= > >=` apply to numbers, `prefix suffix
contains` to texts, by code points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plimsoll.core.verify.observations import Triple, Value

FilterKey = tuple[tuple[str, str, Any], ...]

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
    """`truth`, `number`, `text`, or `none` for NaN, which compares with nothing."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "text"
    return "number" if value == value else "none"


def holds(operator: str, found: Value, wanted: Any) -> bool:  # the constant of any operator
    """Whether one predicate holds for a value that is present.

    Raises:
        ValueError: the operator is not defined.

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


def matches(predicates: Sequence[Triple] | FilterKey, attributes: Mapping[str, Value]) -> bool:
    """Whether every predicate holds for these attributes."""
    return all(
        name in attributes and holds(operator, attributes[name], wanted) for name, operator, wanted in predicates
    )


def filter_key(predicates: Sequence[Triple]) -> FilterKey:
    """The same predicates as a key: equal keys match the same publications."""
    return tuple((name, op, tuple(value) if isinstance(value, list) else value) for name, op, value in predicates)


class FilterTable:
    """Distinct filters, each evaluated once per publication.

    The only short cut: a filter with an equality is evaluated only if that attribute has that value.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._filters: list[FilterKey] = []
        self._by_equality: dict[tuple[str, str, Value], list[int]] = {}
        self._others: list[int] = []

    def __len__(self) -> int:
        return len(self._filters)

    def number(self, predicates: Sequence[Triple]) -> int:
        """The number of this filter; equal filters share it."""
        rule = filter_key(predicates)
        for _, operator, _ in rule:
            if operator not in OPERATORS:
                raise ValueError(f"operator {operator!r} is not defined; operators are {' '.join(sorted(OPERATORS))}")
        key = repr(rule)  # not the rule itself: 1, 1.0 and True are equal there
        if key not in self._numbers:
            self._numbers[key] = len(self._filters)
            self._file(len(self._filters), rule)
            self._filters.append(rule)
        return self._numbers[key]

    def _file(self, number: int, rule: FilterKey) -> None:
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
