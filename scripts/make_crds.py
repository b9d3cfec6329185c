"""Write crds/, the chart's copy, and the tables of docs/ that come from the code; `--check` only says what differs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from plimsoll.core.spec import KINDS
from plimsoll.core.spec.kinds import WRITTEN_KINDS
from plimsoll.core.spec.schemas.crd import all_crds
from plimsoll.core.spec.schemas.field_reference import field_table
from plimsoll.core.spec.status.data_reasons import DATA
from plimsoll.core.spec.status.head_reasons import LIMITS, LOGS, STANDBYS
from plimsoll.core.spec.status.reasons import (
    BALANCE,
    BROKERS,
    EVENTS,
    PODS,
    PROFILES,
    SPARK,
    reason_table,
)
from plimsoll.core.spec.status.session_reasons import SESSIONS
from plimsoll.core.spec.status.topic_reasons import TOPICS

ROOT = Path(__file__).resolve().parents[1]
CRDS = ROOT / "crds"
CHART = ROOT / "helm" / "plimsoll" / "files" / "crds"
HEADER = "# Generated from core/src/plimsoll/core/spec by `make crds`; change it there.\n"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


REASONS = """# Reasons

Conditions, sessions and events give a reason: one word that says why. This page lists each with its cause and its
remedy; without a remedy there is nothing to do. `kubectl describe` and `plimsoll describe` show the sentence that goes
with it.

The condition `Succeeded` of a session is `Unknown` until its end, so `kubectl wait --for=condition=Succeeded` never
sees an earlier result; every condition names the generation of the specification for which it holds.
"""


def reasons_page() -> str:
    """docs/reasons.md."""
    sections = (BROKERS, BALANCE, LOGS, LIMITS, STANDBYS, TOPICS, PROFILES, SPARK, DATA, PODS, *SESSIONS, EVENTS)
    return "\n".join([REASONS, *(f"{reason_table(section)}\n" for section in sections)])


def definition_text(definition: dict[str, Any]) -> str:
    """A definition as its file has it."""
    body = yaml.dump(definition, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return HEADER + str(body)


def between(page: str, name: str, content: str) -> str:
    """The page with the text between the two marks of a name replaced."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    head, found, rest = page.partition(begin)
    _, also_found, tail = rest.partition(end)
    if not found or not also_found:
        raise ValueError(f"the page has no place for {name}: write {begin.strip()} and {end}")
    return f"{head}{begin}\n{content}\n\n{end}{tail}"


def files() -> dict[Path, str]:
    """Every generated file with its contents."""
    plurals = {name: kind.plural for name, kind in {**KINDS, **WRITTEN_KINDS}.items()}
    texts = {f"{plurals[name]}.yaml": definition_text(item) for name, item in all_crds().items()}
    found = {folder / name: text for folder in (CRDS, CHART) for name, text in texts.items()}
    resources = ROOT / "docs" / "resources.md"
    page = resources.read_text()
    for name, kind in KINDS.items():
        page = between(page, f"fields of {name}", field_table(kind))
    return {**found, resources: page, ROOT / "docs" / "reasons.md": reasons_page()}


def main() -> int:
    """Write, or with `--check` compare."""
    different = [path for path, text in files().items() if not path.exists() or path.read_text() != text]
    for path in different:
        if "--check" in sys.argv[1:]:
            print(f"{path.relative_to(ROOT)} differs from what `make crds` writes", file=sys.stderr)
            continue
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(files()[path])
        print(path.relative_to(ROOT))
    return 1 if different and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
