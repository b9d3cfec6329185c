"""Mutation testing of the modules that hand-over relies on: small changes of the code, and the tests that notice them.

    python scripts/mutate.py link                     # core.link, all mutants
    python scripts/mutate.py handover --seconds 100   # hand-over, some mutants; the next run tries the next
    python scripts/mutate.py handover --again         # only those that no test has noticed so far
    python scripts/mutate.py --table                  # write the tables in docs/mutants.md from what has been run

Tests are collected once. A first pass records which functions each test calls. Then each mutant gets a forked process,
in which the code of one function is replaced, and the tests that call it run until one fails. No file is changed, so
the sources can be edited meanwhile. Mutants change comparisons, conditions, numbers, truth values, sums and results, or
leave out a call or an assignment. Texts, types, defaults and constants of modules stay as they are.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import copy
import gc
import importlib
import inspect
import json
import os
import pkgutil
import random
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
STATE = Path(os.environ.get("MUTATION_STATE", ROOT / "build" / "mutation.json"))
"""The result of each mutant that was tried, by area: a run continues where the last one ended."""

CALLS = ROOT / "build" / "mutation-calls.json"
"""How long each test takes and which functions it calls; valid until the test or one of the modules changes."""

REASONS = ROOT / "scripts" / "mutation-reasons.json"
"""By mutant that no test notices, why that is acceptable."""

PAGE = ROOT / "docs" / "mutants.md"
BEGIN, END = "<!-- mutation: begin -->", "<!-- mutation: end -->"
LEAST_SECONDS = 3.0
SLOW_SECONDS = 3.0
"""A test that takes longer in the first pass is not run against mutants."""

SAVED_SECONDS = 5.0

UNNOTICED = ("survived", "not called")


def tests_in(folder: str, pattern: str) -> list[str]:
    """The files of tests below a folder of the checkout, in order."""
    return [str(path) for path in sorted((ROOT / folder).glob(pattern))]


AREAS: dict[str, tuple[list[str], list[str]]] = {
    "link": (
        ["plimsoll.core.transport.link", "plimsoll.core.transport.flusher", "plimsoll.core.transport.handshakes"],
        [
            "tests/core/transport/test_link.py",
            "tests/core/transport/test_link_rules.py",
            "tests/core/transport/test_overlay_node.py",
        ],
    ),
    "handover": (
        ["plimsoll.core.head.handover", "plimsoll.core.edge.handover", "plimsoll.core.head.router"],
        [
            *tests_in("tests/core/head/handover", "test_*.py"),
            *tests_in("tests/core/edge/handover", "test_*.py"),
            "tests/core/head/test_router.py",
        ],
    ),
    "session": (["plimsoll.core.session"], tests_in("tests/core/session", "**/test_*.py")),
}
"""Modules and packages, and the tests that must notice their mutants. A package stands for all modules in it."""


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
    key: str


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
    """The nodes that may replace a node."""
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
    """The nodes of a function that mutants may change, in the order of its text."""
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
    seen: Counter[str] = Counter()
    for name, function in functions_of(module):
        for place, node in enumerate(nodes(function)):
            for choice, other in enumerate(alternatives(node)):
                what = f"`{_text(node)}` becomes `{_text(other)}`"
                key = f"{module.__name__}:{name}: {what}"
                seen[key] += 1
                key += f" ({seen[key]})" if seen[key] > 1 else ""
                line: int = node.lineno  # type: ignore[attr-defined]  # `alternatives` has some for expressions and statements alone
                yield Mutant(module.__name__, name, _first_line(function), line, what, place, choice, key)


@cache
def functions_of(module: ModuleType) -> list[tuple[str, ast.FunctionDef]]:
    """The functions of a module and their trees, which are shared: change one only in a forked process."""

    def walk(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for statement in body:
            if isinstance(statement, ast.FunctionDef):
                yield prefix + statement.name, statement
            elif isinstance(statement, ast.ClassDef) and not any(_text(base) == "Protocol" for base in statement.bases):
                yield from walk(statement.body, f"{prefix}{statement.name}.")

    return list(walk(ast.parse(inspect.getsource(module)).body, ""))


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
    if function.__code__.co_freevars:  # it refers to its class
        body = [ast.ClassDef("Around", [], [], body, [])]
    whole = ast.fix_missing_locations(ast.Module(body, []))
    names: dict[str, Any] = {}
    flags = __future__.annotations.compiler_flag
    exec(compile(whole, str(module.__file__), "exec", flags, dont_inherit=True), module.__dict__, names)  # noqa: S102  # code of this project, changed above
    made = vars(names["Around"])[tree.name] if "Around" in names else names[tree.name]
    code: CodeType = made.__code__
    return code


class Exchange(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def objects_of(module: ModuleType) -> dict[int, FunctionType]:
    """The functions of a module by the line in which they begin."""
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
    """Replaces pytest's loop over tests: records which functions each test calls, then tries the mutants."""

    def __init__(self, area: str, modules: list[ModuleType], mutants: list[Mutant], seconds_at_most: float) -> None:
        self.area = area
        self.modules, self.mutants, self.seconds_at_most = modules, mutants, seconds_at_most
        self.files = {str(module.__file__): module.__name__ for module in modules}
        self.calls: defaultdict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
        self.seconds: dict[pytest.Item, float] = {}
        self.noticed: Counter[pytest.Item] = Counter()
        self.results: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise pytest.UsageError("tests cannot be collected")
        until = time.monotonic() + self.seconds_at_most
        if not self._note_all(session, until):
            print("\nout of time: not all tests have been recorded yet")
            return True
        gc.freeze()  # keeps the first collection in each forked process from copying all present objects
        objects = {module.__name__: objects_of(module) for module in self.modules}
        saved = time.monotonic()
        try:
            for done, mutant in enumerate(self.mutants):
                if time.monotonic() > until:
                    print(f"\nout of time: {done} of {len(self.mutants)} mutants were tried")
                    break
                tests = sorted(self.calls[mutant.module, mutant.first_line], key=self._turn)
                result = self._try(session, mutant, objects[mutant.module][mutant.first_line], tests)
                self.results[mutant.key] = result
                if result in UNNOTICED:
                    print(f"\n{result}: {mutant.module}:{mutant.line} {mutant.function}: {mutant.what}", flush=True)
                if time.monotonic() > saved + SAVED_SECONDS:
                    remember(self.area, self.results)
                    saved = time.monotonic()
        finally:
            remember(self.area, self.results)
        return True

    def _note_all(self, session: pytest.Session, until: float) -> bool:
        """Record for every test which functions it calls; returns whether the time was enough."""
        known, stamp = load(CALLS), print_of(*sorted(self.files))
        prints = {path: f"{stamp}{print_of(path)}" for path in {str(item.path) for item in session.items}}
        here = {item.nodeid for item in session.items}
        for test, _, was in [key.rpartition(" ") for key in known]:
            if test in here and was not in prints.values():
                del known[f"{test} {was}"]
        new, is_whole = False, True
        for item in session.items:
            key = f"{item.nodeid} {prints[str(item.path)]}"
            if key not in known:
                if time.monotonic() > until:
                    is_whole = False
                    break
                known[key], new = self._note(session, item), True
            self.seconds[item], calls = known[key]
            if self.seconds[item] < SLOW_SECONDS:
                for module, line in calls:
                    self.calls[module, line].append(item)
        if new:
            save(CALLS, known)
        return is_whole

    def _turn(self, test: pytest.Item) -> tuple[float, float]:
        """Sort key: tests that have noticed many mutants come first, then short ones."""
        return -self.noticed[test] / (0.002 + self.seconds[test]), self.seconds[test]

    def _note(self, session: pytest.Session, item: pytest.Item) -> tuple[float, list[tuple[str, int]]]:
        """Run a test; returns how long it takes, and the functions that it calls; none if it fails without a mutant."""
        seen: set[tuple[str, int]] = set()

        def look(frame: FrameType, event: str, arg: object) -> None:
            if event == "call" and (name := self.files.get(frame.f_code.co_filename)) is not None:
                seen.add((name, frame.f_code.co_firstlineno))

        began = time.process_time()
        sys.setprofile(look)
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        finally:
            sys.setprofile(None)
        if session.testsfailed:
            print(f"\nleft out because it fails without any mutant: {item.nodeid}")
            session.testsfailed = 0
            seen.clear()
        return time.process_time() - began, sorted(seen)

    def _try(self, session: pytest.Session, mutant: Mutant, function: FunctionType, tests: list[pytest.Item]) -> str:
        if not tests:
            return "not called"
        asked, told = os.pipe()
        child = os.fork()
        if child == 0:
            self._run_and_exit(session, mutant, function, tests, told)
        _, status = os.waitpid(child, 0)
        os.close(told)
        with os.fdopen(asked) as which:
            self.noticed.update([tests[int(number)] for number in which])
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
            return "endless"
        return "survived" if status == 0 else "killed"

    def _run_and_exit(
        self, session: pytest.Session, mutant: Mutant, function: FunctionType, tests: list[pytest.Item], told: int
    ) -> None:
        failed = 1
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            seconds = int(LEAST_SECONDS + 4 * sum(self.seconds[test] for test in tests))
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            function.__code__ = code_of(mutant, function)
            for number, test in enumerate(tests):
                session.config.hook.pytest_runtest_protocol(item=test, nextitem=None)
                if session.testsfailed:
                    os.write(told, b"%d\n" % number)
                    break
            failed = int(bool(session.testsfailed))
        finally:
            os._exit(failed)


