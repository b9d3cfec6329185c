"""`plimsoll` is a namespace package spread over one `src/` per folder. These rules keep it importable.

A stray `__init__.py` in one `src/plimsoll/` hides all the others; one in `operator/` hides the standard library's
`operator`. Both are noticed late and in one environment only, so they are checked here.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.contracts.source_trees import ROOT, tree

SOURCES = sorted(ROOT.glob("*/src"))
PACKAGES = sorted(path for source in SOURCES for path in (source / "plimsoll").iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_no_init_where_it_would_hide_something():
    folders = [source.parent for source in SOURCES] + SOURCES + [source / "plimsoll" for source in SOURCES]
    folders += [ROOT / "operator", *(path for path in (ROOT / "tests").rglob("*") if path.is_dir()), ROOT / "tests"]
    assert [folder for folder in folders if (folder / "__init__.py").exists()] == []


def test_a_src_holds_plimsoll_alone():
    assert {entry.name for source in SOURCES for entry in source.iterdir() if entry.name != "__pycache__"} == {
        "plimsoll"
    }


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_states_its_law_and_is_typed(package: Path):
    law = ast.get_docstring(tree(package / "__init__.py")) or ""
    assert len(law.split()) >= 20, f"{package}/__init__.py should say in a paragraph what may and may not live there"
    assert (package / "py.typed").exists()


def test_every_module_opens_with_its_law():
    modules = [path for package in PACKAGES for path in package.rglob("*.py")]
    assert [path for path in modules if not ast.get_docstring(tree(path))] == []


def test_every_source_folder_is_packaged_typed_linted_and_under_contract(pyproject: dict):
    folders = {str(source.relative_to(ROOT)) for source in SOURCES}
    tool = pyproject["tool"]
    assert set(tool["hatch"]["build"]["dev-mode-dirs"]) == folders
    shipped = folders - {"demo/src", "experiments/src", "soak/src"}
    assert set(tool["hatch"]["build"]["targets"]["wheel"]["packages"]) == {f"{folder}/plimsoll" for folder in shipped}
    assert set(tool["ruff"]["src"]) == folders
    assert set(tool["mypy"]["mypy_path"]) == folders
    assert set(tool["mypy"]["files"]) >= folders
    assert set(tool["importlinter"]["root_packages"]) == {f"plimsoll.{package.name}" for package in PACKAGES}


def test_the_wheel_merges_all_packages(tmp_path: Path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        str(module.relative_to(source))
        for source in SOURCES
        for module in source.rglob("*")
        if module.is_file() and "__pycache__" not in module.parts
    }
    shipped = {
        module
        for module in wanted
        if not module.startswith(("plimsoll/demo/", "plimsoll/experiments/", "plimsoll/soak/"))
    }
    assert held >= shipped
    assert held & wanted == shipped, "demo, experiments and soak are for a checkout, not for a wheel"
    assert "plimsoll/__init__.py" not in held
