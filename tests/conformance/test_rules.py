"""Every rule that a verdict can name is in docs/protocol.md, in these words, in the section that it names."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from plimsoll import conformance
from plimsoll.conformance import SCENARIOS, Scenario
from plimsoll.conformance.rules import Rule

PAGES = Path(__file__).resolve().parents[2] / "docs"


def rules() -> list[Rule]:
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(conformance.__path__, "plimsoll.conformance.")
    ]
    found = {value for module in modules for value in vars(module).values() if isinstance(value, Rule)}
    return sorted(found)


def sections() -> dict[str, str]:
    """The text of each section by its number, in one line; a chapter has that of its sections, too."""
    found: dict[str, str] = {}
    for part in re.split(r"^#{2,3} (?=\d)", (PAGES / "protocol.md").read_text(), flags=re.MULTILINE)[1:]:
        number = re.match(r"[\d.]+\d|\d", part)
        assert number
        found[number[0]] = " ".join(part.split())
    return found


SECTIONS = sections()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: f"{rule.section} {rule.words[:40]}")
def test_a_rule_is_in_the_page(rule: Rule):
    if rule.section:
        assert " ".join(rule.words.split()) in SECTIONS[rule.section]
    else:
        assert rule.words.startswith("docs/conformance.md: ")
        words = rule.words.removeprefix("docs/conformance.md: ")
        assert words.lower() in " ".join((PAGES / "conformance.md").read_text().lower().split())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_a_scenario_names_its_section(scenario: Scenario):
    assert scenario.section in SECTIONS


def test_the_page_lists_every_scenario():
    rows = [
        f"| `{each.name}` | {each.section} | {', '.join(sorted(each.profiles))} | {each.title} |" for each in SCENARIOS
    ]
    listed = [line for line in (PAGES / "conformance.md").read_text().splitlines() if line.startswith("| `")]
    assert [line for line in listed if (line.count("|") == 5 and " full" in line) or " simple" in line] == rows
