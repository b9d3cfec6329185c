"""A class has a name of its own, and a protocol is named for its role."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.contracts.source_trees import ROOT, tree

# Names that two modules share on purpose, with the reason.
SHARED = {
    "Subscription": "an application's handle in plimsoll.client; in the core the parsed filter that it stands for",
}
# They name the caller or the holder of the object, not its role.
NO_ROLE = {"Host", "Owner", "Shell", "Parent"}


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    """Each class at the top of a module, private ones included."""
    for path in sorted(ROOT.glob("*/src/**/*.py")):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                yield path.relative_to(ROOT), node


def test_a_class_name_stands_for_one_thing():
    """A leading underscore hides a name from other modules, not from a reader who looks for it."""
    places = defaultdict(list)
    for path, node in classes():
        places[node.name.lstrip("_")].append(str(path))
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in shared.items() if name not in SHARED} == {}
    assert set(SHARED) <= set(shared), "a name that is no longer shared needs no reason"


def test_a_protocol_is_named_for_its_role():
    protocols = {node.name: str(path) for path, node in classes() if "Protocol" in map(base_name, node.bases)}
    assert protocols
    assert {name: path for name, path in protocols.items() if name.lstrip("_") in NO_ROLE} == {}


def base_name(base: ast.expr) -> str:
    """`Protocol` of `Protocol`, `typing.Protocol` and `Protocol[T]`."""
    if isinstance(base, ast.Subscript):
        base = base.value
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
