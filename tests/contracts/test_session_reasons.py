"""Every reason that a session may give stands in the guide, with what it means; and the guide has no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

from plimsoll.core.session.record import Phase
from plimsoll.core.spec import kinds

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / "core/src/plimsoll/core/session"
GUIDE = ROOT / "docs/sessions.md"
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)*")
NO_REASONS = {*get_args(Phase), *kinds.LoadBalancingSessionSpec.__annotations__, "Normal", "Warning", "Approved"}
"""Approved is also a condition."""


def values_of_fields() -> set[str]:
    """What a session's specification may say, as Rebalance: words of the code that are not reasons."""
    spec = ROOT / "core/src/plimsoll/core/spec"
    return set(re.findall(r'"([A-Za-z]+)"', "".join(path.read_text() for path in spec.glob("*.py"))))


def said() -> set[str]:
    found = set()
    for path in MODULES.glob("*.py"):
        tree = ast.parse(path.read_text())
        if path.stem != "__init__":
            found |= {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    words = {word for word in found if WORD.fullmatch(word)}
    return words - NO_REASONS - values_of_fields() - {"True", "False", "Unknown"}


def explained() -> set[str]:
    rows = [
        line.split("|")[1] for line in GUIDE.read_text().split("## Reasons")[1].splitlines() if line.startswith("| `")
    ]
    return set(re.findall(r"`(\w+)`", " ".join(rows)))


def test_each_reason_is_explained():
    assert said() - explained() == set()


def test_nothing_is_explained_that_is_never_said():
    assert explained() - said() - {"DryRun", "Simulate", "Approved"} == set()
