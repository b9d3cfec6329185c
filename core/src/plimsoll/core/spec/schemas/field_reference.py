"""The fields of a kind in words: path, type, default, bounds and description, from the metadata that reading uses."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec.field_info import DescribedField, FieldInfo, described_fields
from plimsoll.core.spec.kinds import ResourceKind
from plimsoll.core.spec.quantities import Duration, Quantity
from plimsoll.core.spec.resources import to_mapping

_SCALARS: dict[Any, str] = {bool: "boolean", int: "integer", str: "string", Quantity: "quantity", Duration: "duration"}


@dataclass(frozen=True)
class FieldReference:
    """One field: `default` is empty for a required one and for a block; `bounds` are in words."""

    path: str
    type: str
    default: str
    bounds: str
    text: str
    required: bool


def field_references(kind: ResourceKind, *, brief: bool = False) -> Iterator[FieldReference]:
    """Every field of a kind's specification, in order, blocks before their parts; `brief`: not those of Kubernetes."""
    yield from _lines(kind.spec, "spec", brief=brief)


def field_table(kind: ResourceKind) -> str:
    """The fields of a kind as a Markdown table."""
    lines = ["| field | type | default | bounds | what it is |", "|---|---|---|---|---|"]
    for line in field_references(kind, brief=True):
        default = "required" if line.required else line.default
        lines.append(f"| `{line.path.removeprefix('spec.')}` | {line.type} | {default} | {line.bounds} | {line.text} |")
    return "\n".join(lines)


def _lines(block: type, path: str, *, brief: bool) -> Iterator[FieldReference]:
    for item in described_fields(block):
        hint, is_list = _element(item.hint)
        own = f"{path}.{item.key}{'[]' if is_list else ''}"
        is_block = dataclasses.is_dataclass(hint) and hint not in _SCALARS
        yield FieldReference(
            own,
            _type(hint, is_list=is_list),
            default_text(item),
            bounds_text(hint, item.about),
            item.about.text,
            item.required,
        )
        if is_block and described_fields(hint) and not (brief and item.about.is_of_kubernetes):
            yield from _lines(hint, own, brief=brief)


def _element(hint: Any) -> tuple[Any, bool]:
    """The type of a value or of a list's items, without `None`."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        hint = typing.get_args(hint)[0]
    return (typing.get_args(hint)[0], True) if typing.get_origin(hint) is tuple else (hint, False)


def _type(hint: Any, *, is_list: bool) -> str:
    if typing.get_origin(hint) is typing.Literal:
        words = " \\| ".join(typing.get_args(hint))
        return f"list of {words}" if is_list else words
    name = _SCALARS.get(hint, "block")
    return f"list of {name}s" if is_list else name


def default_text(item: DescribedField) -> str:
    """The value of a field that is left out; empty if there is none, or if it is the defaults inside a block."""
    default = to_mapping(item.default) if not item.required else None
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list):
        return ", ".join(str(item) for item in default)
    return "" if default in (None, "", [], {}) or isinstance(default, dict) else str(default)


def bounds_text(hint: object, about: FieldInfo) -> str:
    """In words: the bounds, or else the unit; the kind that a name refers to; the form of a text."""
    unit = " s" if hint is Duration else f" {about.unit}" if about.unit else ""
    words = [
        f"more than {about.above}{unit}" if about.above is not None else "",
        f"at least {about.low}{unit}" if about.low is not None else "",
        f"at most {about.high}{unit}" if about.high is not None else "",
        unit.strip() if about.above is about.low is about.high is None else "",
        f"names a {about.refers}" if about.refers else about.form,
    ]
    return ", ".join(word for word in words if word)
