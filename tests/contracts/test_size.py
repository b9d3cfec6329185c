"""Limits of size. What is above them does more than one thing: split it, do not raise the number."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.contracts.source_trees import ROOT, nodes

MODULE_LINES = 600
FUNCTION_LINES = 70
CLASS_METHODS = 25


def modules() -> list[Path]:
    return sorted(path for folder in ("*/src", "bench", "scripts", "tests") for path in ROOT.glob(f"{folder}/**/*.py"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1


def classes(path: Path) -> Iterator[tuple[str, int]]:
    for node in nodes(path):
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in node.body)
            yield f"{path.relative_to(ROOT)} {node.name}", methods


def test_modules_keep_their_budget():
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()}
    assert {name: lines for name, lines in sizes.items() if lines > MODULE_LINES} == {}


def test_functions_keep_their_budget():
    sizes = dict(each for path in modules() for each in functions(path))
    assert {name: lines for name, lines in sizes.items() if lines > FUNCTION_LINES} == {}


def test_classes_keep_their_budget():
    sizes = dict(each for path in modules() for each in classes(path))
    assert {name: methods for name, methods in sizes.items() if methods > CLASS_METHODS} == {}
