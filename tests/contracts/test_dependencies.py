"""Every dependency is declared by the role that imports it, is used, and has its reason beside it."""

from __future__ import annotations

import ast
import itertools
import re
import sys
import tomllib
from pathlib import Path

import pytest
from tests.contracts.source_trees import ROOT, nodes

TEXT = (ROOT / "pyproject.toml").read_text()
PYPROJECT = tomllib.loads(TEXT)
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]
GROUPS: dict[str, list[str]] = PYPROJECT["dependency-groups"]
BASE: list[str] = PYPROJECT["project"]["dependencies"]

MODULE_OF = {  # where a package is not imported by its own name
    "pyzmq": "zmq",
    "pyyaml": "yaml",
    "protobuf": "google",
    "prometheus-client": "prometheus_client",
}
EXTRAS_OF = {  # which extras a package's imports may come from, beside those of every role
    "core": ["kernel"],
    "broker": ["broker"],
    "client": [],
    "mediator": [],
    "local": [],
    "cli": ["cluster"],
    "conformance": [],
    "simulator": [],
    "operator": ["operator"],
    "telemetry": ["telemetry"],
    "feeds": ["feeds"],
    "channels": ["spark", "feeds"],
    "sparkjobs": ["spark"],
    "demo": [],
    "pages": [],
    "network": [],
    "experiments": [],
    "soak": [],
}
GROUPS_OF = {"demo": ["demo"], "experiments": ["experiments"]}  # the same for groups, which are never shipped
# Spark is half a gigabyte that only its jobs need: it has a lock of its own. Images are made from locks of their roles.
LOCKS = {
    "requirements-dev.lock": sorted(set(EXTRAS) - {"spark"}),
    "requirements-spark.lock": ["spark", "feeds"],
    "requirements-broker.lock": ["broker", "kernel"],
    "requirements-operator.lock": ["operator"],
    "requirements-telemetry.lock": ["telemetry", "feeds"],
}


def name_of(requirement: str) -> str:
    return re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0].lower()


def module_of(requirement: str) -> str:
    return MODULE_OF.get(name_of(requirement), name_of(requirement))


def folders_of(package: str) -> list[Path]:
    return sorted(ROOT.glob(f"*/src/plimsoll/{package}"))


def imported_by(package: str) -> set[str]:
    """Top-level names that a package's modules import from outside the project and the standard library."""
    names: set[str] = set()
    for folder in folders_of(package):
        for path in folder.rglob("*.py"):
            for node in nodes(path):
                if isinstance(node, ast.Import):
                    names |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"plimsoll"}


@pytest.mark.parametrize("requirement", sorted({*BASE, *itertools.chain(*EXTRAS.values(), *GROUPS.values())}))
def test_a_dependency_has_its_reason(requirement: str):
    lines = [line for line in TEXT.splitlines() if line.strip().startswith(f'"{requirement}"')]
    assert lines
    for line in lines:
        reason = line.partition("#")[2]
        assert len(reason.split()) >= 3, f"say in pyproject.toml why {requirement} is needed"


@pytest.mark.parametrize("package", sorted(EXTRAS_OF))
def test_a_role_imports_only_what_it_declares(package: str):
    declared = {module_of(each) for each in BASE}
    declared |= {module_of(each) for extra in EXTRAS_OF[package] for each in EXTRAS[extra]}
    declared |= {module_of(each) for group in GROUPS_OF.get(package, []) for each in GROUPS[group]}
    assert imported_by(package) <= declared


def test_every_package_has_its_row_above():
    assert {path.name for path in ROOT.glob("*/src/plimsoll/*") if path.is_dir()} <= set(EXTRAS_OF)


def pins(lock: str) -> dict[str, str]:
    """Each locked package with its version and environment markers, up to its hashes."""
    lines = [line for line in (ROOT / lock).read_text().splitlines() if "==" in line]
    return {line.split("==")[0].replace("_", "-"): line.rstrip(" \\") for line in lines}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host_and_has_a_hash_for_everything(lock: str):
    text = (ROOT / lock).read_text()
    assert not re.search(r"://|--index|--find-links|--extra-index|--trusted-host| @ ", text)
    pinned = re.split(r"\n(?=[a-z])", text.strip())
    assert pinned
    assert [each.splitlines()[0] for each in pinned if "==" not in each or "--hash=sha256:" not in each] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_has_all_that_is_worked_with(lock: str):
    groups = itertools.chain(*GROUPS.values()) if lock == "requirements-dev.lock" else []
    wanted = [*BASE, *groups, *(each for extra in LOCKS[lock] for each in EXTRAS[extra])]
    assert {name_of(each).replace("_", "-") for each in wanted} - set(pins(lock)) == set()


@pytest.mark.parametrize("lock", sorted(set(LOCKS) - {"requirements-dev.lock"}))
def test_the_locks_agree(lock: str):
    # A marker says where a package is needed at all, which differs by role.
    first, second = (
        {name: pin.partition(" ;")[0] for name, pin in pins(each).items()} for each in ("requirements-dev.lock", lock)
    )
    assert {name for name in first.keys() & second.keys() if first[name] != second[name]} == set()
