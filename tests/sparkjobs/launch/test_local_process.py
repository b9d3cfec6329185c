"""The check of Spark's requirements names what is missing, without importing Spark."""

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
    ("lacking", "text"), [("pyspark", "plimsoll-operator[spark]"), ("google.protobuf", "protobuf"), ("", "")]
)
def test_a_missing_package_is_named(lacking: str, text: str, java: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == lacking else object())
    found = missing_requirement(java)
    assert text in found
    assert bool(found) is bool(lacking)


def test_without_java_no_package_is_checked(tmp_path: Path):
    assert "Java 17 or 21" in missing_requirement({"PATH": str(tmp_path)})


def test_a_package_without_its_parent_package_is_missing(java: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    def found(name: str) -> object:
        if name == "google.protobuf":
            raise ModuleNotFoundError(name)
        return object()

    monkeypatch.setattr(importlib.util, "find_spec", found)
    assert "protobuf" in missing_requirement(java)


def test_a_home_without_java_is_named_though_there_is_one_on_the_path(java: dict[str, str], tmp_path: Path):
    found = missing_requirement({"PATH": str(tmp_path / "bin"), "JAVA_HOME": "/nowhere"})
    assert found.startswith("JAVA_HOME is /nowhere, and there is no bin/java in it")
