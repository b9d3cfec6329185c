"""Mutation testing of the modules that hand-over stands on: small changes of their code, and the tests that notice.

    python scripts/mutate.py link                     # core.link, all mutants
    python scripts/mutate.py handover --sample 300    # core.handover, 300 of its mutants, drawn by a fixed seed
    python scripts/mutate.py --table                  # write the tables in docs/mutants.md from what has been run

Tests are collected once. A first pass notes which functions each test calls; then each mutant has a forked process, in
which one function has other code, and the tests that call it run until one fails. No file is touched, so others may
work meanwhile. Mutants are made of what functions do: comparisons, conditions, numbers, truth values, sums, calls and
assignments that are left out, results. Texts, types, defaults and constants of modules stay as they are.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import copy
import importlib
import inspect
import json
import os
import random
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
STATE = ROOT / "docs" / "mutation.json"
PAGE = ROOT / "docs" / "mutants.md"
BEGIN, END = "<!-- mutation: begin -->", "<!-- mutation: end -->"
LEAST_SECONDS = 5.0

AREAS: dict[str, tuple[list[str], list[str]]] = {
    "link": (
        ["plimsoll.core.link"],
        ["tests/core/test_link.py", "tests/core/test_node.py", "tests/simulator/test_links.py"],
    ),
    "handover": (
        [f"plimsoll.core.handover.{name}" for name in (
            "coordinator", "desk", "giving", "guests", "office", "outcomes", "post", "receiving"
        )],
        ["tests/core/handover", "tests/simulator/mutants/test_worlds.py"],
    ),
    "session": ([], ["tests/core/session"]),
}  # fmt: skip
"""Modules, and the tests that answer for them. An area without modules is a package: all of it."""


@dataclass(frozen=True)
class Mutant:
    """`function` of `module` with `what` changed in `line`."""

    module: str
    function: str
    first_line: int
    line: int
    what: str
    place: int
    choice: int

    @property
    def key(self) -> str:
        return f"{self.module}:{self.function}: {self.what}"


# -- making mutants

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip


def alternatives(node: ast.AST) -> list[ast.AST]:
    """What may stand in the place of a node."""
    made: list[ast.AST] = []
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
        made.append(ast.Compare(node.left, [COMPARED[type(node.ops[0])]()], node.comparators))
    elif isinstance(node, ast.BoolOp):
        made.append(ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
        made += [
            ast.BoolOp(node.op, [v for v in node.values if v is not left])
            for left in node.values
            if len(node.values) > 2
        ]
        if len(node.values) == 2:
            made += node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        made.append(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
        made.append(ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right))
    elif isinstance(node, ast.AugAssign) and type(node.op) in COMPUTED:
        made += [ast.AugAssign(node.target, COMPUTED[type(node.op)](), node.value), ast.Pass()]
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        made.append(ast.Constant(not node.value))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        made.append(ast.Constant(node.value + 1))
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        changed = copy.copy(node)
        changed.test = ast.UnaryOp(ast.Not(), node.test)
        made.append(changed)
    elif (
        (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (
            isinstance(node, ast.Assign)
            and all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
        )
        or isinstance(node, ast.Delete | ast.Continue | ast.Break)
    ):
        made.append(ast.Pass())
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        made.append(ast.Return(ast.Constant(None)))
    return made


def nodes(function: ast.FunctionDef) -> list[ast.AST]:
    """What a function does, in the order of its text: neither types, defaults, decorators nor texts."""
    found: list[ast.AST] = []

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            return
        found.append(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "args") and not isinstance(
                node, ast.Call | ast.Lambda
            ):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    walk(child)

    for statement in function.body:
        walk(statement)
    return found


def mutants_of(module: ModuleType) -> Iterator[Mutant]:
    for name, function in functions_of(module):
        for place, node in enumerate(nodes(function)):
            for choice, other in enumerate(alternatives(node)):
                what = f"`{_text(node)}` becomes `{_text(other)}`"
                yield Mutant(module.__name__, name, _first_line(function), node.lineno, what, place, choice)  # type: ignore[attr-defined]


def functions_of(module: ModuleType) -> Iterator[tuple[str, ast.FunctionDef]]:
    def walk(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for statement in body:
            if isinstance(statement, ast.FunctionDef):
                yield prefix + statement.name, statement
            elif isinstance(statement, ast.ClassDef) and not any(_text(base) == "Protocol" for base in statement.bases):
                yield from walk(statement.body, f"{prefix}{statement.name}.")

    yield from walk(ast.parse(inspect.getsource(module)).body, "")


def _first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())
    if isinstance(node, ast.If | ast.While):
        text = " ".join(ast.unparse(node.test).split())
        text = f"{'if' if isinstance(node, ast.If) else 'while'} {text}"
    return text if len(text) <= 90 else f"{text[:87]}..."


def code_of(mutant: Mutant, function: FunctionType) -> CodeType:
    """The code that a function has in this mutant."""
    module = sys.modules[mutant.module]
    tree = next(
        tree
        for name, tree in functions_of(module)
        if name == mutant.function and _first_line(tree) == mutant.first_line
    )
    node = nodes(tree)[mutant.place]
    other = alternatives(node)[mutant.choice]
    Exchange(node, other).visit(tree)
    tree.decorator_list = []
    body: list[ast.stmt] = [tree]
    if function.__code__.co_freevars:  # it speaks of its class
        body = [ast.ClassDef("Around", [], [], body, [])]
    whole = ast.fix_missing_locations(ast.Module(body, []))
    names: dict[str, Any] = {}
    flags = __future__.annotations.compiler_flag
    exec(compile(whole, str(module.__file__), "exec", flags, dont_inherit=True), module.__dict__, names)  # noqa: S102
    made = vars(names["Around"])[tree.name] if "Around" in names else names[tree.name]
    code: CodeType = made.__code__
    return code


class Exchange(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def objects_of(module: ModuleType) -> dict[int, FunctionType]:
    """The functions of a module by the line in which their text begins."""
    found: dict[int, FunctionType] = {}

    def take(holder: Any) -> None:
        for value in list(vars(holder).values()):
            if isinstance(value, type) and value.__module__ == module.__name__ and value is not holder:
                take(value)
            parts = [getattr(value, name, None) for name in ("fget", "fset", "__func__", "__wrapped__")]
            for part in (value, *parts):
                if isinstance(part, FunctionType) and part.__module__ == module.__name__:
                    found.setdefault(part.__code__.co_firstlineno, part)

    take(module)
    return found


# -- running tests


class Loop:
    """Takes the place of pytest's loop over tests: notes who calls what, then tries the mutants."""

    def __init__(self, modules: list[ModuleType], mutants: list[Mutant], until: float) -> None:
        self.modules, self.mutants, self.until = modules, mutants, until
        self.files = {str(module.__file__): module.__name__ for module in modules}
        self.calls: defaultdict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
        self.seconds: dict[pytest.Item, float] = {}
        self.results: dict[str, tuple[Mutant, str]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise pytest.UsageError("tests cannot be collected")
        for item in session.items:
            for each in self._note(session, item):
                self.calls[each].append(item)
        objects = {module.__name__: objects_of(module) for module in self.modules}
        for done, mutant in enumerate(self.mutants):
            if time.monotonic() > self.until:
                print(f"\nout of time: {done} of {len(self.mutants)} mutants were tried")
                break
            tests = sorted(self.calls[mutant.module, mutant.first_line], key=self.seconds.__getitem__)
            result = self._try(session, mutant, objects[mutant.module][mutant.first_line], tests)
            self.results[f"{mutant.key} @{mutant.line}"] = mutant, result
            if result in ("survived", "not called"):
                print(f"\n{result}: {mutant.module}:{mutant.line} {mutant.function}: {mutant.what}", flush=True)
        return True

    def _note(self, session: pytest.Session, item: pytest.Item) -> set[tuple[str, int]]:
        """Run a test; returns the functions that it calls. One that fails as it is says nothing, so it is left out."""
        seen: set[tuple[str, int]] = set()

        def look(frame: FrameType, event: str, arg: object) -> None:
            if event == "call" and (name := self.files.get(frame.f_code.co_filename)) is not None:
                seen.add((name, frame.f_code.co_firstlineno))

        began = time.perf_counter()
        sys.setprofile(look)
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        finally:
            sys.setprofile(None)
        self.seconds[item] = time.perf_counter() - began
        if session.testsfailed:
            print(f"\nleft out, for it fails without any mutant: {item.nodeid}")
            session.testsfailed = 0
            return set()
        return seen

    def _try(self, session: pytest.Session, mutant: Mutant, function: FunctionType, tests: list[pytest.Item]) -> str:
        if not tests:
            return "not called"
        child = os.fork()
        if child == 0:
            self._run_and_exit(session, mutant, function, tests)
        limit = time.monotonic() + max(LEAST_SECONDS, 4 * sum(self.seconds[test] for test in tests))
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return "survived" if status == 0 else "killed"
            if time.monotonic() > limit:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "endless"
            time.sleep(0.002)

    def _run_and_exit(
        self, session: pytest.Session, mutant: Mutant, function: FunctionType, tests: list[pytest.Item]
    ) -> None:
        failed = 1
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            function.__code__ = code_of(mutant, function)
            for test in tests:
                session.config.hook.pytest_runtest_protocol(item=test, nextitem=None)
                if session.testsfailed:
                    break
            failed = int(bool(session.testsfailed))
        finally:
            os._exit(failed)


def run(area: str, sample: int, seconds: float, only: str) -> None:
    names, tests = AREAS[area]
    if not names:
        package = importlib.import_module(f"plimsoll.core.{area}")
        names = [
            f"{package.__name__}.{path.stem}"
            for path in sorted(Path(package.__path__[0]).glob("*.py"))
            if path.stem != "__init__"
        ]
    modules = [importlib.import_module(name) for name in names if only in name]
    mutants = [mutant for module in modules for mutant in mutants_of(module)]
    of_all = len(mutants)
    if sample and sample < of_all:
        mutants = sorted(random.Random(area).sample(mutants, sample), key=lambda m: (m.module, m.line, m.place))  # noqa: S311
    print(f"{area}: {len(mutants)} of {of_all} mutants")
    quick = [Phase.explicit, Phase.generate]
    settings.register_profile(
        "mutation", settings.get_profile("default"), derandomize=True, database=None, deadline=None, phases=quick
    )
    os.environ["HYPOTHESIS_PROFILE"] = "mutation"
    loop = Loop(modules, mutants, time.monotonic() + seconds)
    options = ["-qq", "-s", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*options, *tests], plugins=[loop])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) or not loop.results:
        sys.exit(f"{area}: pytest ended with {code}")
    remember(area, of_all, loop.results)


