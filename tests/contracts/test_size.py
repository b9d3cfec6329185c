"""Limits of size. A module or function above them does more than one thing: split it, do not raise the number."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE_LINES = 600
FUNCTION_LINES = 70


def modules() -> list[Path]:
    return sorted(path for folder in ("*/src", "bench", "scripts", "tests") for path in ROOT.glob(f"{folder}/**/*.py"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1


def test_modules_keep_their_budget():
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()}
    assert {name: lines for name, lines in sizes.items() if lines > MODULE_LINES} == {}


def test_functions_keep_their_budget():
    sizes = dict(each for path in modules() for each in functions(path))
    assert {name: lines for name, lines in sizes.items() if lines > FUNCTION_LINES} == {}
