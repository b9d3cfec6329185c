"""Every reachable state of the command that moves a slice, and each of its rules switched off."""

from __future__ import annotations

import pytest
from tests.exploration.slice_command import Config, explore

FAULTS = ("mediator dies", "head dies", "head dies at release", "taker dies")
WORLDS = [
    Config(), Config(stops=True), *(Config((fault,), stops=True) for fault in FAULTS), Config(FAULTS[:2], stops=True),
]  # fmt: skip


@pytest.mark.parametrize("config", WORLDS, ids=str)
def test_no_state_breaks_a_law(config: Config):
    result = explore(config)
    assert not result.violation, f"{result.violation}: {result.path}"
    assert result.outcomes["0 moved"]


RULES = [
    ("a head carries a command out once", Config()),
    ("commands are for one life of a head", Config(("head dies",))),
    ("an abort that comes first is remembered", Config(stops=True)),
    ("a newer mediator silences the older ones", Config(("mediator dies",))),
]


@pytest.mark.parametrize(("rule", "config"), RULES, ids=lambda each: str(each)[:40])
def test_each_rule_is_needed(rule: str, config: Config):
    assert explore(config._replace(without=(rule,))).violation
