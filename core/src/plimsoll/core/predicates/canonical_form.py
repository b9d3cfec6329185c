"""From the predicates on one attribute to the one canonical constraint with the same meaning.

Finite sets are filtered by the other predicates; number bounds are merged into one interval with holes; string
predicates into one prefix, one suffix and the pieces that these do not already contain. Predicates that no value can
satisfy raise `NoValueError`, which names those that conflict. Work is linear in predicates and values, but for
`contains`: each piece is compared with each other piece and value (PIECES_AT_MOST in `syntax`).
"""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import ne

from plimsoll.core.predicates.constraints import (
    PRESENT,
    AnyConstraint,
    Exactly,
    Interval,
    Kind,
    NoValueError,
    OneOf,
    Operand,
    Operator,
    Text,
    Value,
    kind_of,
)

ORDER_OPERATORS: frozenset[str] = frozenset(("<", "<=", ">", ">="))
TEXT_OPERATORS: frozenset[str] = frozenset(("prefix", "suffix", "contains"))
OPERATORS: frozenset[str] = ORDER_OPERATORS | TEXT_OPERATORS | {"=", "!=", "in", "exists"}
# One empty set for all: Python makes a new one of 216 bytes each time.
NO_NUMBERS: frozenset[float] = frozenset()
NO_STRINGS: frozenset[str] = frozenset()
SHOWN_AT_MOST = 8


@dataclass(frozen=True, slots=True)
class Predicate:
    """One triple: attribute, operator and operand (a value, a tuple of values for `in`, nothing for `exists`)."""

    attribute: str
    operator: Operator
    operand: Operand = None

    def __post_init__(self) -> None:
        if not self.attribute:
            raise ValueError("an attribute name is not empty")
        if self.operator not in OPERATORS:
            raise ValueError(f"unknown operator {self.operator!r}; the operators are {' '.join(sorted(OPERATORS))}")
        wanted = operand_error(self.operator, self.operand)
        if wanted:
            raise ValueError(f"[{self.attribute},{self.operator},...] takes {wanted}, not {self.operand!r}")


def checked(attribute: str, operator: Operator, operand: Operand) -> Predicate:
    """A predicate of what its reader has checked already."""
    made = object.__new__(Predicate)
    object.__setattr__(made, "attribute", attribute)
    object.__setattr__(made, "operator", operator)
    object.__setattr__(made, "operand", operand)
    return made


def operand_error(operator: Operator, operand: Operand) -> str:
    """What the operator takes, if the operand does not fit; else an empty string."""
    if operator == "exists":
        return "" if operand is None else "no operand"
    if operator == "in":
        if not isinstance(operand, tuple) or not operand:
            return "a list of at least one value"
        classes = set(map(type, operand))
        if classes == {int}:
            return ""  # usual, and long lists are checked often
        kinds = {kind_of(value) for value in {value.__class__: value for value in operand}.values()}
        if len(kinds) > 1 or None in kinds:
            return "values of one kind, all strings, all numbers or all booleans"
        return "numbers other than NaN" if "number" in kinds and any(map(ne, operand, operand)) else ""
    if operator in TEXT_OPERATORS:
        return "" if isinstance(operand, str) else "a string"
    kind = kind_of(operand)
    if operator in ORDER_OPERATORS and kind != "number":
        return "a number"
    if kind is None:
        return "a string, a number, true or false"
    return "a number other than NaN" if operand != operand else ""


def canonical(predicates: Sequence[Predicate]) -> AnyConstraint:
    """The conjunction of predicates on one attribute; raises `NoValueError` if no value satisfies them all."""
    if len(predicates) == 1 and predicates[0].operator in ORDER_OPERATORS:
        return _bound(predicates[0])  # the most frequent ones of a long text
    bounding = [p for p in predicates if p.operator != "exists"]
    if not bounding:
        return PRESENT
    kinds = {_kind(p) for p in bounding}
    if len(kinds) > 1:
        raise NoValueError(f"a value cannot be {' and '.join(sorted(f'a {kind}' for kind in kinds))} at once")
    kind = kinds.pop()
    finite = [p for p in bounding if p.operator in ("=", "in")]
    if finite or kind == "boolean":
        return _finite(finite, [p for p in bounding if p.operator not in ("=", "in")], kind)
    return _interval(bounding) if kind == "number" else _text(bounding)


def exactly(value: Value, kind: Kind) -> Exactly:
    """A constraint of one value, with -0.0 written as 0.0 and strings interned."""
    if kind == "string":
        return Exactly(sys.intern(str(value)), kind)
    return Exactly(value + 0 if isinstance(value, float) else value, kind)


def _kind(predicate: Predicate) -> Kind:
    kind = kind_of(_values(predicate)[0])
    if kind is None:
        raise TypeError(f"{predicate.operand!r} is of no kind")  # Predicate checks its operand, so this would be a bug
    return kind


def _values(predicate: Predicate) -> tuple[Value, ...]:
    operand = predicate.operand
    if operand is None:
        return ()
    return operand if isinstance(operand, tuple) else (operand,)


