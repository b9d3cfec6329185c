"""YAML files as located documents: the loader is PyYAML's safe one, and every key and item remembers its line.

Valid YAML that is surely a mistake is refused: a key that is repeated in one block, an anchor bomb, a file too large to
be written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import yaml

from plimsoll.core.spec.problems import InvalidResourcesError, ResourceProblem, SourceDocument
from plimsoll.core.spec.problems import Path as SpecPath

MAX_BYTES = 4 * 1024 * 1024
MAX_NODES = 200_000
SUFFIXES = (".yaml", ".yml", ".json")

Lines = dict[SpecPath, int]


def load(names: Iterable[str], stdin: TextIO = sys.stdin) -> list[SourceDocument]:
    """Load files, folders (their YAML and JSON files, sorted) and `-` (standard input).

    Raises:
        InvalidResourcesError: for files that cannot be read or are not YAML, all of them at once.

    """
    documents: list[SourceDocument] = []
    problems: list[ResourceProblem] = []
    for name in names:
        try:
            for file, text in _texts(name, stdin):
                documents.extend(parse_text(text, file))
        except InvalidResourcesError as error:
            problems.extend(error.problems)
    if not problems and all(document.content is None for document in documents):
        problems.append(
            _problem(", ".join(names) or "<none>", None, "there is no object here", "Name a file with one.")
        )
    if problems:
        raise InvalidResourcesError(problems)
    return documents


def parse_text(text: str, file: str) -> list[SourceDocument]:
    """The documents of one text."""
    documents = []
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                continue
            lines: Lines = {}
            _record_lines(node, (), lines, file, [MAX_NODES])
            documents.append(SourceDocument(loader.construct_document(node), file, _line_lookup(lines)))
    except yaml.MarkedYAMLError as error:
        raise InvalidResourcesError([_malformed(error, file)]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidResourcesError):
            raise
        remedy = "Write it as plain text in UTF-8, as YAML."
        raise InvalidResourcesError([_problem(file, None, f"this is not YAML: {error}", remedy)]) from error
    finally:
        if loader is not None:
            loader.dispose()
    return documents


def _texts(name: str, stdin: TextIO) -> Iterator[tuple[str, str]]:
    if name == "-":
        yield "<stdin>", stdin.read(MAX_BYTES)
        return
    path = Path(name)
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES) if path.is_dir() else [path]
    if not files:
        raise InvalidResourcesError([_problem(name, None, "there is no YAML file in this folder", "Name another.")])
    for file in files:
        yield str(file), _text(file)


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_BYTES:
            found = f"this file has more than {MAX_BYTES} bytes"
            raise InvalidResourcesError([_problem(str(file), None, found, "Name a file of resources.")])
        return file.read_text(encoding="utf-8")
    except OSError as error:
        found = f"this file cannot be read: {error.strerror}"
        raise InvalidResourcesError([_problem(str(file), None, found, "Check the name and its rights.")]) from error
    except UnicodeDecodeError as error:
        found = f"this is not UTF-8 text (byte {error.start})"
        raise InvalidResourcesError([_problem(str(file), None, found, "Write it as plain text in UTF-8.")]) from error


def _record_lines(node: yaml.Node, path: SpecPath, lines: Lines, file: str, budget: list[int]) -> None:
    """Record where each part starts; the budget stops the expansion of aliases of aliases."""
    budget[0] -= 1
    if budget[0] < 0:
        found = f"this document has more than {MAX_NODES} parts"
        raise InvalidResourcesError([_problem(file, node.start_mark.line + 1, found, "Take out aliases, or split it.")])
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _record_lines(item, (*path, index), lines, file, budget)
    elif isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in seen and name != "<<":
                found = f'the key "{name}" stands here again after line {seen[name]}'
                raise InvalidResourcesError([_problem(file, line, found, "Remove one of the two.")])
            seen[name] = line
            lines[(*path, name)] = line
            _record_lines(value, (*path, name), lines, file, budget)


def _line_lookup(lines: Lines) -> Any:
    def line_of(path: SpecPath) -> int | None:
        while path not in lines and path:
            path = path[:-1]
        return lines.get(path)

    return line_of


def _malformed(error: yaml.MarkedYAMLError, file: str) -> ResourceProblem:
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    context = f" ({error.context})" if error.context else ""
    return _problem(
        file,
        line,
        f"this is not YAML: {error.problem}{context}",
        "Check indentation, quotes and brackets near this line.",
    )


def _problem(file: str, line: int | None, found: str, remedy: str) -> ResourceProblem:
    return ResourceProblem(file, line, "", (), found, remedy)
