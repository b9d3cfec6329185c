"""The schema of a feed: which attributes become columns, of which types; and why a publication does not fit.

Values only. A schema is declared, or inferred once from the first publications; from then on it is held to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec import Struct

from plimsoll.core.protocol.wire import Scalar

ColumnType = Literal["String", "Integer", "Number", "Boolean"]

RESERVED: Final = (
    "_row", "_publisher", "_incarnation", "_seq", "_head", "_head_epoch", "_offset", "_sent", "_recorded", "_payload",
    "recorded_day", "recorded_hour",
)  # fmt: skip
"""Columns of every dataset, and of its folders. No attribute can have these names."""

EXACT_INTEGER: Final = 2**53
"""Whole numbers up to this one are exact as floating-point numbers."""
INTEGER_LIMIT: Final = 2**63
SHOWN_CHARACTERS: Final = 60


class FeedColumn(Struct, frozen=True):
    """One attribute as a column. A publication without a `required` one does not fit; others are null there."""

    name: str
    type: ColumnType
    required: bool = False


class FeedSchema(Struct, frozen=True):
    """The columns of a feed. `drops_unknown`: attributes without a column are left out; else such a row does not fit."""

    columns: tuple[FeedColumn, ...]
    drops_unknown: bool = False

    def row(self, attributes: Mapping[str, Scalar]) -> dict[str, Scalar | None]:
        """The values by column.

        Raises:
            MisfitError: the publication does not fit, and why.

        """
        names = {column.name for column in self.columns}
        unknown = sorted(name for name in attributes if name not in names or name in RESERVED)
        if reserved := [name for name in unknown if name in RESERVED]:
            raise MisfitError(f"attribute {_shown(reserved[0])} has the name of a column that every feed has")
        if unknown and not self.drops_unknown:
            raise MisfitError(f"attribute {_shown(unknown[0])} is not in the schema")
        return {column.name: _value(column, attributes.get(column.name)) for column in self.columns}


class MisfitError(ValueError):
    """A publication does not fit a schema; says which attribute, and why."""


def inferred(rows: Iterable[Mapping[str, Scalar]]) -> FeedSchema:
    """The schema of the first publications: every attribute of theirs, none required.

    An attribute with whole and other numbers is a Number; one of several types has the type that came first.
    """
    types: dict[str, ColumnType] = {}
    for attributes in rows:
        for name, value in attributes.items():
            found = column_type(value)
            known = types.setdefault(name, found)
            if {known, found} == {"Integer", "Number"}:
                types[name] = "Number"
    return FeedSchema(tuple(FeedColumn(name, types[name]) for name in sorted(types) if name not in RESERVED))


def column_type(value: Scalar) -> ColumnType:
    """The type of a column that holds this value."""
    if isinstance(value, bool):
        return "Boolean"
    if isinstance(value, int):
        return "Integer"
    return "Number" if isinstance(value, float) else "String"


def _value(column: FeedColumn, value: Scalar | None) -> Scalar | None:
    if value is None:
        if column.required:
            raise MisfitError(f"attribute {_shown(column.name)} is missing")
        return None
    found = column_type(value)
    if found == "Integer" and column.type == "Number" and abs(value) <= EXACT_INTEGER:  # type: ignore[arg-type]  # a number, as column_type says
        return float(value)
    if found != column.type:
        article = "an" if column.type == "Integer" else "a"
        raise MisfitError(f"attribute {_shown(column.name)} is {_shown(str(value))}, not {article} {column.type}")
    if isinstance(value, int) and not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
        raise MisfitError(f"attribute {_shown(column.name)} does not fit 64 bits")
    return value


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "...")
