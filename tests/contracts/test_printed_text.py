"""What is written for people goes through `plimsoll.core.printable`: no name from outside reaches a terminal raw."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contracts.source_trees import ROOT, tree

SOURCES = sorted(path for path in ROOT.glob("*/src/plimsoll/**/*.py") if path.parts[-2] != "bench")
MAKES_PRINTABLE = {"printable", "printable_lines", "printable_cell"}
WRITERS = {"sys.stdout.write", "sys.stderr.write", "sys.stdout.writelines", "sys.stderr.writelines", "print"}
RAW = {
    ("demo/src/plimsoll/demo/command.py", "_write"): "LiveDisplay has made it printable, and moves the cursor itself",
    ("demo/src/plimsoll/demo/live_display.py", "_write"): "as in the demo of one cluster",
    ("soak/src/plimsoll/soak/command.py", "_write"): "as in the demo of one cluster",
    ("sparkjobs/src/plimsoll/sparkjobs/jobs/oracle.py", "main"): "a snapshot for programs",
}
"""Functions that may write what has not just been made printable, and why."""


def calls(path: Path) -> Iterator[tuple[str, str, ast.Call]]:
    """Each call in a module: the function that it is in, what is called, and the call."""

    def visit(node: ast.AST, function: str) -> Iterator[tuple[str, str, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                yield function, ast.unparse(child.func), child
            inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            yield from visit(child, inside)

    yield from visit(tree(path), "")


def is_printable(node: ast.expr) -> bool:
    """Whether this expression is a constant, or made printable, or put together from such parts."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.BinOp):
        return is_printable(node.left) and is_printable(node.right)
    return isinstance(node, ast.Call) and ast.unparse(node.func) in MAKES_PRINTABLE


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_written_for_people_is_made_printable(path: Path):
    name = str(path.relative_to(ROOT))
    for function, called, call in calls(path):
        if called in WRITERS and (name, function) not in RAW:
            bad = [ast.unparse(part) for part in call.args if not is_printable(part)]
            assert not bad, f"{name}, line {call.lineno}: wrap {bad[0]} in printable() or printable_lines()"
        assert called != "logging.basicConfig" or path.name == "log_lines.py", (
            f"{name}, line {call.lineno}: use log_to_stderr(), whose lines are printable"
        )


def test_pages_escape_by_html_text():
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert path.name == "printable.py" or ("from html import" not in text and "import html\n" not in text), (
            f"{path.relative_to(ROOT)}: use html_text of plimsoll.core.printable"
        )


def test_what_is_listed_as_raw_is_there():
    for name, function in RAW:
        assert any(at == function and called in WRITERS for at, called, _ in calls(ROOT / name)), (name, function)


def test_a_raw_name_would_be_found():
    raw, good = ast.parse("print(f'no {name}')").body[0], ast.parse("print(printable(name) + '\\n')").body[0]
    assert isinstance(raw, ast.Expr)
    assert isinstance(good, ast.Expr)
    assert isinstance(raw.value, ast.Call)
    assert isinstance(good.value, ast.Call)
    assert not is_printable(raw.value.args[0])
    assert is_printable(good.value.args[0])
