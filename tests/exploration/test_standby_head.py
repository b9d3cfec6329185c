"""The rules of a head and its standby, explored in every reachable state, with all rules and without each.

Processes die at any moment, the mediator is wrong about who has died, and two that lead live side by side. As long as
one of the two processes that the store counts on lives, what was told to others is kept, is given once and in order,
and there is no gap. No clock takes part.
"""

from __future__ import annotations

import pytest
from tests.exploration.standby_head import Config, explore

SMALL = Config(publications=1, crashes=1, mistakes=1, cuts=1)
AGAIN = Config(publications=1, crashes=1, mistakes=1, repeats=1)
"""With a publisher that opens again, and a command that is repeated."""
WAITS = Config(publications=1, crashes=1, mistakes=0, waits=True, late=1)
"""Processes that wait to be told what they are, as in containers, by a mediator that may know only what was before."""

RULES = [
    ("held-for-the-standby", SMALL, "kept"),
    ("alone-only-by-the-store", SMALL, "kept"),
    ("only-one-in-sync-is-promoted", SMALL, "kept"),
    ("the-standby-itself-says-that-it-is-in-sync", SMALL, "kept"),
    ("what-is-over-is-not-noted-again", SMALL, "kept"),
    ("given-up-in-the-store-first", SMALL, "kept"),
    ("one-is-given-up-only-for-a-head-that-lives", SMALL, "kept"),
    ("no-head-begins-beside-a-standby-in-sync", SMALL, "kept"),
    ("one-that-leads-gives-no-word", SMALL, "kept"),
    ("times-in-sync-are-numbered", AGAIN, "kept"),
    ("what-is-told-at-an-opening-is-held", AGAIN, "kept"),
    ("numbers-are-known-from-the-log", AGAIN, "once"),
    ("the-higher-term-is-followed", SMALL, ""),
    ("an-edge-goes-on-from-its-position", SMALL, "no gap"),
    ("a-term-is-given-to-one-incarnation", WAITS, ""),
]
"""Each rule with the world in which it is needed, and the law that is broken without it (empty: any of them)."""


@pytest.mark.sampled(without=("config0",))
@pytest.mark.parametrize(
    "config",
    [Config(publications=2), SMALL._replace(cuts=0), Config(publications=1, crashes=2, mistakes=0), WAITS],
)
def test_no_reachable_state_breaks_a_law(config: Config) -> None:
    result = explore(config)
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert result.outcomes["promoted"] > 0, "a world without a promotion tests nothing"
    assert (result.outcomes["two lead"] > 0) is (config.mistakes > 0)  # in the end; with `waits` the old one has ended


@pytest.mark.sweep
@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        AGAIN,
        Config(publications=2, cuts=1),
        Config(publications=1, crashes=2, mistakes=1),
        WAITS._replace(mistakes=1),
        WAITS._replace(crashes=2),
    ],
)
def test_nor_in_larger_worlds(config: Config) -> None:
    result = explore(config)
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))


@pytest.mark.sampled(without=("the-higher-term-is-followed",))
@pytest.mark.parametrize(("rule", "config", "law"), RULES, ids=[rule for rule, _, _ in RULES])
def test_each_rule_is_needed(rule: str, config: Config, law: str) -> None:
    result = explore(config._replace(without=(rule,)))
    assert result.violation, f"{result.states} states without {rule}"
    assert result.violation.startswith(law), result.violation
