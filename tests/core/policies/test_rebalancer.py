"""The seam between policies and the session engine: steps are taken whole, moves become direct, a limit ends a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.model.profile import SubscriptionProfile, profile_rows
from plimsoll.core.policies.model.traffic import SampledTraffic
from plimsoll.core.policies.rebalancer import (
    FleetLook,
    FleetSample,
    Memory,
    ProfileDetail,
    Step,
    Steps,
    StepsEnd,
    fleet_plan,
)


@dataclass(frozen=True)
class Counted:
    """A fleet that only counts its steps."""

    taken: int = 0

    @property
    def loads(self) -> tuple[BrokerLoad, ...]:
        return (BrokerLoad(name="a", subscribers=self.taken),)

    def after(self, step: Step) -> Counted:
        return replace(self, taken=self.taken + 1)


@dataclass(frozen=True)
class Scripted:
    """A policy with given steps. `asked`: how many of them were asked for."""

    script: tuple[Step, ...]
    asked: list[int]
    name: ClassVar[str] = "Scripted"
    metric: ClassVar[str] = "nothing"
    profiles: ClassVar[ProfileDetail] = "takers"
    interval_seconds = 1.0

    def imbalance(self, look: FleetLook) -> str:
        return ""

    def observe(self, memory: Memory, look: FleetLook) -> Memory:
        return memory

    def wanted(self, memory: Memory) -> str:
        return ""

    def after_moves(self, memory: Memory) -> Memory:
        return {}

    def fleet(self, sample: FleetSample, memory: Memory) -> Counted:
        return Counted()

    def steps(self, fleet: Counted, memory: Memory) -> Steps:
        for number, step in enumerate(self.script):
            self.asked.append(number)
            yield step
        return StepsEnd("Enough", "the script is over")


def move(names: str, source: str, target: str, reason: str = "because") -> PlanMove:
    return PlanMove("{k}", tuple(names.split()), source, target, reason)


def sample(names: str, most: int | None = None) -> FleetSample:
    rows = profile_rows((name, "{k}", 0, 1) for name in names.split())
    profile = SubscriptionProfile(SampledTraffic(()), rows)
    return FleetSample((BrokerLoad(name="a"),), {"a": profile}, {}, None, most)


def test_all_steps_are_taken_and_the_prediction_is_that_of_the_fleet():
    asked: list[int] = []
    plan = fleet_plan(
        Scripted((Step((move("x", "a", "b"),)), Step((move("y", "a", "c"),))), asked), sample("x y z"), {}
    )
    assert [(one.subscribers, one.target) for one in plan.moves] == [(("x",), "b"), (("y",), "c")]
    assert (plan.before[0].subscribers, plan.after[0].subscribers) == (0, 2)
    assert (plan.ended, plan.stopped) == ("Enough", "the script is over")
    assert [(each.subscribers, each.reason) for each in plan.rejected] == [(1, "stays at a: the script is over")]


def test_a_step_that_exceeds_the_limit_is_not_taken_in_part_and_no_other_is_asked_for():
    asked: list[int] = []
    script = (Step((move("x", "a", "b"),)), Step((move("y z", "a", "b"),)), Step((move("w", "a", "b"),)))
    plan = fleet_plan(Scripted(script, asked), sample("w x y z", most=2), {})
    assert [one.subscribers for one in plan.moves] == [("x",)]
    assert (plan.ended, asked) == ("Limit", [0, 1])
    assert plan.after[0].subscribers == 1


def test_a_subscriber_that_moves_twice_goes_straight_to_its_last_place():
    script = (Step((move("x y", "a", "b", "first"),)), Step((move("x", "b", "c", "second"),)))
    plan = fleet_plan(Scripted(script, []), sample("x y"), {})
    assert [(one.subscribers, one.source, one.target, one.reason) for one in plan.moves] == [
        (("y",), "a", "b", "first"), (("x",), "a", "c", "second"),
    ]  # fmt: skip


def test_one_that_comes_back_does_not_move_and_does_not_count():
    script = (Step((move("x", "a", "b"),)), Step((move("x", "b", "a"),)), Step((move("y", "a", "b"),)))
    plan = fleet_plan(Scripted(script, []), sample("x y", most=1), {})
    assert [one.subscribers for one in plan.moves] == [("y",)]


def test_waves_keep_their_order():
    script = (Step((move("x", "a", "b"),), 1), Step((move("y", "a", "b"),), 0))
    plan = fleet_plan(Scripted(script, []), sample("x y"), {})
    assert [[one.subscribers for one in wave] for wave in plan.waves] == [[("y",)], [("x",)]]


@pytest.mark.parametrize("staying", [{"x": "is excluded"}])
def test_those_that_stay_have_their_reason(staying: dict[str, str]):
    plan = fleet_plan(Scripted((), []), replace(sample("x y"), staying=staying), {})
    assert [(each.kind, each.reason) for each in plan.rejected] == [
        ("Staying", "a: is excluded"), ("NotNeeded", "stays at a: the script is over"),
    ]  # fmt: skip
