"""Constraints on one attribute: the sets of values that predicates describe, in canonical form.

Laws. Every value has one kind (string, number, boolean), and a constraint other than `Present` admits values of one
kind only; a value of another kind does not satisfy it, under any operator. Two constraints are equal exactly when
they admit the same values, so canonical equality is semantic equality. Numbers are points of the extended real line:
ints and floats compare exactly (Python's mixed comparison does not round, even beyond 2**53), the line is dense, and
NaN is not on it and so satisfies only `Present`. Strings are sequences of code points; there are infinitely many.
Each `covers` is exact under these laws; comments give the argument where it is not obvious.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Value = str | int | float | bool
Kind = Literal["string", "number", "boolean"]
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "prefix", "suffix", "contains", "exists"]
Operand = Value | tuple[Value, ...] | None


class NoValueError(Exception):
    """No value satisfies the predicates on an attribute; the text says why."""


def kind_of(value: object) -> Kind | None:
    """The kind of a value, or None if no attribute can have its type. bool is not a number here."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else None


def sorted_values(values: Iterable[Value]) -> tuple[Value, ...]:
    """Values of one kind, sorted."""
    return tuple(sorted(values))


@dataclass(frozen=True, slots=True, eq=False)
class Exactly:
    """One value. Its kind is compared too: `true` is not 1, while 1 and 1.0 are the same number."""

    value: Value
    kind: Kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exactly) and self.kind == other.kind and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.kind, self.value))

    def accepts(self, value: object) -> bool:
        return self.value == value and kind_of(value) == self.kind

    def covers(self, other: "AnyConstraint") -> bool:
        return self == other

    def predicates(self) -> list[tuple[Operator, Operand]]:
        return [("=", self.value)]


@dataclass(frozen=True, slots=True)
class OneOf:
    """Two values or more, of one kind; both booleans together say "is a boolean"."""

    values: frozenset[Value]
    kind: Kind

    def accepts(self, value: object) -> bool:
        return value in self.values and kind_of(value) == self.kind

    def covers(self, other: "AnyConstraint") -> bool:
        if self.kind != other.kind:
            return False
        if isinstance(other, Exactly):
            return other.value in self.values
        return isinstance(other, OneOf) and other.values <= self.values  # the rest admit infinitely many values

    def predicates(self) -> list[tuple[Operator, Operand]]:
        return [("in", sorted_values(self.values))]


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers between two bounds, without finitely many inner points. Never empty and never a single point."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    without: frozenset[float] = frozenset()

    @property
    def kind(self) -> Kind:
        return "number"

    def accepts(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below and value not in self.without  # every comparison with NaN is false

    def covers(self, other: "AnyConstraint") -> bool:
        if isinstance(other, Interval):
            # Both are dense, so inclusion of the bounds and of the holes decides.
            low = self.low < other.low or (self.low == other.low and (other.low_open or not self.low_open))
            high = self.high > other.high or (self.high == other.high and (other.high_open or not self.high_open))
            return low and high and not any(map(other.accepts, self.without))
        if isinstance(other, Exactly):
            return self.accepts(other.value)
        return isinstance(other, OneOf) and all(map(self.accepts, other.values))

    def predicates(self) -> list[tuple[Operator, Operand]]:
        written: list[tuple[Operator, Operand]] = []
        if self.low > -math.inf or self.low_open:
            written.append((">" if self.low_open else ">=", self.low))
        if self.high < math.inf or self.high_open:
            written.append(("<" if self.high_open else "<=", self.high))
        written.extend(("!=", point) for point in sorted(self.without))
        return written or [(">=", -math.inf)]


@dataclass(frozen=True, slots=True)
class Text:
    """Strings with a prefix, a suffix, every one of some pieces, and none of finitely many values. Never empty."""

    prefix: str = ""
    suffix: str = ""
    pieces: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()

    @property
    def kind(self) -> Kind:
        return "string"

    def accepts(self, value: object) -> bool:
        return (
            isinstance(value, str)
            and value.startswith(self.prefix)
            and value.endswith(self.suffix)
            and all(piece in value for piece in self.pieces)
            and value not in self.without
        )

    def covers(self, other: "AnyConstraint") -> bool:
        if isinstance(other, Exactly):
            return self.accepts(other.value)
        if isinstance(other, OneOf):
            return all(map(self.accepts, other.values))
        # `other` admits prefix + x + piece + x + ... + x + suffix for any string x, so its members share only pieces
        # that its prefix, its suffix or one of its pieces contains by itself.
        return (
            isinstance(other, Text)
            and other.prefix.startswith(self.prefix)
            and other.suffix.endswith(self.suffix)
            and all(
                piece in other.prefix or piece in other.suffix or any(piece in longer for longer in other.pieces)
                for piece in self.pieces
            )
            and not any(map(other.accepts, self.without))
        )

    def predicates(self) -> list[tuple[Operator, Operand]]:
        written: list[tuple[Operator, Operand]] = []
        if self.prefix:
            written.append(("prefix", self.prefix))
        if self.suffix:
            written.append(("suffix", self.suffix))
        written.extend(("contains", piece) for piece in sorted(self.pieces))
        written.extend(("!=", value) for value in sorted(self.without))
        return written or [("prefix", "")]


@dataclass(frozen=True, slots=True)
class Present:
    """Any value at all, of any kind, NaN among them."""

    @property
    def kind(self) -> None:
        return None

    def accepts(self, value: object) -> bool:
        return True

    def covers(self, other: "AnyConstraint") -> bool:
        return True

    def predicates(self) -> list[tuple[Operator, Operand]]:
        return [("exists", None)]


AnyConstraint = Exactly | OneOf | Interval | Text | Present
PRESENT = Present()
