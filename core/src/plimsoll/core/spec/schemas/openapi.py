"""Structural OpenAPI v3 schemas for custom resource definitions, from the described fields of dataclasses.

They state all that the reader checks: types, choices, bounds, defaults, unique names in lists. Descriptions repeat
units, bounds and defaults in words, because `kubectl explain` shows them nowhere else.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from fractions import Fraction
from typing import Any

from plimsoll.core.spec.field_info import DescribedField, FieldInfo, described_fields
from plimsoll.core.spec.field_reader import AMOUNT_MAX_LENGTH
from plimsoll.core.spec.quantities import Duration, Quantity
from plimsoll.core.spec.resources import to_mapping
from plimsoll.core.spec.schemas.cel_rules import BLOCK_RULES, CelRule, duration_test
from plimsoll.core.spec.schemas.field_reference import bounds_text, default_text

Schema = dict[str, Any]

EXPONENT = r"^([^eE]*|[^eE]+[eE](i|[+-]?(0?[0-9]|1[0-8]))?)$"
"""What a rule cannot refuse at a bounded cost: exponents beyond 18."""

SOME_QUANTITY = r"^[+]?(0*[1-9][0-9]*\.?[0-9]*|0*\.0*[1-9][0-9]*)([numkMGTPE]|[KMGTPE]i|[eE][+-]?(0?[0-9]|1[0-8]))?$"
"""A quantity above zero, as a pattern: in lists a CEL rule per item would exceed the cost limit."""

IS_QUANTITY = CelRule(
    "isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0",
    "must be a number with an optional suffix, such as 250m, 600k or 64Mi, and not negative",
)
IS_DURATION = CelRule(
    duration_test("self"),
    "must be a duration such as 500us, 250ms or 1m30s: numbers with the units h, m, s, ms, us and ns, in this order",
)

LONGEST_PATTERN = 60
"""Characters of the longest pattern that an API server may show to users; longer ones are rules with a message."""


def block_schema(kind: type, *, in_list: bool = False, status: bool = False) -> Schema:
    """The schema of a dataclass of described fields. In a status nothing is required, and nothing has a default."""
    known = described_fields(kind)
    schema: Schema = {"type": "object"}
    if known:
        schema["properties"] = {item.key: _field(item, in_list=in_list, status=status) for item in known}
    required = [item.key for item in known if item.required and not status]
    if required:
        schema["required"] = required
    return _with_rules(schema, BLOCK_RULES.get(kind, ()))


def _field(item: DescribedField, *, in_list: bool, status: bool) -> Schema:
    schema = value_schema(item.hint, item.about, in_list=in_list, status=status)
    schema = {"description": field_description(item, status=status), **schema}
    default = None if status else _default(item)
    return schema if default is None else {**schema, "default": default}


def field_description(item: DescribedField, *, status: bool = False) -> str:
    """A field's description, unit and bounds, and its value if it is left out."""
    words = [item.about.text]
    limits = bounds_text(item.hint, item.about)
    if limits and limits == item.about.unit:
        words.append(f"In {limits}.")
    elif limits:
        words.append(f"{limits[:1].upper()}{limits[1:]}.")
    default = "" if status else default_text(item)
    if default:
        words.append(f"Default: {default}.")
    return " ".join(words)


def _default(item: DescribedField) -> Any:
    """A field's default; blocks with defaults inside have one too, empty lists and optional values do not.

    An API server evaluates rules on a default before it fills in nested defaults.
    """
    if item.required or item.default is None or item.default in ((), {}):
        return None
    if dataclasses.is_dataclass(item.default) and not isinstance(item.default, Quantity | Duration):
        return to_mapping(item.default, defaults=True) if type(item.default) in BLOCK_RULES else {}
    return to_mapping(item.default)


def value_schema(hint: object, about: FieldInfo, *, in_list: bool = False, status: bool = False) -> Schema:
    """The schema of a value, from its type and metadata."""
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return value_schema(typing.get_args(hint)[0], about, in_list=in_list, status=status)
    if origin is typing.Literal:
        return {"type": "string", "enum": list(typing.get_args(hint))}
    if origin is tuple:
        return _list(typing.get_args(hint)[0], about, status=status)
    if origin is dict:
        each = value_schema(typing.get_args(hint)[1], about, status=status)
        return {"type": "object", "additionalProperties": each, **_given({"maxProperties": about.max_items})}
    if hint is Any:
        return {"x-kubernetes-preserve-unknown-fields": True}
    if hint is Quantity:
        return _quantity(about, in_list=in_list, status=status)
    if hint is Duration:
        return _duration(about)
    if dataclasses.is_dataclass(hint):
        return block_schema(typing.cast(type, hint), in_list=in_list, status=status)
    return _scalar(hint, about)


