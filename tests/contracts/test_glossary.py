"""One word for one thing: module and class names keep to docs/glossary.md, and what the glossary names exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.contracts.source_trees import ROOT, tree

MODULES = sorted(ROOT.glob("*/src/plimsoll/**/*.py"))
CODE = re.compile(r"`([^`]+)`")


class Entry(NamedTuple):
    """A row of the glossary."""

    word: str
    meaning: str
    never: str
    home: str


def entries() -> list[Entry]:
    lines = (ROOT / "docs/glossary.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| **")]
    return [Entry(row[0].strip("*"), *row[1:]) for row in rows]


ENTRIES = entries()


def definitions(body: list[ast.stmt]) -> Iterator[str]:
    """Names of classes, type aliases and constants at the top of a module."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


DEFINED = {name for path in MODULES for name in definitions(tree(path).body)}


def classes(path: Path) -> list[str]:
    return [node.name for node in tree(path).body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]


def words(name: str) -> list[str]:
    """`HandoverTarget` and `handover_target` are `handover` and `target`; an acronym is one word."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


def retired_words() -> set[str]:
    """The words in code type of the third column, and of the first column of the table of retired names."""
    retired = (ROOT / "docs/glossary.md").read_text().partition("| retired | now |")[2].splitlines()
    cells = [entry.never for entry in ENTRIES] + [line.split("|")[1] for line in retired if line.startswith("| `")]
    return {word for cell in cells for word in CODE.findall(cell)}


RETIRED = retired_words()


def is_retired(word: str) -> bool:
    return word in RETIRED or word.removesuffix("s") in RETIRED


def test_words_are_in_order_and_there_once():
    listed = [entry.word.replace("-", " ") for entry in ENTRIES]
    assert listed == sorted(set(listed))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.word)
def test_an_entry_is_whole_and_leads_to_code(entry: Entry):
    assert all(entry)
    named = CODE.findall(entry.home)
    assert named, "say where it lives"
    places = [name for name in named if "/" in name]
    assert [p for p in places if not any((base / p).exists() for base in ROOT.glob("*/src/plimsoll"))] == []
    assert [name for name in named if "/" not in name and name not in DEFINED] == []


def test_no_word_is_both_used_and_retired():
    assert [entry.word for entry in ENTRIES if is_retired(entry.word)] == []


def test_modules_and_public_classes_keep_to_the_words():
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        for name in [path.stem, path.parent.name, *classes(path)]
        if any(is_retired(word) for word in words(name))
    ]
    assert sorted(set(found)) == [], "docs/glossary.md says what these are called"
