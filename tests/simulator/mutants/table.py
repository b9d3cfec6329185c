"""Writes the table of mutants in docs/mutants.md, between its two marks."""

from __future__ import annotations

from pathlib import Path

from tests.simulator.mutants.catalogue import SECTIONS
from tests.simulator.mutants.finding import Find
from tests.simulator.mutants.rewriting import Change, Detour, Mutant, Setting
from tests.simulator.mutants.scripted import SCRIPTED, place

PAGE = Path(__file__).parents[3] / "docs" / "mutants.md"
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"


def write(finds: dict[str, Find]) -> None:
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{rendered(finds)}{END}{after}")


def rendered(finds: dict[str, Find]) -> str:
    lines = []
    for section, mutants in SECTIONS.items():
        lines += [f"\n### {section}\n", "| rule | broken in | found in | laws | runs |", "|---|---|---|---|---|"]
        lines += [_row(mutant, finds.get(mutant.name)) for mutant in mutants]
    return "\n".join(lines) + "\n\n"


def _row(mutant: Mutant, one: Find | None) -> str:
    is_scripted = mutant.name in SCRIPTED
    changes = mutant.changes if is_scripted else (*mutant.changes, *mutant.partners)
    where = ", ".join(dict.fromkeys(_where(change) for change in changes))
    rule = mutant.rule
    if mutant.alone and is_scripted:
        rule += f" *A second guard covers for it: {mutant.alone}.*"
    elif mutant.alone:
        rule += f" *Broken together with its second guard: {mutant.alone}.*"
    if mutant.harmless:
        rule += f" *Breaks no law: {mutant.harmless}.*"
    laws, runs = (" ".join(one.laws), one.runs) if one else ("", "")
    return f"| {rule} `{mutant.name}` | {where} | {_found(mutant, one)} | {laws} | {runs} |"


def _found(mutant: Mutant, one: Find | None) -> str:
    if mutant.name in SCRIPTED:
        return f"`{place(mutant.name)}`"
    if one and one.world:
        return f"`{one.world}` {one.seed}"
    return "none" if mutant.harmless else "not found"


def _where(change: Change | Setting | Detour) -> str:
    if isinstance(change, Change):
        function = getattr(change.function, "fget", None) or change.function
        return f"`{function.__qualname__}`"
    if isinstance(change, Detour):
        return f"{change.kind.__name__} around the stream, {change.seconds:g} s"
    return f"`{change.owner.__name__}.{change.name}`"
