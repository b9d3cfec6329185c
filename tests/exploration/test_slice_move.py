"""The hand-over of a slice between two consumers, explored in every reachable state, with all rules and without each.

One fault at any time: a consumer dies or is cut off, an edge or the head dies. Without a fault every item is given once
and in order; with one, what was given and not acknowledged may come again, marked. Only a dead head loses items.
"""

from __future__ import annotations

import pytest
from tests.exploration.slice_move import Config, explore

FAULTS = ((), ("crash A",), ("crash B",), ("crash E1",), ("crash E2",), ("cut A",), ("cut B",))
BOUNDS = ("slow H", "full A", "full B")
TWO, ONE = ("E1", "E2"), ("E1", "E1")
RULES = [
    ("assigned-when-released", "Deliver", (), "one holder"),
    ("what-is-in-hand-is-finished", "Deliver", (), "one holder"),
    ("what-is-in-hand-is-finished", "Cache", (), "one holder"),
    ("from-the-last-acknowledgement", "Deliver", (), "none lost"),
    ("given-before-is-marked", "Deliver", ("crash A",), "once"),
    ("a-silent-consumer-stops", "Deliver", ("cut A",), "one holder"),
    ("a-restarted-head-waits", "Deliver", ("crash H",), "ends"),
    ("it-caches-from-where-the-giver-is", "Cache", (), "none lost"),
    ("a-late-cache-is-not-merged", "Cache", ("slow H",), "none lost"),
    ("merged-once", "Cache", (), "once"),
    ("merged-in-order", "Cache", (), "in order"),
    ("a-merge-is-seen", "Cache", (), "once"),
]
"""Each rule with the way and the faults of a world in which its absence shows, and the law that is broken there."""


@pytest.mark.sampled(10)
@pytest.mark.parametrize("edges", [TWO, ONE], ids=["two edges", "one edge"])
@pytest.mark.parametrize("mode", ["Deliver", "Cache"])
@pytest.mark.parametrize("faults", FAULTS, ids=lambda faults: faults[0] if faults else "no fault")
def test_no_reachable_state_breaks_a_law(faults: tuple[str, ...], mode: str, edges: tuple[str, str]) -> None:
    result = explore(Config(2, mode, edges, faults))
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    way = "moved" if mode == "Deliver" else "merged"
    assert result.outcomes[way] > 0, "a world in which nothing moves tests nothing"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("bound", BOUNDS)
def test_nor_when_a_cache_is_given_up_at_any_time(bound: str) -> None:
    result = explore(Config(2, "Cache", ONE, (bound,)))
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert result.outcomes["merged"] > 0
    assert result.outcomes["slow"] + result.outcomes["full"] + result.outcomes["moved"] > 0


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["Deliver", "Cache"])
def test_nor_when_the_head_dies(mode: str) -> None:
    result = explore(Config(1, mode, ONE, ("crash H",)))
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))
    assert {"moved" if mode == "Deliver" else "merged", "restarted"} <= set(result.outcomes)


@pytest.mark.sweep
@pytest.mark.timeout(900)  # a million states
@pytest.mark.parametrize("mode", ["Deliver", "Cache"])
def test_nor_when_the_head_dies_with_two_items_and_two_edges(mode: str) -> None:
    result = explore(Config(2, mode, TWO, ("crash H",)))
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))


@pytest.mark.sweep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["Deliver", "Cache"])
def test_nor_with_three_items(mode: str) -> None:
    result = explore(Config(3, mode, TWO, ("crash A", "crash B", "crash E1", "cut A")))
    assert not result.violation, f"{result.violation}\n" + "\n".join(map(str, result.path))


@pytest.mark.sampled(without=("a-restarted-head-waits", "a-late-cache-is-not-merged"))
@pytest.mark.parametrize(("rule", "mode", "faults", "law"), RULES)
def test_each_rule_is_needed(rule: str, mode: str, faults: tuple[str, ...], law: str) -> None:
    result = explore(Config(2, mode, TWO, faults, without=(rule,)))
    assert result.violation.startswith(law), result.violation or f"{result.states} states without {rule}"
