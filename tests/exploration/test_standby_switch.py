"""A standby that is switched on and off while its head runs, explored in every reachable state.

As long as one of the two processes that the store counts on lives, what was told to others is kept, is given once and
in order, and there is no gap; and no process leads that was not told so. No clock takes part.
"""

from __future__ import annotations

import pytest
from tests.exploration.standby_head import Config
from tests.exploration.standby_switch import explore

ON = Config(publications=1, crashes=1, mistakes=0, waits=True, switches=1)
OFF = ON._replace(switches=2)
LATE = ON._replace(late=1)

RULES = [
    ("not-in-sync-before-all-of-the-log-is-copied", ON, "kept"),
    ("one-is-admitted-while-the-heads-own-file-says-so", OFF._replace(switches=3), ""),
    ("the-second-has-gone-before-the-file-says-so", OFF, "told"),
    ("removed-only-beside-a-head-that-leads", OFF, "kept"),
    ("over-in-the-store-before-it-ends", OFF, "kept"),
    ("held-for-the-standby", ON, "kept"),
]
"""Each rule with the world in which it is needed, and the law that is broken without it (empty: any of them)."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("config", [ON._replace(publications=2), OFF, LATE])
def test_no_reachable_state_breaks_a_law(config: Config) -> None:
    result = explore(config)
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert result.outcomes["taken on"] > 0, "a world in which no standby is taken on tests nothing"
    assert (result.outcomes["promoted"] > 0) is (config.crashes > 0)
    assert (result.outcomes["let go"] > 0) is (config.switches > 1)


@pytest.mark.parametrize(("rule", "config", "law"), RULES, ids=[rule for rule, _, _ in RULES])
def test_each_rule_is_needed(rule: str, config: Config, law: str) -> None:
    result = explore(config._replace(without=(rule,)))
    assert result.violation, f"{result.states} states without {rule}"
    assert result.violation.startswith(law), result.violation


@pytest.mark.sweep
@pytest.mark.parametrize(
    "config", [OFF._replace(switches=3), OFF._replace(mistakes=1), ON._replace(crashes=2), LATE._replace(switches=2)]
)
def test_nor_in_larger_worlds(config: Config) -> None:
    result = explore(config)
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
