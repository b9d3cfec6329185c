"""What a field of a resource is told about itself: description, unit, bounds, reference.

The reader checks values against it, and schemas are made from it; so the two cannot disagree. It is put on a field with
`typing.Annotated`; the default is the dataclass field's own.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal

NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"  # an RFC 1123 label, which Kubernetes asks of names

SET_MAX_ITEMS = 1000


@dataclass(frozen=True)
class About:
    """`low` and `high` are inclusive bounds, `above` an exclusive one, in the unit of the value (durations: seconds).

    `key` makes a list one of named objects, unique by that field; it has at most `max_items`. `refers` is the kind that
    a string names. `pattern` is matched in full; `form` says it in words, `format` as OpenAPI calls it. `check` raises
    ValueError with what else is wrong with a text.
    """

    text: str
    unit: str = ""
    low: int | Fraction | None = None
    high: int | Fraction | None = None
    above: int | Fraction | None = None
    pattern: str = ""
    form: str = ""
    format: Literal["", "date-time"] = ""
    max_length: int | None = None
    max_items: int | None = None
    key: str = ""
    check: Callable[[str], object] | None = None
    refers: str = ""

    @property
    def is_set(self) -> bool:
        """Whether a list of texts has each once. Of a set an API server notes each item's owner: long ones are none."""
        return not self.key and (self.max_items is None or self.max_items <= SET_MAX_ITEMS)


def named(text: str, refers: str = "", max_items: int | None = None) -> About:
    """A name of an object or of an item of a list."""
    form = "lower-case letters, digits and '-', at most 63"
    return About(text, pattern=NAME, form=form, max_length=63, max_items=max_items, refers=refers)


@dataclass(frozen=True, kw_only=True)
class NamedReference:
    """A reference to an object of the same namespace."""

    name: typing.Annotated[str, named("The object's name.")]


@dataclass(frozen=True)
class Described:
    """One field of a kind: its Python and YAML names, its type without annotations, and what is known about it."""

    name: str
    key: str
    hint: typing.Any
    about: About
    required: bool
    default: object


def camel(name: str) -> str:
    """`input_bytes_per_second` is `inputBytesPerSecond` in YAML."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


@cache
def fields(kind: type) -> tuple[Described, ...]:
    """The described fields of a dataclass, in their order."""
    return tuple(_fields(kind))


def _fields(kind: type) -> Iterator[Described]:
    hints = typing.get_type_hints(kind, include_extras=True)
    for item in dataclasses.fields(kind):
        hint, *extras = typing.get_args(hints[item.name])
        default = item.default if item.default_factory is dataclasses.MISSING else item.default_factory()
        yield Described(
            name=item.name,
            key=camel(item.name),
            hint=hint,
            about=next(extra for extra in extras if isinstance(extra, About)),
            required=default is dataclasses.MISSING,
            default=default,
        )
