"""No module reaches itself through what it imports, counting the imports that only a type checker follows.

Two modules that know each other are one module in two files: neither can be read, tested or moved without the other.
An import under `TYPE_CHECKING` or inside a function hides such a cycle from the interpreter, not from the reader.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contracts.source_trees import ROOT, nodes


def modules() -> dict[str, Path]:
    """Each module of the product by its dotted name; a package stands for its `__init__`."""
    found = {}
    for source in ROOT.glob("*/src"):
        for path in source.rglob("*.py"):
            parts = path.relative_to(source).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the product that a module imports anywhere in the file."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}:{node.lineno}: import by the full name"
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in known:
                    yield submodule
                elif node.module in known:
                    yield node.module


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The sets of modules that all reach one another (strongly connected components, after Tarjan)."""
    found: set[frozenset[str]] = set()
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in graph[name]:
            if other not in number:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            members = stack[stack.index(name) :]
            del stack[-len(members) :]
            if len(members) > 1 or name in graph[name]:
                found.add(frozenset(members))

    for name in graph:
        if name not in number:
            visit(name)
    return found


@pytest.fixture(scope="module")
def found() -> set[frozenset[str]]:
    known = modules()
    return circles({name: set(imports(path, known)) for name, path in known.items()})


def test_no_module_imports_itself_in_a_circle(found: set[frozenset[str]]):
    assert sorted(sorted(each) for each in found) == []


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"e"}}
    assert circles(graph) == {frozenset("abc"), frozenset("e")}
