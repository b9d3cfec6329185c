"""Each reason in scripts/mutation-reasons.json is about a mutant that the code still has."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def test_no_reason_outlives_its_mutant(monkeypatch: pytest.MonkeyPatch):
    spec = importlib.util.spec_from_file_location("mutate", SCRIPTS / "mutate.py")
    assert spec is not None
    assert spec.loader is not None
    mutate = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutate", mutate)
    spec.loader.exec_module(mutate)
    reasons = json.loads((SCRIPTS / "mutation-reasons.json").read_text())
    modules = {key.partition(":")[0] for key in reasons}
    known = {
        mutant.key
        for area in mutate.AREAS
        for module in mutate.modules_of(area)
        if module.__name__ in modules
        for mutant in mutate.mutants_of(module)
    }
    assert sorted(set(reasons) - known) == []
