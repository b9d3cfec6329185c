"""The rules of a publisher's move between heads, explored in every reachable state, with all rules and without each.

One fault at any time: a link of the publisher is lost, or one of the three heads dies and starts again, and what it has
sent is lost or still comes. Without a dead head every subscriber has every publication once and in order, and nothing
is unknown; with one, publications may be missing, and never come twice or out of order.
"""

from __future__ import annotations

import pytest
from tests.exploration.publisher_move import Config, explore

FAULTS = (
    (), ("link H1",), ("link H2",), ("crash H1",), ("crash-late H1",), ("crash H2",), ("crash-late H2",), ("crash M",),
    ("crash-late M",),
)  # fmt: skip
RULES = [
    ("marker-behind-the-last", (), "in order"),
    ("marker-names-the-last", (), "once"),
    ("first-of-cut-or-stay-wins", (), "ends"),
    ("a-move-given-up-is-closed", (), "ends"),
    ("a-return-is-asked-again", ("link H1",), "ends"),
]
"""Each rule with the faults of a world in which its absence shows, and the law that is broken there."""


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("faults", FAULTS, ids=lambda faults: faults[0] if faults else "no fault")
def test_no_reachable_state_breaks_a_law(faults: tuple[str, ...]) -> None:
    result = explore(Config(2, faults))
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert result.outcomes["moved"] > 0, "a world in which nothing moves tests nothing"
    assert result.outcomes["stayed"] > 0, "a world in which no move is undone tests nothing"


@pytest.mark.sweep
@pytest.mark.timeout(1800)  # half a million states
@pytest.mark.parametrize("faults", [("link H1", "link H2"), ("crash-late H1", "crash-late H2", "crash M")], ids=len)
def test_nor_with_three_publications_and_any_of_the_faults(faults: tuple[str, ...]) -> None:
    result = explore(Config(3, faults))
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))


@pytest.mark.parametrize(("rule", "faults", "law"), RULES)
def test_each_rule_is_needed(rule: str, faults: tuple[str, ...], law: str) -> None:
    result = explore(Config(2, faults, without=(rule,)))
    assert result.violation.startswith(law), result.violation or f"{result.states} states without {rule}"
