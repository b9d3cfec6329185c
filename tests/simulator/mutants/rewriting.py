"""How a rule is broken: one passage of a function's source is replaced, and the function gets the new code.

The function object stays the same, so that tables and machines that refer to it follow the change, and the product
needs no switch. The passage must occur exactly once, so a mutant that no longer fits the product is an error.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
from tests.simulator.mutants import side_channel


class Change(NamedTuple):
    """In the source of `function`, `old` is replaced by `new`."""

    function: Callable[..., Any]
    old: str
    new: str


class Detour(NamedTuple):
    """Messages of a kind leave their stream, and arrive `seconds` after they were sent."""

    kind: type[Any]
    seconds: float


class Setting(NamedTuple):
    """A constant of a module, or a method of a machine, is replaced."""

    owner: Any
    name: str
    value: Any


@dataclass(frozen=True)
class Mutant:
    """A rule, how it is broken, and the worlds in which that should show, the likeliest first.

    `alone`: why breaking this rule alone has no effect. Then its `partners` are broken with it, and the laws that they
    break by themselves do not count.
    `harmless`: why breaking the rule breaks no law. Then no run is expected to find it.
    """

    name: str
    rule: str
    changes: tuple[Change | Setting | Detour, ...]
    worlds: tuple[str, ...]
    partners: tuple[Change | Setting | Detour, ...] = ()
    alone: str = ""
    harmless: str = ""


def plant(patch: pytest.MonkeyPatch, changes: Iterable[Change | Setting | Detour]) -> None:
    """Make these changes, until the patch is undone."""
    texts: dict[FunctionType, str] = {}
    for one in changes:
        if isinstance(one, Setting):
            patch.setattr(one.owner, one.name, one.value)
            continue
        if isinstance(one, Detour):
            side_channel.install(patch, one.kind, one.seconds)
            continue
        function = _plain(one.function)
        text = texts.get(function) or textwrap.dedent(inspect.getsource(function))
        if text.count(one.old) != 1:
            raise LookupError(
                f"{function.__qualname__} contains {one.old!r} {text.count(one.old)} times instead of once: "
                "the product has changed, so adapt the mutant"
            )
        texts[function] = text.replace(one.old, one.new)
    for function, text in texts.items():
        patch.setattr(function, "__code__", _compiled(function, text))


def _plain(function: Callable[..., Any]) -> FunctionType:
    getter = getattr(function, "fget", None)
    found = inspect.unwrap(getter if getter is not None else function)
    if not isinstance(found, FunctionType):
        raise TypeError(f"{function!r} is not a function")
    return found


def _compiled(function: FunctionType, text: str) -> CodeType:
    """The code of the function, compiled from another source."""
    tree = ast.parse(text)
    made = tree.body[0]
    assert isinstance(made, ast.FunctionDef)
    made.decorator_list = []
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    names: dict[str, Any] = {}
    flags = __future__.annotations.compiler_flag
    exec(compile(tree, function.__code__.co_filename, "exec", flags), sys.modules[function.__module__].__dict__, names)  # noqa: S102  # code of this project, changed above
    code: CodeType = names[made.name].__code__
    if code.co_freevars != function.__code__.co_freevars:
        raise ValueError(f"the new source of {function.__qualname__} closes over other variables than the old one")
    return code
