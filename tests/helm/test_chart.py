"""The chart's own files agree with one another; needs no Helm."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "plimsoll"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def paths(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, bool]]:
    """Every value's path, down to free-form values, and whether the schema has it."""
    for name, value in values.items():
        here = f"{path}.{name}".lstrip(".")
        known = schema.get("properties", {}).get(name)
        if known is not None and isinstance(value, dict) and "properties" in known and value:
            yield from paths(value, known, here)
        else:
            yield here, known is not None


def leaves(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, known in schema.get("properties", {}).items():
        here = f"{path}.{name}".lstrip(".")
        yield here
        yield from leaves(known, here)


def readme() -> Any:
    spec = importlib.util.spec_from_file_location("make_chart_readme", ROOT / "scripts" / "make_chart_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_schema_has_every_value():
    assert [path for path, known in paths(VALUES, SCHEMA) if not known] == []


def test_the_schema_has_no_value_that_the_chart_does_not_know():
    known = {path for path, _ in paths(VALUES, SCHEMA)}
    allowed = {"global", "resources.requests", "resources.limits", "resources.claims"}
    unknown = [
        p for p in leaves(SCHEMA) if p not in allowed and not any(k == p or k.startswith(f"{p}.") for k in known)
    ]
    assert unknown == []


def test_every_value_is_described_and_the_readme_is_made_from_them():
    module = readme()
    text = (CHART / "values.yaml").read_text()
    described = [path for path, _ in module.described(text)]
    assert {path for path, _ in paths(VALUES, SCHEMA)} - {
        path for path, _ in paths(VALUES, SCHEMA) if any(path == d or path.startswith(f"{d}.") for d in described)
    } == set()
    assert (CHART / "README.md").read_text() == module.page(), "make chart"


def test_the_chart_carries_the_definitions_as_they_are():
    made = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    assert made
    assert {path.name: path.read_text() for path in (CHART / "files" / "crds").glob("*.yaml")} == made, "make chart"