def _list(hint: Any, about: FieldInfo, *, status: bool) -> Schema:
    schema: Schema = {"type": "array", "items": value_schema(hint, about, in_list=True, status=status)}
    if about.key:
        schema["items"].setdefault("required", [about.key])
    if about.max_items is not None:
        schema["maxItems"] = about.max_items
    if about.key:
        return {**schema, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [about.key]}
    is_set = about.is_set and not dataclasses.is_dataclass(hint)
    return {**schema, "x-kubernetes-list-type": "set" if is_set else "atomic"}


def _scalar(hint: Any, about: FieldInfo) -> Schema:
    if hint is bool:
        return {"type": "boolean"}
    if hint is int:
        limits = {"minimum": about.low, "maximum": about.high}
        wide = {"format": "int64"} if about.high is None or about.high > 2**31 - 1 else {"format": "int32"}
        return {"type": "integer", **wide, **_given(limits)}
    if about.format:
        return {"type": "string", "format": about.format}
    pattern = f"^({about.pattern})$" if about.pattern else None
    if pattern is None or len(pattern) <= LONGEST_PATTERN:
        return {"type": "string", **_given({"maxLength": about.max_length, "pattern": pattern})}
    schema = {"type": "string", **_given({"maxLength": about.max_length})}
    return _with_rules(schema, (CelRule(f"self.matches(r'{pattern}')", f"must be {about.form}"),))


def _quantity(about: FieldInfo, *, in_list: bool, status: bool) -> Schema:
    """A whole number or a text; its form and bounds are CEL rules, except in a status, which only operators write."""
    is_some = about.above == 0 and about.high is None
    schema: Schema = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "maxLength": AMOUNT_MAX_LENGTH,
        "minimum": 1 if about.above == 0 else 0,
        "pattern": SOME_QUANTITY if is_some and in_list else EXPONENT,
    }
    if status:
        return schema
    tests: list[str] = []
    if about.above is not None:
        tests.append(f"quantity(string(self)).isGreaterThan(quantity('{_number(about.above)}'))")
    if about.low:
        tests.append(f"quantity(string(self)).compareTo(quantity('{_number(about.low)}')) >= 0")
    if about.high is not None:
        tests.append(f"quantity(string(self)).compareTo(quantity('{_number(about.high)}')) <= 0")
    if in_list:
        return schema if is_some else _with_rules(schema, (IS_QUANTITY,))
    tests = [f"!isQuantity(string(self)) || {test}" for test in tests]
    return _with_rules(schema, (IS_QUANTITY, *_bounds(tests, Quantity, about)))


def _number(limit: int | Fraction) -> str:
    if limit != int(limit):
        raise ValueError(f"{limit} is no whole number: bounds of quantities are")
    return str(int(limit))


def _duration(about: FieldInfo) -> Schema:
    tests = []
    if about.above is not None:
        tests.append(f"duration(self) > duration('{_number(about.above)}s')")
    if about.low:
        tests.append(f"duration(self) >= duration('{_number(about.low)}s')")
    if about.high is not None:
        tests.append(f"duration(self) <= duration('{_number(about.high)}s')")
    tests = [f"!({IS_DURATION.cel}) || {test}" for test in tests]
    schema: Schema = {"type": "string", "maxLength": AMOUNT_MAX_LENGTH}
    return _with_rules(schema, (IS_DURATION, *_bounds(tests, Duration, about)))


def _bounds(tests: list[str], hint: type, about: FieldInfo) -> tuple[CelRule, ...]:
    if not tests:
        return ()
    return (CelRule(" && ".join(f"({test})" for test in tests), f"must be {bounds_text(hint, about)}"),)


def _given(limits: dict[str, Any]) -> dict[str, Any]:
    return {key: limit for key, limit in limits.items() if limit is not None}


def _with_rules(schema: Schema, rules: tuple[CelRule, ...]) -> Schema:
    return {**schema, "x-kubernetes-validations": [rule.written() for rule in rules]} if rules else schema
