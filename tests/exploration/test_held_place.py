"""The rules by which edges let go of a subscriber, explored in every reachable state, with all rules and without each.

It has no lease, and its head dies in the middle of a hand-over, or while it attaches: no gap, nothing is lost or
repeated.
"""

from __future__ import annotations

import pytest
from tests.exploration.held_place import Config, explore

ATTACHES = Config(attaches=2, moves=0, breaks=1)
RULES = [
    ("a-cut-leaves-the-place-at-the-source", Config(), "nothing is lost"),
    ("a-place-that-ends-outlasts-the-head", Config(), "nothing is lost"),
    ("a-resume-waits-for-all-edges", Config(), "no gap"),
    ("a-place-is-released-once-another-is-taken", ATTACHES, "nothing is lost"),
    ("a-resume-takes-over-the-place-of-its-edge", ATTACHES, "nothing is lost"),
    ("an-older-resume-waits-as-well", Config(attaches=3, publications=0, moves=0, breaks=2), "no gap"),
    ("the-last-owner-has-them-released", ATTACHES, "it is let go"),
]
"""Each rule with a world in which its absence shows, and the law that is broken there."""


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(Config(), id="is handed over"),
        pytest.param(ATTACHES, id="attaches"),
        pytest.param(
            Config(attaches=2, publications=2, crashes=2), id="dies twice", marks=[pytest.mark.slow, pytest.mark.sweep]
        ),
        pytest.param(
            Config(attaches=2, breaks=1), id="breaks and is handed over", marks=[pytest.mark.slow, pytest.mark.sweep]
        ),
        pytest.param(
            Config(attaches=3, moves=0, breaks=2), id="attaches again", marks=[pytest.mark.slow, pytest.mark.sweep]
        ),
    ],
)
@pytest.mark.sampled(1)
@pytest.mark.timeout(1200)  # the sweeps have 300,000 states
def test_no_reachable_state_breaks_a_law(config: Config) -> None:
    result = explore(config)
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    for edge in ("A", "B"):
        assert result.outcomes[f"at {edge}"] > 0, "a world in which x stays where it is tests nothing"


@pytest.mark.sampled(without=("an-older-resume-waits-as-well",))
@pytest.mark.parametrize(("rule", "config", "law"), RULES)
def test_each_rule_is_needed(rule: str, config: Config, law: str) -> None:
    result = explore(config._replace(without=(rule,)))
    assert result.violation, f"{result.states} states without {rule}"
    assert result.violation.startswith(law), result.violation