def modules_of(area: str) -> list[ModuleType]:
    modules: list[ModuleType] = []
    for name in AREAS[area][0]:
        module = importlib.import_module(name)
        modules.append(module)
        if hasattr(module, "__path__"):
            inside = sorted(info.name for info in pkgutil.walk_packages(module.__path__, f"{name}."))
            modules.extend(map(importlib.import_module, inside))
    return [module for module in modules if not hasattr(module, "__path__")]


def run(area: str, sample: int, seconds: float, only: str, *, again: bool) -> None:
    modules, tests = modules_of(area), AREAS[area][1]  # the calls of a test are recorded for all of them
    mutants = [mutant for module in modules if only in module.__name__ for mutant in mutants_of(module)]
    of_all = len(mutants)
    if sample and sample < of_all:
        mutants = sorted(random.Random(area).sample(mutants, sample), key=lambda m: (m.module, m.line, m.place))  # noqa: S311  # a sample that can be repeated, no secret
    known = load(STATE).get(area, {})
    wanted = UNNOTICED if again else ("",)
    mutants = [mutant for mutant in mutants if known.get(mutant.key, "") in wanted]
    print(f"{area}: {len(mutants)} of {of_all} mutants")
    quick = [Phase.explicit, Phase.generate]
    settings.register_profile(
        "mutation", settings.get_profile("default"), derandomize=True, database=None, deadline=None, phases=quick
    )
    os.environ["HYPOTHESIS_PROFILE"] = "mutation"
    loop = Loop(area, modules, mutants, seconds)
    options = ["-qq", "-s", "--assert=plain", "--tb=no", "-p", "no:cacheprovider"]
    code = pytest.main([*options, *tests], plugins=[loop])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(f"{area}: pytest ended with {code}")
    noticed = sum(result not in UNNOTICED for result in loop.results.values())
    print(f"{area}: {noticed} of {len(loop.results)} were noticed")


