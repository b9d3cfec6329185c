"""Every reachable state of a declared group that is removed while its head restarts, and each rule switched off."""

from __future__ import annotations

import pytest
from tests.exploration.group_removal import Config, explore

WORLDS = [
    Config(crashes=0), Config(), Config(publications=1, dies=True), Config(publications=1, dies=True, may_make=True),
    Config(changes=2, publications=1), Config(changes=2, publications=1, crashes=2),
    Config(changes=0, publications=1, dies=True, passes=True),
    pytest.param(Config(dies=True, passes=True), marks=pytest.mark.sweep),
]  # fmt: skip


@pytest.mark.parametrize("config", WORLDS, ids=str)
def test_no_state_breaks_a_law(config: Config):
    result = explore(config)
    assert not result.violation, f"{result.violation}: {result.path}"
    end = "declared" if config.changes % 2 == 0 else "none"
    assert result.outcomes[f"{end}, {'with' if config.crashes else 'without'} a restart"]


RULES = [
    ("what it was told is written", Config()),
    ("what the log declares is declared until a mediator speaks", Config(changes=2)),
    ("that a slice has begun is written at once", Config(dies=True)),
    ("what may have been given is marked", Config(dies=True)),
    ("what may have been given is written at once", Config(changes=0, publications=1, dies=True, passes=True)),
    ("what is left is known when the log has been read", Config()),
    ("nothing ends while members may say what they have", Config()),
    ("none is new while members may come back", Config(may_make=True)),
]


@pytest.mark.parametrize(("rule", "config"), RULES, ids=lambda each: str(each)[:40])
def test_each_rule_is_needed(rule: str, config: Config):
    assert explore(config._replace(without=(rule,))).violation