# -- what is kept of a run


def remember(area: str, of_all: int, results: dict[str, tuple[Mutant, str]]) -> None:
    state = json.loads(STATE.read_text()) if STATE.exists() else {}
    reasons = {one["mutant"]: one.get("reason", "") for one in state.get(area, {}).get("survivors", [])}
    counts: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    survivors = []
    for mutant, result in results.values():
        counts[mutant.module.removeprefix("plimsoll.")][result] += 1
        if result in ("survived", "not called"):
            survivors.append({"mutant": mutant.key, "result": result, "reason": reasons.get(mutant.key, "")})
    state[area] = {"mutants": of_all, "tried": len(results), "counts": counts, "survivors": survivors}
    STATE.write_text(json.dumps(state, indent=1) + "\n")
    killed = sum(each["killed"] + each["endless"] for each in counts.values())
    print(f"{area}: {killed} of {len(results)} were noticed")


def write_table() -> None:
    """The tables in docs/mutants.md, between their two marks."""
    state = json.loads(STATE.read_text())
    lines = ["", "| module | tried | noticed | endless | not noticed | not called |", "|---|---|---|---|---|---|"]
    for area in state.values():
        for module, counts in area["counts"].items():
            row = [counts.get(key, 0) for key in ("killed", "endless", "survived", "not called")]
            lines.append(f"| `{module}` | {sum(row)} | {row[0]} | {row[1]} | {row[2]} | {row[3]} |")
    lines += ["", "What was not noticed, and why:", "", "| function | change | reason |", "|---|---|---|"]
    for area in state.values():
        for one in area["survivors"]:
            where, _, what = one["mutant"].partition(": ")
            cells = f"`{where.removeprefix('plimsoll.core.')}`", what.replace("|", "\\|"), one["reason"] or "-"
            lines.append(f"| {' | '.join(cells)} |")
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n\n{END}{rest.split(END)[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("area", nargs="?", choices=sorted(AREAS))
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="try N mutants only, drawn by a fixed seed")
    parser.add_argument("--seconds", type=float, default=3600.0, help="try no new mutant after so long (default 3600)")
    parser.add_argument("--only", default="", metavar="MODULE", help="of the area this module")
    parser.add_argument("--table", action="store_true", help="write the tables in docs/mutants.md")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    if asked.area:
        run(asked.area, asked.sample, asked.seconds, asked.only)
    if asked.table:
        write_table()


if __name__ == "__main__":
    main()
