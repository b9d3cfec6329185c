"""What keeps Spark from a machine is named, without importing any of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from plimsoll.sparkjobs.launch.local_process import missing_requirement


@pytest.fixture
def java(tmp_path: Path) -> dict[str, str]:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.touch(mode=0o755)
    return {"PATH": "", "JAVA_HOME": str(tmp_path)}


@pytest.mark.parametrize(
    ("lacking", "says"), [("pyspark", "plimsoll-operator[spark]"), ("google.protobuf", "protobuf"), ("", "")]
)
def test_what_is_missing_is_named(lacking: str, says: str, java: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == lacking else object())
    found = missing_requirement(java)
    assert says in found
    assert bool(found) is bool(lacking)


def test_without_java_nothing_else_is_looked_for(tmp_path: Path):
    assert "Java 17 or 21" in missing_requirement({"PATH": str(tmp_path)})


def test_a_package_whose_parent_is_missing_is_missing(java: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    def found(name: str) -> object:
        if name == "google.protobuf":
            raise ModuleNotFoundError(name)
        return object()

    monkeypatch.setattr(importlib.util, "find_spec", found)
    assert "protobuf" in missing_requirement(java)
