"""The rules by which a name stays one identity's, explored in every reachable state, and without each.

Whoever has a name that is in use keeps it, through crashes of heads and lost links, once its edge knows of it; who had
it first wins; a name that is no longer used is free again; one that has ended is free at once, unless it is used at
another head.
"""

from __future__ import annotations

import pytest
from tests.exploration.name_claims import Config, explore

CRASH = Config(cuts=1)
AT_ONCE = Config(cuts=1, asks=1, spread=False)
AWAY = Config(crashes=0, leaves=1, leases=6, asks=1)
AWAY_AND_CUT = AWAY._replace(cuts=1)
ENDED = Config(crashes=0, cuts=1, ends=1, asks=1)
MOVED = Config(crashes=0, moves=1, ends=2)
MOVED_AND_CUT = MOVED._replace(cuts=1, asks=1)

RULES = [
    ("opens-wait-for-reports", CRASH, "the owner keeps its name"),
    ("claims-go-ahead-of-reports", CRASH, "the owner keeps its name"),
    ("edges-keep-claims", CRASH, "the owner keeps its name"),
    ("the-older-wins", AT_ONCE, "the owner keeps its name"),
    ("since-outlasts-a-restart", AT_ONCE, "the owner keeps its name"),
    ("a-loser-is-refused", AT_ONCE, "one identity has the name"),
    ("claims-in-use-are-repeated", AWAY, "a name in use is no other's"),
    ("what-has-faded-yields", AWAY_AND_CUT, "a forgotten name can be had again"),
    ("ends-are-told", ENDED, "an ended name is free"),
    ("ends-are-remembered", ENDED, "an ended name is free"),
    ("an-ended-name-is-reserved", MOVED, "a name in use is no other's"),
    ("who-goes-on-says-so", MOVED, "a name in use is no other's"),
    ("who-goes-on-is-first", MOVED_AND_CUT, "the owner keeps its name"),
]
"""Each rule with a world in which it is needed, and the law that is broken without it."""


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(CRASH, id="crash"),
        pytest.param(AT_ONCE, id="at-once"),
        pytest.param(AWAY, id="away"),
        pytest.param(AWAY._replace(asks=0), id="away-alone"),
        pytest.param(ENDED, id="ended"),
        pytest.param(MOVED, id="moved"),
        pytest.param(MOVED_AND_CUT, id="moved-and-cut"),
        pytest.param(AWAY_AND_CUT, id="away-and-cut", marks=[pytest.mark.slow, pytest.mark.sweep]),
        pytest.param(CRASH._replace(crashes=2), id="twice", marks=[pytest.mark.slow, pytest.mark.sweep]),
    ],
)
@pytest.mark.timeout(1200)
def test_no_reachable_state_breaks_a_law(config: Config) -> None:
    result = explore(config)
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert result.outcomes["b" if config.ends else "a"] > 0


@pytest.mark.sampled(without=("what-has-faded-yields",))
@pytest.mark.parametrize(("rule", "config", "law"), RULES)
def test_each_rule_is_needed(rule: str, config: Config, law: str) -> None:
    result = explore(config._replace(without=(rule,)))
    assert result.violation, f"{result.states} states without {rule}"
    assert result.violation.startswith(law), result.violation
