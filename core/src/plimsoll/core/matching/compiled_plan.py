"""A publication as a vector of doubles, for the compiled loop; planned once for each set of attributes.

A value becomes the code of an equality, the number itself, or presence, each in a column of its own.
"""

import math
import struct
import sys
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from plimsoll.core.predicates import Attributes
from plimsoll.core.predicates.constraints import kind_of

ColumnKey = tuple[str, str]  # attribute, aspect: "string", "number", "boolean" (codes), "value", "present"
NAN = math.nan


class InexactError(Exception):
    """A publication has an integer that no double equals."""


class CompiledPlan:
    """The columns that publications with certain attributes fill: first string codes, then numbers, then the others."""

    __slots__ = ("_array", "_blank", "_others", "_pack", "_values", "_where", "_words", "access")

    def __init__(
        self,
        columns: dict[ColumnKey, int],
        codes: dict[ColumnKey, dict[object, int]],
        strict: set[ColumnKey],
        attributes: frozenset[str],
    ) -> None:
        here = {place: column for place, column in columns.items() if place[0] in attributes}
        words = [place for place in here if place[1] == "string" and place not in strict]
        values = [place for place in here if place[1] == "value"]
        others = [place for place in here if place[1] != "value" and (place[1] != "string" or place in strict)]
        self._words = tuple((name, codes[name, aspect].get) for name, aspect in words)
        self._values = tuple(name for name, _ in values)
        self._others = tuple((name, aspect, codes[name, aspect].get) for name, aspect in others)
        filled = [here[place] for place in (*words, *values, *others)]
        self._pack = struct.Struct(f"{len(filled)}d").pack_into
        self._array = np.full(len(columns), NAN)
        self._blank = np.zeros(len(filled), np.float64)
        self._where: NDArray[np.int64] | None = None
        if any(b != a + 1 for a, b in pairwise([-1, *filled, len(columns)])):
            self._where = np.array(filled, np.int64)
        self.access = np.array([here[place] for place in (*words, *others)], np.int32)

    def vector(self, attributes: Attributes) -> NDArray[np.float64]:
        """The publication as a vector, valid until the next call. Raises `InexactError` if it has none."""
        values: list[float] = [get(attributes[name], 0) for name, get in self._words]
        values += [value if (value := attributes[name]).__class__ is float else _number(value) for name in self._values]
        if self._others:
            values += [_other(attributes[name], aspect, get) for name, aspect, get in self._others]
        if self._where is None:
            self._pack(self._array.data, 0, *values)
        else:
            self._pack(self._blank.data, 0, *values)
            self._array[self._where] = self._blank
        return self._array

    def codes(self, attributes: Attributes) -> list[int]:
        """The codes of the buckets that a publication opens."""
        codes: list[float] = [get(attributes[name], 0) for name, get in self._words]
        codes += [_other(attributes[name], aspect, get) for name, aspect, get in self._others]
        return [int(code) for code in codes if code == code]


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NAN
    if not is_double(value):
        raise InexactError
    return float(value)


def _other(value: object, aspect: str, get: Callable[[object, int], int]) -> float:
    if aspect == "present":
        return get(None, 0)
    return get(value, 0) if kind_of(value) == aspect else NAN


def is_double(number: float) -> bool:
    return (
        abs(number) <= 2**53
        or abs(number) == math.inf
        or (abs(number) <= sys.float_info.max and float(number) == number)
    )
