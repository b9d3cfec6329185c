"""Structural OpenAPI v3 schemas, as custom resource definitions hold them, from the described fields of dataclasses.

What the reader checks stands here as well: types, choices, bounds, defaults, names of a list once. Descriptions say
units, bounds and defaults in words, because `kubectl explain` shows nothing else of them.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from fractions import Fraction
from typing import Any

from plimsoll.core.spec.about import About, Described, fields
from plimsoll.core.spec.quantities import DURATION, Duration, Quantity
from plimsoll.core.spec.reading import AMOUNT_MAX_LENGTH
from plimsoll.core.spec.reference import bounds, default_text
from plimsoll.core.spec.resources import written
from plimsoll.core.spec.rules import BLOCKS, Rule

Schema = dict[str, Any]

_DIGITS = r"([0-9]+\.?[0-9]*|\.[0-9]+)"
_SUFFIX = r"([numkMGTPE]|[KMGTPE]i|[eE][+-]?(0?[0-9]|1[0-8]))?"
QUANTITY = rf"^[+]?{_DIGITS}{_SUFFIX}$"
"""Nothing here that is counted is below zero."""

SOME_QUANTITY = rf"^[+]?(0*[1-9][0-9]*\.?[0-9]*|0*\.0*[1-9][0-9]*){_SUFFIX}$"
"""More than nothing: said by its form, where a list would make reckoning with every item too dear."""


def block(kind: type, *, in_list: bool = False, status: bool = False) -> Schema:
    """The schema of a dataclass of described fields. In a status nothing is required, and nothing has a default."""
    known = fields(kind)
    schema: Schema = {"type": "object"}
    if known:
        schema["properties"] = {item.key: _field(item, in_list=in_list, status=status) for item in known}
    required = [item.key for item in known if item.required and not status]
    if required:
        schema["required"] = required
    return _with_rules(schema, BLOCKS.get(kind, ()))


def _field(item: Described, *, in_list: bool, status: bool) -> Schema:
    schema = value(item.hint, item.about, in_list=in_list, status=status)
    schema = {"description": description(item, status=status), **schema}
    default = None if status else _default(item)
    return schema if default is None else {**schema, "default": default}


def description(item: Described, *, status: bool = False) -> str:
    """What a field is, its unit and bounds, and what holds if it is left out."""
    words = [item.about.text]
    limits = bounds(item.hint, item.about)
    if limits and limits == item.about.unit:
        words.append(f"In {limits}.")
    elif limits:
        words.append(f"{limits[:1].upper()}{limits[1:]}.")
    default = "" if status else default_text(item)
    if default:
        words.append(f"Default: {default}.")
    return " ".join(words)


def _default(item: Described) -> Any:
    """A block with defaults inside is there, too; lists that are empty and what may be absent are not.

    An API server asks rules of a default before it fills in what is inside.
    """
    if item.required or item.default is None or item.default == ():
        return None
    if dataclasses.is_dataclass(item.default) and not isinstance(item.default, Quantity | Duration):
        return written(item.default, defaults=True) if type(item.default) in BLOCKS else {}
    return written(item.default)


def value(hint: Any, about: About, *, in_list: bool = False, status: bool = False) -> Schema:
    """The schema of a value as the hint and what is known about it have it."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return value(typing.get_args(hint)[0], about, in_list=in_list, status=status)
    if origin is typing.Literal:
        return {"type": "string", "enum": list(typing.get_args(hint))}
    if origin is tuple:
        return _list(typing.get_args(hint)[0], about, status=status)
    if origin is dict:
        return {"type": "object", "additionalProperties": value(typing.get_args(hint)[1], about, status=status)}
    if hint is Any:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if hint is Quantity:
        return _quantity(about, in_list=in_list)
    if hint is Duration:
        return _duration(about)
    if dataclasses.is_dataclass(hint):
        return block(typing.cast(type, hint), in_list=in_list, status=status)
    return _scalar(hint, about)


def _list(hint: Any, about: About, *, status: bool) -> Schema:
    schema: Schema = {"type": "array", "items": value(hint, about, in_list=True, status=status)}
    if about.key:
        schema["items"].setdefault("required", [about.key])
    if about.max_items is not None:
        schema["maxItems"] = about.max_items
    if about.key:
        return {**schema, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [about.key]}
    is_set = about.is_set and not dataclasses.is_dataclass(hint)
    return {**schema, "x-kubernetes-list-type": "set" if is_set else "atomic"}


def _scalar(hint: Any, about: About) -> Schema:
    if hint is bool:
        return {"type": "boolean"}
    if hint is int:
        limits = {"minimum": about.low, "maximum": about.high}
        wide = {"format": "int64"} if about.high is None or about.high > 2**31 - 1 else {"format": "int32"}
        return {"type": "integer", **wide, **_given(limits)}
    if about.format:
        return {"type": "string", "format": about.format}
    pattern = f"^({about.pattern})$" if about.pattern else None
    return {"type": "string", **_given({"maxLength": about.max_length, "pattern": pattern})}


def _quantity(about: About, *, in_list: bool) -> Schema:
    """A whole number or a text; its bounds are rules, but for the commonest."""
    is_some = about.above == 0 and about.high is None
    schema: Schema = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "maxLength": AMOUNT_MAX_LENGTH,
        "minimum": 1 if about.above == 0 else 0,
        "pattern": SOME_QUANTITY if is_some and in_list else QUANTITY,
    }
    tests = []
    if about.above is not None:
        tests.append(f"quantity(string(self)).isGreaterThan(quantity('{_number(about.above)}'))")
    if about.low:
        tests.append(f"quantity(string(self)).compareTo(quantity('{_number(about.low)}')) >= 0")
    if about.high is not None:
        tests.append(f"quantity(string(self)).compareTo(quantity('{_number(about.high)}')) <= 0")
    return schema if in_list or not tests else _bounded(schema, tests, Quantity, about)


def _number(limit: int | Fraction) -> str:
    if limit != int(limit):
        raise ValueError(f"{limit} is no whole number: bounds of quantities are")
    return str(int(limit))


def _duration(about: About) -> Schema:
    schema: Schema = {
        "type": "string", "format": "duration", "maxLength": AMOUNT_MAX_LENGTH, "pattern": f"^{DURATION}$",
    }  # fmt: skip
    tests = []
    if about.above is not None:
        tests.append(f"self > duration('{_number(about.above)}s')")
    if about.low:
        tests.append(f"self >= duration('{_number(about.low)}s')")
    if about.high is not None:
        tests.append(f"self <= duration('{_number(about.high)}s')")
    return _bounded(schema, tests, Duration, about) if tests else schema


def _bounded(schema: Schema, tests: list[str], hint: type, about: About) -> Schema:
    return _with_rules(schema, (Rule(" && ".join(tests), f"must be {bounds(hint, about)}"),))


def _given(limits: dict[str, Any]) -> dict[str, Any]:
    return {key: limit for key, limit in limits.items() if limit is not None}


def _with_rules(schema: Schema, rules: tuple[Rule, ...]) -> Schema:
    return {**schema, "x-kubernetes-validations": [rule.written() for rule in rules]} if rules else schema
