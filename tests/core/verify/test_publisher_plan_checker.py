"""Every fault that a plan for an overloaded head may have is found, and a plan without one has none."""

from __future__ import annotations

import pytest

from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.verify.publisher_plan_checker import PublisherPlanContext, publisher_plan_faults

CONTEXT = PublisherPlanContext(
    "a",
    {"p": {1: 5.0, 2: 1.0}, "q": {1: 5.0}, "r": {2: 3.0, 1: 3.0}, "s": {None: 9.0, 2: 9.0}, "t": {3: 1.0}},
    frozenset({"b", "c"}),
    frozenset({"t"}),
    4,
)


def move(*names: str, source: str = "a", target: str = "b", reason: str = "relieves a") -> PlanMove:
    return PlanMove("", names, source, target, reason)


@pytest.mark.parametrize(
    "moves",
    [
        [],
        [move("p", "q", "r")],
        [move("p", "q", "r"), move("s", target="c")],
        [move("p"), move("q", target="c"), move("s")],
    ],
)
def test_a_plan_without_a_fault(moves: list[PlanMove]):
    assert not publisher_plan_faults(moves, CONTEXT)


@pytest.mark.parametrize(
    ("moves", "faults"),
    [
        ([move("s"), move("s", target="c")], ["s moves 2 times"]),
        ([move("x")], ["x is no publisher of a"]),
        ([move("t")], ["t may not move"]),
        ([move("p", "q", "r"), move("s"), move("y")], ["y is no publisher of a", "5 publishers move, and 4 may"]),
        ([move("s", source="b", target="c")], ["a move leads from b to c"]),
        ([move("s", target="a")], ["a move leads from a to a", "a takes no publishers"]),
        ([move("s", target="d")], ["d takes no publishers"]),
        ([move("s", reason="")], ["the move of s has no reason"]),
        ([move("p", "q"), move("s")], ["p, q, r publish one topic and part, and others go together"]),
        ([move("p", "q", "r", "s")], ["p, q, r publish one topic and part, and others go together"]),
    ],
)
def test_a_fault_is_named(moves: list[PlanMove], faults: list[str]):
    assert publisher_plan_faults(moves, CONTEXT) == faults
