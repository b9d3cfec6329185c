"""Each module has its tests where a reader looks for them.

`core/src/plimsoll/core/protocol/wire.py` is tested in `tests/core/protocol/test_wire.py` and `test_wire_*.py` beside
it, or in the files of a folder `tests/core/protocol/wire/`. A part of a subpackage, `core/policies/padres/policy.py`,
may instead be tested with its subpackage, in `tests/core/policies/` or `tests/core/test_policies.py`.
A module without tests of its own is named below, with the reason and with what tests it instead.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tests.contracts.source_trees import ROOT, tree

TESTS = ROOT / "tests"

EXCEPTIONS: dict[str, str] = {
    "conformance/client_under_test.py": "a protocol and its values: see tests/conformance/test_child_client.py",
    "channels/driver.py": "all channels of a fleet: tests/local/supervision/test_channel_process.py runs it",
    "demo/fleet.py": "the brokers of a demo: tests/demo/test_command.py runs them",
    "demo/traffic.py": "the traffic of a demo: tests/demo/test_command.py sends it",
    "demo/group_run.py": "a fleet and its consumers: tests/demo/test_group_demo.py runs them",
    "soak/__main__.py": "the program behind `make soak`: tests/soak/test_command.py runs what it calls",
    "experiments/__main__.py": "behind `make experiments`: tests/experiments/test_command.py runs what it calls",
    "local/__main__.py": "behind `plimsoll up --detach`: tests/cli/commands/test_lifecycle.py starts and kills it",
    "operator/__main__.py": "the operator's program: tests/operator/reconcile/test_fleet.py runs it against a cluster",
}


def modules() -> list[tuple[str, Path]]:
    """Every module with code in it, as its path below `plimsoll/` and its file."""
    found: list[tuple[str, Path]] = []
    for package in sorted(ROOT.glob("*/src/plimsoll/*/")):
        for path in sorted(package.rglob("*.py")):
            if has_code(path):
                found.append((str(path.relative_to(package.parent)), path))
    return found


def has_code(path: Path) -> bool:
    """Whether there is anything to test: a docstring, imports and `__all__` are not."""
    for node in tree(path).body:
        is_prose = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_export = isinstance(node, ast.Assign) and all(
            isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
        )
        if not (is_prose or is_export or isinstance(node, ast.Import | ast.ImportFrom)):
            return True
    return False


def covering_tests(module: str) -> list[Path]:
    """The test files of a module, or else those of the subpackage that it is a part of."""
    path = TESTS / Path(module).with_suffix("")
    found: list[Path] = []
    while path.parent != TESTS and not found:
        name = path.name.strip("_")
        found = [*path.parent.glob(f"test_{name}.py"), *path.parent.glob(f"test_{name}_*.py"), *path.glob("test_*.py")]
        path = path.parent
    return found


def test_every_module_has_its_tests():
    assert [name for name, _ in modules() if name not in EXCEPTIONS and not covering_tests(name)] == []


def test_exceptions_are_still_needed():
    known = {name for name, _ in modules()}
    assert {name for name in EXCEPTIONS if name not in known or covering_tests(name)} == set()
    assert [name for name, reason in EXCEPTIONS.items() if len(reason.split()) < 5] == []
