"""The rules of a place that a head keeps itself, explored in every reachable state, with all rules and without each.

The subscriber changes its list, goes away and comes back at either edge; an edge or the head crashes at any moment.
What counts for it is covered at the neighbour for as long as its place is kept, and it is never told that it lapsed.
"""

from __future__ import annotations

import pytest
from tests.exploration.durable_place import Config, explore

RULES = [
    ("lists-are-kept-again-with-the-report", "it is covered"),
    ("a-place-is-kept-ahead-of-its-cover", "it is covered"),
    ("a-place-is-on-the-disk", "it is covered"),
    ("a-list-counts-with-its-owner", "it is served"),
    ("a-place-outlasts-its-edge", "it is covered"),
    ("a-recovered-place-is-covered", "it is covered"),
    ("the-head-s-own-entry-yields", "it is served"),
]
"""Each rule with the law that is broken without it."""


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(Config(attaches=1), id="goes away"),
        pytest.param(Config(changes=False), id="comes back", marks=[pytest.mark.slow, pytest.mark.sweep]),
        pytest.param(Config(crashes=0, leaves=True), id="leaves", marks=[pytest.mark.slow, pytest.mark.sweep]),
    ],
)
@pytest.mark.timeout(1200)  # the sweeps have 240,000 states
def test_no_reachable_state_breaks_a_law(config: Config) -> None:
    result = explore(config)
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert result.outcomes["away"] > 0, "a world in which nothing is kept tests nothing"


@pytest.mark.parametrize(("rule", "law"), RULES)
def test_each_rule_is_needed(rule: str, law: str) -> None:
    result = explore(Config(attaches=1, without=(rule,)))
    assert result.violation, f"{result.states} states without {rule}"
    assert result.violation.startswith(law), result.violation
