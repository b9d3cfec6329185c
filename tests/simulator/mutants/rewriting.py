"""How a rule is broken: a function of a machine is given a body that is its own text with one passage exchanged.

The function object stays, so every table and every machine that refers to it has the broken rule, and the product needs
no switch. A passage that is not there exactly once is an error: the mutant must follow the product.
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
    """In the text of `function`, `old` becomes `new`."""

    function: Callable[..., Any]
    old: str
    new: str


class Detour(NamedTuple):
    """Records of a kind do not travel in their stream, but arrive so long after they were said."""

    kind: type[Any]
    seconds: float


class Setting(NamedTuple):
    """A constant of a module, or a method of a machine, has another value."""

    owner: Any
    name: str
    value: Any


@dataclass(frozen=True)
class Mutant:
    """A rule, what of it is broken, and the worlds in which that should show, the likeliest first.

    `alone`: why the rule is not missed when it alone is broken, if so; then its `partners` are broken with it, and what
    they break by themselves does not count.
    `harmless`: what breaking it costs, if it breaks no law; then no seed is expected to find it.
    """

    name: str
    rule: str
    changes: tuple[Change | Setting | Detour, ...]
    worlds: tuple[str, ...]
    partners: tuple[Change | Setting | Detour, ...] = ()
    alone: str = ""
    harmless: str = ""


def plant(patch: pytest.MonkeyPatch, changes: Iterable[Change | Setting | Detour]) -> None:
    """Break what these say, until the patch is undone."""
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
                f"{function.__qualname__} has {text.count(one.old)} times, not once: {one.old!r}; "
                "the product has changed, so say anew how its rule is broken"
            )
        texts[function] = text.replace(one.old, one.new)
    for function, text in texts.items():
        patch.setattr(function, "__code__", _compiled(function, text))


def _plain(function: Callable[..., Any]) -> FunctionType:
    getter = getattr(function, "fget", None)
    found = inspect.unwrap(getter if getter is not None else function)
    if not isinstance(found, FunctionType):
        raise TypeError(f"{function!r} is no function")
    return found


def _compiled(function: FunctionType, text: str) -> CodeType:
    """The code of the function with another text."""
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
        raise ValueError(f"{function.__qualname__} uses other names of its surroundings than before")
    return code
