"""What an API server does with a structural schema, as far as it can be done without one: prune, default, validate.

CEL rules are not judged here; tests against a cluster do that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from plimsoll.core.spec.quantities import Duration

ROOT = Path(__file__).resolve().parents[2]
Schema = dict[str, Any]


@cache
def definitions() -> dict[str, dict[str, Any]]:
    """The definitions as they stand in crds/, by kind."""
    found = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    return {item["spec"]["names"]["kind"]: item for item in found}


def schema_of(kind: str) -> Schema:
    schema: Schema = definitions()[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema in a schema, with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


def pruned(schema: Schema, value: Any) -> Any:
    """The value without fields that the schema does not know."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties")
        kept = {key: part for key, part in value.items() if key in known or rest}
        return {key: pruned(known.get(key, rest), part) for key, part in kept.items()}
    if isinstance(value, list):
        return [pruned(schema.get("items", {}), part) for part in value]
    return value


def defaulted(schema: Schema, value: Any) -> Any:
    """The value with the schema's defaults."""
    if isinstance(value, dict):
        filled = dict(value)
        for key, part in schema.get("properties", {}).items():
            if key not in filled and "default" in part:
                filled[key] = part["default"]
        return {key: defaulted(schema.get("properties", {}).get(key, {}), part) for key, part in filled.items()}
    if isinstance(value, list):
        return [defaulted(schema.get("items", {}), part) for part in value]
    return value


def faults(schema: Schema, value: Any, path: str = "") -> Iterator[str]:
    """The faults of a value, each as `path: fault`; unknown fields too, as with strict validation."""
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str) or isinstance(value, bool):
            yield f"{path}: neither integer nor string"
            return
    elif (wrong := _wrong_type(schema.get("type"), value)) is not None:
        yield f"{path}: {wrong}"
        return
    if isinstance(value, dict):
        yield from _object(schema, value, path)
    elif isinstance(value, list):
        yield from _list(schema, value, path)
    elif isinstance(value, str):
        yield from _text(schema, value, path)
    elif isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: {value} is out of bounds"


def _wrong_type(wanted: str | None, value: Any) -> str | None:
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": int | float}
    if wanted is None or (isinstance(value, kinds[wanted]) and (wanted == "boolean" or not isinstance(value, bool))):
        return None
    return f"{value!r} is no {wanted}"


def _object(schema: Schema, value: dict[str, Any], path: str) -> Iterator[str]:
    known, rest = schema.get("properties", {}), schema.get("additionalProperties")
    for key in schema.get("required", []):
        if key not in value:
            yield f"{path}.{key}: required"
    for key, part in value.items():
        if key in known or rest:
            yield from faults(known.get(key, rest), part, f"{path}.{key}")
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.{key}: unknown"


def _list(schema: Schema, value: list[Any], path: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{path}: too many items"
    if "x-kubernetes-list-map-keys" in schema:
        keys = [tuple(part.get(key) for key in schema["x-kubernetes-list-map-keys"]) for part in value]
        if len(set(keys)) != len(keys):
            yield f"{path}: duplicate keys"
    elif schema.get("x-kubernetes-list-type") == "set" and len(set(value)) != len(value):
        yield f"{path}: duplicates"
    for index, part in enumerate(value):
        yield from faults(schema["items"], part, f"{path}[{index}]")


def _text(schema: Schema, value: str, path: str) -> Iterator[str]:
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{path}: too long"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: no choice"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} does not match {schema['pattern']}"
    try:
        if schema.get("format") == "date-time":
            datetime.fromisoformat(value)
        elif schema.get("format") == "duration":
            Duration.parse(value)
    except ValueError:
        yield f"{path}: {value!r} is no {schema['format']}"
