"""The rules by which one of two places of a subscriber goes, explored in every reachable state, and without each.

Wherever x comes back its place is kept; once it is served no other head has a place for it.
"""

from __future__ import annotations

import pytest
from tests.exploration.place_elsewhere import Config, explore

RULES = [
    ("heads-ask", "one place is left"),
    ("a-guest-s-place-is-in-doubt", "its place is kept"),
    ("guests-do-not-answer", "its place is kept"),
    ("only-what-is-served-beats-a-guest", "its place is kept"),
    ("the-place-is-the-one-that-was-asked-about", "its place is kept"),
    ("guests-yield-to-their-equals", "one place is left"),
]
"""Each rule with the law that is broken without it."""

ONCE = Config(moves=1, crashes=2)
TWICE = Config(sessions=2, moves=1)


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(ONCE, id="once"),
        pytest.param(TWICE, id="twice", marks=[pytest.mark.slow, pytest.mark.sweep]),
        pytest.param(TWICE._replace(crashes=2, leaves=2), id="often", marks=[pytest.mark.slow, pytest.mark.sweep]),
    ],
)
@pytest.mark.timeout(1200)
def test_no_reachable_state_breaks_a_law(config: Config) -> None:
    result = explore(config)
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert result.outcomes["H1"] > 0
    assert result.outcomes["H2"] > 0


@pytest.mark.sampled(without=("the-place-is-the-one-that-was-asked",))
@pytest.mark.parametrize(("rule", "law"), RULES)
def test_each_rule_is_needed(rule: str, law: str) -> None:
    result = explore(TWICE._replace(leaves=2, without=(rule,)))
    assert result.violation, f"{result.states} states without {rule}"
    assert result.violation.startswith(law), result.violation