def _finite(finite: Sequence[Predicate], others: Sequence[Predicate], kind: Kind) -> AnyConstraint:
    left: list[Value] = list(_values(finite[0])) if finite else [False, True]
    for predicate in finite[1:]:
        allowed = frozenset(_values(predicate))
        kept = [value for value in left if value in allowed]
        if not kept:
            raise NoValueError(f"{_written(finite[0])} and {_written(predicate)} have no value in common")
        left = kept
    if others:
        left = _filtered(left, others, kind)
    unique: frozenset[Value]
    if kind == "string":
        unique = frozenset(map(sys.intern, map(str, left)))
    elif any(issubclass(each, float) for each in set(map(type, left))):
        unique = frozenset([value + 0 if isinstance(value, float) else value for value in left])
    else:
        unique = frozenset(left)
    return exactly(left[0], kind) if len(unique) == 1 else OneOf(unique, kind)


def _filtered(values: list[Value], others: Sequence[Predicate], kind: Kind) -> list[Value]:
    """The values that satisfy the predicates other than `=` and `in`: these are merged first, and tried once."""
    if kind == "boolean":
        excluded = frozenset(p.operand for p in others)
        kept = [value for value in values if value not in excluded]
    else:
        test = _interval(others) if kind == "number" else _text(others)
        kept = [value for value in values if test.accepts(value)]
    if not kept:
        shown = ", ".join(map(_written, others[:SHOWN_AT_MOST])) + (", ..." if len(others) > SHOWN_AT_MOST else "")
        verb = "excludes" if len(others) == 1 else "exclude"
        raise NoValueError(f"{shown} {verb} every value that is left: {_listed(values)}")
    return kept


def _number(value: Operand) -> int | float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")  # as above
    return value + 0  # -0.0 becomes 0.0


def _bound(predicate: Predicate) -> AnyConstraint:
    """The constraint of a single bound."""
    operator, bound = predicate.operator, _number(predicate.operand)
    if not -math.inf < bound < math.inf:
        return _interval((predicate,))
    if operator in (">", ">="):
        return Interval(bound, math.inf, operator == ">", False, NO_NUMBERS)
    return Interval(-math.inf, bound, False, operator == "<", NO_NUMBERS)


def _interval(predicates: Iterable[Predicate]) -> AnyConstraint:
    low, high, low_open, high_open = -math.inf, math.inf, False, False
    holes: set[float] = set()
    for predicate in predicates:
        operator, bound = predicate.operator, _number(predicate.operand)
        if operator == "!=":
            holes.add(bound)
        elif operator in (">", ">="):
            if bound > low or (bound == low and operator == ">"):
                low, low_open = bound, operator == ">"
        elif bound < high or (bound == high and operator == "<"):
            high, high_open = bound, operator == "<"
    low_open, high_open = low_open or low in holes, high_open or high in holes
    if low > high or (low == high and (low_open or high_open)):
        floor, ceiling = (">" if low_open else ">="), ("<" if high_open else "<=")
        raise NoValueError(f"no number is {floor} {low!r} and {ceiling} {high!r}")
    if low == high:
        return exactly(low, "number")
    inner = frozenset(hole for hole in holes if low < hole < high)
    return Interval(low, high, low_open, high_open, inner or NO_NUMBERS)


def _text(predicates: Iterable[Predicate]) -> AnyConstraint:
    prefix, suffix = "", ""
    pieces: set[str] = set()
    holes: set[str] = set()
    for predicate in predicates:
        operand = str(predicate.operand)
        if predicate.operator == "prefix":
            if not operand.startswith(prefix) and not prefix.startswith(operand):
                raise NoValueError(f"no string starts with both {prefix!r} and {operand!r}")
            prefix = max(prefix, operand, key=len)
        elif predicate.operator == "suffix":
            if not operand.endswith(suffix) and not suffix.endswith(operand):
                raise NoValueError(f"no string ends with both {suffix!r} and {operand!r}")
            suffix = max(suffix, operand, key=len)
        else:
            (pieces if predicate.operator == "contains" else holes).add(operand)
    most = max(map(len, pieces), default=0)
    needed = frozenset(
        piece
        for piece in pieces
        if piece not in prefix
        and piece not in suffix
        and (len(piece) == most or not any(piece in p for p in pieces if p != piece))
    )
    without_holes = Text(prefix, suffix, needed)
    return Text(prefix, suffix, needed or NO_STRINGS, frozenset(filter(without_holes.accepts, holes)) or NO_STRINGS)


def _written(predicate: Predicate) -> str:
    operand = predicate.operand
    shown = f"({_listed(operand)})" if isinstance(operand, tuple) else repr(operand)
    return f"{predicate.operator} {shown}"


def _listed(values: Sequence[Value]) -> str:
    """The first values of a list: an error goes back on the wire, and is to be read."""
    return ", ".join(map(repr, values[:SHOWN_AT_MOST])) + (", ..." if len(values) > SHOWN_AT_MOST else "")
