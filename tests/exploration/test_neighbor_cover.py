"""What a neighbour asks for is on the disk of a head: every reachable state, with all rules and without each.

Whatever the neighbour was told to be covered by it receives, from both publishers, once and without a gap, though the
head crashes and goes on without having heard from it.
"""

from __future__ import annotations

import pytest
from tests.exploration.neighbor_cover import Config, explore

RULES = [
    ("covers-are-recalled", ""),
    ("what-is-asked-for-is-on-the-disk", "complete"),
    ("covered-behind-its-sync", "complete"),
    ("nothing-is-offered-before-the-report", "complete"),
    ("what-was-missed-is-sent", "complete"),
]
"""Each rule with the law that is broken without it (empty: any of them)."""


def test_no_reachable_state_breaks_a_law() -> None:
    result = explore(Config())
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert result.outcomes["recovered"] > 0
    assert result.outcomes["due"] > 0, "a world in which nothing is due tests nothing"


@pytest.mark.sweep
@pytest.mark.parametrize("config", [Config(publications=2), Config(crashes=2), Config(absences=2)])
def test_nor_in_a_larger_world(config: Config) -> None:
    result = explore(config)
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))


@pytest.mark.sampled(without=("covered-behind-its-sync", "nothing-is-offered-before"))
@pytest.mark.parametrize(("rule", "law"), RULES)
def test_each_rule_is_needed(rule: str, law: str) -> None:
    worlds = [Config(without=(rule,)), Config(publications=2, relays=0, without=(rule,))]
    found = [result.violation for world in worlds if (result := explore(world)).violation]
    assert found, f"no world breaks a law without {rule}"
    assert found[0].startswith(law), found[0]
