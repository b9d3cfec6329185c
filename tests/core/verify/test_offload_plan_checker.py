"""Faults of plans: a sound plan has none, and each way of spoiling it is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.core.policies.hand import Broker, World, named

from plimsoll.core.policies.model.load import LoadChange
from plimsoll.core.policies.model.plan import BrokerAction, OffloadPlan, PlanMove, PlanStep
from plimsoll.core.policies.padres import Padres
from plimsoll.core.verify.offload_plan_checker import OffloadPlanContext, offload_plan_faults

LOWER = {"input": 0.9, "output": 0.9, "cpu": 0.9, "memory": 0.9}
WORLD = World(
    2, {"ab": 3, "a": 1}, {"s": Broker(served={"ab": named("x", 4), "a": named("a", 6)}), "t": Broker(bandwidth=2000.0)}
)
PROFILE = WORLD.profile("s", "t")
PLAN = Padres().plan(WORLD.load("s"), WORLD.load("t"), PROFILE, BrokerAction("t", "input", 0.2))


def with_moves(*moves: PlanMove) -> OffloadPlan:
    return replace(PLAN, steps=(PlanStep(moves),))


def test_a_sound_plan_has_no_faults():
    assert PLAN.moves
    assert offload_plan_faults(PLAN, OffloadPlanContext(PROFILE, LOWER)) == []


def test_a_plan_that_moves_no_subscriber_has_no_faults():
    nothing = Padres().plan(WORLD.load("s"), WORLD.load("s"), PROFILE, BrokerAction("s", "input", 0.0))
    elsewhere = replace(nothing, target=replace(nothing.target, name="t"))
    assert (
        offload_plan_faults(replace(elsewhere, predicted_target=elsewhere.target), OffloadPlanContext(PROFILE, LOWER))
        == []
    )


FIRST = PLAN.moves[0]
SPOILED: dict[str, tuple[Callable[[], OffloadPlan], str]] = {
    "twice": (lambda: with_moves(FIRST, FIRST), "moves 2 times"),
    "unknown": (lambda: with_moves(replace(FIRST, subscribers=("unknown",))), "unknown does not ask for"),
    "another row": (lambda: with_moves(replace(FIRST, key="a")), "does not ask for a at s"),
    "another pair": (lambda: with_moves(replace(FIRST, target="u")), "goes from s to u"),
    "no subscriber": (lambda: with_moves(replace(FIRST, subscribers=())), "no subscriber moves with"),
    "itself": (lambda: replace(PLAN, target=PLAN.source), "s would give to itself"),
    "no reason": (lambda: with_moves(replace(FIRST, reason=" ")), "moves without a reason"),
    "no rejection": (lambda: replace(PLAN, rejected=()), "subscribers"),
    "mute rejection": (
        lambda: replace(PLAN, rejected=(replace(PLAN.rejected[0], reason=""), *PLAN.rejected[1:])),
        "is rejected without a reason",
    ),
    "no end": (lambda: replace(PLAN, stopped=""), "does not say why it ends"),
    "too rosy": (lambda: replace(PLAN, predicted_target=PLAN.target), "of t would be"),
    "too gloomy": (
        lambda: replace(PLAN, predicted_source=PLAN.predicted_source.after(LoadChange(input_rate=1.0))),
        "input utilisation of s would be",
    ),
}


@pytest.mark.parametrize("how", SPOILED)
def test_each_spoiled_plan_is_found(how: str):
    make, text = SPOILED[how]
    found = offload_plan_faults(make(), OffloadPlanContext(PROFILE, LOWER))
    assert any(text in each for each in found), found


def test_an_overloaded_target_is_found():
    found = offload_plan_faults(PLAN, OffloadPlanContext(PROFILE, {**LOWER, "input": 0.01}))
    assert [each for each in found if each.startswith("input of t would be")]


def test_a_plan_that_makes_matters_worse_is_found():
    """The same moves, without need: the two were nearly balanced before."""
    worse = replace(PLAN, source=PLAN.predicted_source, predicted_source=PLAN.source, predicted_target=PLAN.target)
    found = offload_plan_faults(
        replace(worse, target=PLAN.predicted_target), OffloadPlanContext(PROFILE, LOWER, by_content=False)
    )
    assert any("difference would grow" in each for each in found)
    assert any("higher input of the two would grow" in each for each in found)


def test_an_overloaded_source_must_be_relieved():
    idle = replace(PLAN.action, overloaded=("input",))
    loaded = replace(PLAN.source, input_utilization=1.5)
    plan = replace(PLAN, action=idle, source=loaded, predicted_source=loaded)
    found = offload_plan_faults(plan, OffloadPlanContext(PROFILE, LOWER, by_content=False))
    assert found == ["s is overloaded, and would be no less: 0.6000 -> 0.6000"]
