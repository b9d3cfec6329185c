"""The verdicts of a run, as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from plimsoll.conformance.runner import Verdict

SHOWN_LINES = 40
"""Lines of an exchange in the table, up to the broken rule; `--json` has all."""


def table_report(verdicts: Sequence[Verdict]) -> str:
    """One line for each scenario; for a broken rule its words, and the exchange that shows it."""
    width = max((len(verdict.scenario.name) for verdict in verdicts), default=0)
    lines = []
    for verdict in verdicts:
        state = "kept" if verdict.is_kept else f"BROKEN: {verdict.found}"
        lines.append(f"{verdict.scenario.name.ljust(width)}  {verdict.scenario.section:>3}  {state}")
    for verdict in verdicts:
        if not verdict.is_kept:
            lines += ["", *_explain(verdict)]
    kept = sum(verdict.is_kept for verdict in verdicts)
    return "\n".join([*lines, "", f"{kept} of {len(verdicts)} scenarios kept"])


def _explain(verdict: Verdict) -> list[str]:
    lines = [f"{verdict.scenario.name}: {verdict.scenario.title}", f"  found: {verdict.found}"]
    if verdict.rule is not None:
        where = f"docs/protocol.md, {verdict.rule.section}: " if verdict.rule.section else ""
        lines.append(f"  rule:  {where}{verdict.rule.words}")
    left_out = len(verdict.exchange) - SHOWN_LINES
    if left_out > 0:
        lines.append(f"  ({left_out} earlier lines are left out; --json has them)")
    return lines + [f"  {line}" for line in verdict.exchange[-SHOWN_LINES:]]


def json_report(verdicts: Sequence[Verdict]) -> str:
    """All of it, with every frame."""
    scenarios = [
        {
            "name": verdict.scenario.name,
            "section": verdict.scenario.section,
            "title": verdict.scenario.title,
            "kept": verdict.is_kept,
            "seconds": round(verdict.seconds, 3),
            "rule": None if verdict.rule is None else {"section": verdict.rule.section, "words": verdict.rule.words},
            "found": verdict.found,
            "exchange": verdict.lines,
        }
        for verdict in verdicts
    ]
    return json.dumps({"kept": all(verdict.is_kept for verdict in verdicts), "scenarios": scenarios}, indent=1)
