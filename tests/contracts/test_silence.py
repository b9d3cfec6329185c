"""Silence has its reason beside it: a silenced rule, an ignored type, an exception that ends without a trace.

A handler that only returns a value is not meant: it turns the exception into an answer.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path
    for folder in ("*/src", "tests", "bench", "scripts", "examples")
    for top in ROOT.glob(folder)
    for path in top.rglob("*.py")
)
PRAGMA = re.compile(r"#\s*(?:ruff: )?(?:noqa|type: ignore)\b")
REASONED = re.compile(r"# (?:(?:ruff: )?noqa: [A-Z0-9, ]+|type: ignore\[[a-z, -]+\])  # \S")
QUIET_ARGUMENTS = ("return_exceptions", "ignore_errors")


def comments_of(text: str) -> dict[int, str]:
    """The comments of a source, by line."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


def pragmas_without_reason(text: str) -> Iterator[int]:
    for line, comment in comments_of(text).items():
        if PRAGMA.match(comment) and not REASONED.match(comment):
            yield line


def swallowed_without_reason(text: str) -> Iterator[int]:
    """Lines where an exception ends, with no comment on them, above them, or on what is done instead."""
    comments = comments_of(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler) and all(map(_does_nothing, node.body)):
            first, last = node.lineno, node.body[-1].end_lineno or node.lineno
        elif isinstance(node, ast.Call) and _is_quiet(node):
            first, last = node.lineno, node.end_lineno or node.lineno
        else:
            continue
        if not any(line in comments for line in range(first - 1, last + 1)):
            yield first


def _does_nothing(statement: ast.stmt) -> bool:
    is_bare_return = isinstance(statement, ast.Return) and statement.value is None
    return isinstance(statement, ast.Pass | ast.Continue | ast.Break) or is_bare_return


def _is_quiet(call: ast.Call) -> bool:
    is_quiet = any(
        each.arg in QUIET_ARGUMENTS and isinstance(each.value, ast.Constant) and each.value.value
        for each in call.keywords
    )
    return is_quiet or ast.unparse(call.func) in ("suppress", "contextlib.suppress")


@pytest.mark.parametrize("find", [pragmas_without_reason, swallowed_without_reason])
def test_what_is_silent_has_its_reason(find):
    assert [f"{path.relative_to(ROOT)}:{line}" for path in FILES for line in find(path.read_text())] == []


@pytest.mark.parametrize(
    "text",
    [
        "x = y  # noqa: S101",
        "x = y  # noqa",
        "x = y  # type: ignore[arg-type]",
        "x = y  # type: ignore  # no code",
        "# ruff: noqa: S101",
    ],
)
def test_a_pragma_without_a_reason_is_found(text: str):
    assert list(pragmas_without_reason(text)) == [1]
    assert list(pragmas_without_reason(f"text = {text!r}")) == []


@pytest.mark.parametrize(
    "text", ["x = y  # noqa: S101, S102  # made here", "x = y  # type: ignore[misc]  # a stand-in"]
)
def test_a_pragma_with_a_reason_is_none(text: str):
    assert list(pragmas_without_reason(text)) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("try:\n    f()\nexcept OSError:\n    pass", 3),
        ("for x in y:\n    try:\n        f()\n    except OSError:\n        continue", 4),
        ("def g():\n    try:\n        f()\n    except OSError:\n        return", 4),
        ("with suppress(OSError):\n    f()", 1),
        ("await gather(task, return_exceptions=True)", 1),
        ("rmtree(folder, ignore_errors=True)", 1),
    ],
)
def test_a_swallowed_exception_is_found_until_it_has_a_reason(text: str, line: int):
    assert list(swallowed_without_reason(text)) == [line]
    lines = text.split("\n")
    lines[line - 1] += "  # it has gone"
    assert list(swallowed_without_reason("\n".join(lines))) == []


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    f()\nexcept OSError as error:\n    log(error)",
        "def g():\n    try:\n        f()\n    except KeyError:\n        return None",
        "try:\n    f()\nexcept OSError:\n    raise",
    ],
)
def test_an_exception_that_is_answered_is_not_swallowed(text: str):
    assert list(swallowed_without_reason(text)) == []
