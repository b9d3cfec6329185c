"""Every reachable state of a head whose `confirm` is changed while it runs, and each rule switched off."""

from __future__ import annotations

import pytest
from tests.exploration.confirm_switch import Config, explore

WORLDS = [
    Config(entries=2), Config(entries=2, starts_relaxed=True),
    pytest.param(Config(entries=4, changes=3, comings=1), marks=pytest.mark.sweep),
]  # fmt: skip


@pytest.mark.parametrize("config", WORLDS, ids=str)
def test_no_state_breaks_a_law(config: Config):
    result = explore(config)
    assert not result.violation, f"{result.violation}: {result.path}"
    assert all(result.outcomes[end] for end in ("whole", "unsure", "promoted"))


RULES = [
    "the log says whether all waits for syncs",
    "a mark is synced before anything leaves",
    "what was relaxed is waited for before the log says that all waits",
    "all that was relaxed is waited for when the standby has gone",
]


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_needed(rule: str):
    assert explore(Config(entries=2, without=(rule,))).violation
