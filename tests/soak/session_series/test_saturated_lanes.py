"""Sessions away from a saturated edge: they wait until publications do, and what counts is the way there."""

import random
from typing import Any

import pytest

from plimsoll.core.protocol import messages as msg
from plimsoll.demo import quotes, workload
from plimsoll.mediator.control_plane import LoadReportReceived
from plimsoll.soak.session_series.lanes import SessionMix
from plimsoll.soak.session_series.saturated_lanes import (
    BESIDE,
    SOURCE,
    TARGET,
    UTILIZATION,
    SaturatedLanes,
    saturated_layout,
)
from plimsoll.soak.session_series.slice_run import SoakLoad


class Control:
    def __init__(self) -> None:
        self.said: list[Any] = []

    def send(self, head: str, one: Any) -> None:
        self.said.append(one)


class Quiet:
    """A ground that says nothing by itself."""

    def __init__(self) -> None:
        self.control = Control()
        self.statuses: dict[str, Any] = {}
        self.heard: list[Any] = []

    def head_of(self, edge: str) -> str:
        return "east-head"

    def epoch_of(self, broker: str) -> int:
        return 7

    def poll(self, seconds: float) -> list[Any]:
        heard, self.heard = self.heard, []
        return heard


def test_everybody_at_the_source_is_too_much_for_it_and_half_of_them_is_not() -> None:
    scenario = SoakLoad(240, speed=2.0).scenario(1)
    (made,) = [p for p in saturated_layout(scenario).resources("soak").profiles.values() if p.name == "edge"]
    assert made.spec.emulation is not None
    per = made.spec.emulation.per_subscription.seconds
    rate = sum(one.rate_per_minute for one in workload.plan_workload(scenario, quotes.load()).publishers) / 60
    assert rate * per * 216 == pytest.approx(UTILIZATION, rel=0.01)
    assert rate * per * 116 < 0.8


def run(moving: SaturatedLanes, ground: Quiet, served: list[str], stay: int = 0) -> msg.HandoverPlan | None:
    """Let one session begin and end, if one will; its plan. The first `stay` members stay where they are."""
    ground.control.said.clear()
    moving.step(0.0, begin=1)
    asked = [one for one in ground.control.said if isinstance(one, msg.ListSubscribers)]
    if not asked:
        return None
    moving.listings.on_page("east-head", msg.SubscriberPage(asked[0].id, asked[0].edge, 7, served, False), 0.0)
    moving.step(0.0, begin=1)
    (command,) = [one for one in ground.control.said if isinstance(one, msg.Command)]
    plan = command.plan
    assert plan is not None
    outcomes = ["stayed"] * stay + ["moved"] * (len(plan.members) - stay)
    members = list(zip(plan.members, outcomes, strict=True))
    moving.on_outcome("east-head", msg.Outcome(command.session, 1, 7, "done", members))
    return plan


def waits(ground: Quiet, edge: str, seconds: float) -> None:
    report = {"input_queue_delay_seconds": seconds}
    ground.heard.append(LoadReportReceived(edge, report))


def test_a_session_waits_until_publications_do_and_the_way_back_until_none_does() -> None:
    ground = Quiet()
    names = [f"s{number}" for number in range(20)]
    made: Any = ground
    moving = SaturatedLanes(made, random.Random(1), SessionMix(members=8), subscribers=20)
    first = run(moving, ground, names)
    assert first is not None
    assert (first.source, first.target, len(first.members), first.replay) == (SOURCE, BESIDE, 2, False)
    assert run(moving, ground, names) is None  # nothing waits
    waits(ground, SOURCE, 0.7)
    moving.step(0.0, begin=0)
    there = run(moving, ground, names)
    assert there is not None
    assert (there.source, there.target, len(there.members), there.replay) == (SOURCE, TARGET, 8, True)
    assert run(moving, ground, names) is None  # something still waits
    waits(ground, SOURCE, 0.0)
    moving.step(0.0, begin=0)
    back = run(moving, ground, there.members)
    assert back is not None
    assert (back.source, back.target, sorted(back.members), back.replay) == (
        TARGET, SOURCE, sorted(there.members), False,
    )  # fmt: skip
    assert (len(moving.done), [one.plan for one in moving.counted]) == (3, [there])


def test_small_sessions_follow_one_another_until_half_are_away_or_nothing_waits() -> None:
    ground = Quiet()
    names = [f"s{number}" for number in range(200)]
    made: Any = ground
    moving = SaturatedLanes(made, random.Random(1), SessionMix(), subscribers=200)
    run(moving, ground, names)
    waits(ground, SOURCE, 0.7)
    moving.step(0.0, begin=0)
    there = 0
    while (plan := run(moving, ground, names)) is not None:
        assert (plan.source, plan.target) == (SOURCE, TARGET)
        assert 0 < len(plan.members) <= 34
        there += len(plan.members)
    assert 100 <= there < 134
    waits(ground, SOURCE, 0.0)
    moving.step(0.0, begin=0)
    back = run(moving, ground, names[:there])
    assert back is not None
    assert (back.source, back.target, len(back.members)) == (TARGET, SOURCE, there)


def test_who_stayed_on_the_way_back_is_drained_by_another_session() -> None:
    ground = Quiet()
    names = [f"s{number}" for number in range(20)]
    made: Any = ground
    moving = SaturatedLanes(made, random.Random(1), SessionMix(members=8), subscribers=20)
    run(moving, ground, names)
    waits(ground, SOURCE, 0.7)
    moving.step(0.0, begin=0)
    there = run(moving, ground, names)
    assert there is not None
    waits(ground, SOURCE, 0.0)
    moving.step(0.0, begin=0)
    back = run(moving, ground, there.members, stay=3)
    assert back is not None
    waits(ground, SOURCE, 0.4)
    moving.step(0.0, begin=0)
    rest = run(moving, ground, back.members[:3])
    assert rest is not None
    assert (rest.source, rest.target, sorted(rest.members)) == (TARGET, SOURCE, sorted(back.members[:3]))