# -- stored results


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def print_of(*names: str) -> str:
    """A short fingerprint of the contents of files."""
    return sha256(b"".join(Path(name).read_bytes() for name in names)).hexdigest()[:8]


def save(path: Path, what: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(what, separators=(",\n", ":")) + "\n")
    beside.replace(path)


def remember(area: str, results: dict[str, str]) -> None:
    state = load(STATE)
    state.setdefault(area, {}).update(results)
    save(STATE, state)


def write_table() -> None:
    """The tables in docs/mutants.md, between their two marks."""
    reasons = load(REASONS)
    lines = ["", "| module | mutants | tried | noticed | endless | not noticed |", "|---|---|---|---|---|---|"]
    rest = ["", "Changes that no test noticed, and why:", "", "| function | change | reason |", "|---|---|---|"]
    for area, results in load(STATE).items():
        for module in modules_of(area):
            keys = [mutant.key for mutant in mutants_of(module)]
            told = Counter(results.get(key, "") for key in keys)
            unnoticed = [key for key in keys if results.get(key) in UNNOTICED]
            row = [len(keys), len(keys) - told[""], told["killed"], told["endless"], len(unnoticed)]
            lines.append(f"| `{module.__name__.removeprefix('plimsoll.')}` | {' | '.join(map(str, row))} |")
            rest += [_row(key, reasons.get(key, "-")) for key in unnoticed]
    before, after = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines + rest) + f"\n\n{END}{after.split(END)[1]}")


def _row(key: str, reason: str) -> str:
    where, _, what = key.partition(": ")
    cells = f"`{where.removeprefix('plimsoll.core.')}`", what.replace("|", "\\|"), reason
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("area", nargs="?", choices=sorted(AREAS))
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="try N mutants only, drawn by a fixed seed")
    parser.add_argument(
        "--seconds", type=float, default=3600.0, help="try no new mutant after this time (default 3600)"
    )
    parser.add_argument("--only", default="", metavar="MODULE", help="only this module of the area")
    parser.add_argument("--again", action="store_true", help="only those that no test has noticed so far")
    parser.add_argument("--table", action="store_true", help="write the tables in docs/mutants.md")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    if asked.area:
        run(asked.area, asked.sample, asked.seconds, asked.only, again=asked.again)
    if asked.table:
        write_table()


if __name__ == "__main__":
    main()
