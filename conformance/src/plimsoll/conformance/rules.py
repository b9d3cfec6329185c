"""The rules of docs/protocol.md that a client can break, each in the words of the page.

A scenario names the rule that a client has broken. `tests/conformance/test_rules.py` finds the words in that section.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """A rule: the section of docs/protocol.md, and words from it."""

    section: str
    words: str


class RuleBrokenError(Exception):
    """The client has broken a rule. `found`: what it did, or did not do."""

    def __init__(self, rule: Rule, found: str) -> None:
        super().__init__(f"{rule.section}: {found}")
        self.rule, self.found = rule, found
