"""Metadata of a resource's field: description, unit, bounds, reference.

The reader checks values against it and schemas are generated from it, so the two cannot disagree. It is attached to a
field with `typing.Annotated`; the default is the dataclass field's own.
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
BROKER_NAME = r"[a-z]([-a-z0-9]*[a-z0-9])?"  # an RFC 1035 label, which Kubernetes asks of the names of Services
BROKER_NAME_LENGTH = 52
"""Kubernetes labels a pod with the name of its StatefulSet and a hash of up to ten digits, in at most 63 characters."""
LABEL = r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"  # the key of a label
IMAGE = r"[A-Za-z0-9][-A-Za-z0-9._/:@]*|"  # of containers, or none

SET_MAX_ITEMS = 1000


@dataclass(frozen=True)
class FieldInfo:
    """`low` and `high` are inclusive bounds, `above` an exclusive one, in the unit of the value (durations: seconds).

    `key` makes a list one of named objects, unique by that field, with at most `max_items`. `refers` is the kind that a
    string names. `pattern` must match in full; `form` describes it in words, `format` is its OpenAPI name. `check`
    raises ValueError for any other fault of a text. `is_of_kubernetes`: a block whose fields Kubernetes describes; the
    tables of the pages do not repeat them.
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
    is_of_kubernetes: bool = False

    @property
    def is_set(self) -> bool:
        """Whether a list of texts is a set. API servers track the owner of each item of a set: long lists are none."""
        return not self.key and (self.max_items is None or self.max_items <= SET_MAX_ITEMS)


def name_field(text: str, refers: str = "", max_items: int | None = None) -> FieldInfo:
    """A name of an object or of a list item."""
    form = "lower-case letters, digits and '-', at most 63"
    return FieldInfo(text, pattern=NAME, form=form, max_length=63, max_items=max_items, refers=refers)


def broker_field(text: str) -> FieldInfo:
    """A name that a broker is made with."""
    form = f"a letter, then lower-case letters, digits and '-', at most {BROKER_NAME_LENGTH}"
    return FieldInfo(text, pattern=BROKER_NAME, form=form, max_length=BROKER_NAME_LENGTH)


def image_field(text: str) -> FieldInfo:
    """An image of containers; empty for a default."""
    return FieldInfo(text, pattern=IMAGE, form="an image, as registry/name:tag", max_length=512)


@dataclass(frozen=True, kw_only=True)
class NamedReference:
    """A reference to an object of the same namespace."""

    name: typing.Annotated[str, name_field("The object's name.")]


@dataclass(frozen=True)
class DescribedField:
    """One field of a kind: its Python and YAML names, its type without annotations, and its metadata."""

    name: str
    key: str
    hint: typing.Any
    about: FieldInfo
    required: bool
    default: object


def camel_case(name: str) -> str:
    """`input_bytes_per_second` is `inputBytesPerSecond` in YAML."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


@cache
def described_fields(kind: type) -> tuple[DescribedField, ...]:
    """The described fields of a dataclass, in their order."""
    return tuple(_fields(kind))


def _fields(kind: type) -> Iterator[DescribedField]:
    hints = typing.get_type_hints(kind, include_extras=True)
    for item in dataclasses.fields(kind):
        hint, *extras = typing.get_args(hints[item.name])
        default = item.default if item.default_factory is dataclasses.MISSING else item.default_factory()
        yield DescribedField(
            name=item.name,
            key=camel_case(item.name),
            hint=hint,
            about=next(extra for extra in extras if isinstance(extra, FieldInfo)),
            required=default is dataclasses.MISSING,
            default=default,
        )
