"""Sessions away from a saturated edge begin when publications wait there; only sessions by replay count."""

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
        self.sent: list[Any] = []

    def send(self, head: str, one: Any) -> None:
        self.sent.append(one)


class ScriptedHarness:
    """Stands in for the fleet harness: it returns only the events that a test has put in."""

    def __init__(self) -> None:
        self.control = Control()
        self.statuses: dict[str, Any] = {}
        self.events: list[Any] = []

    def head_of(self, edge: str) -> str:
        return "east-head"

    def epoch_of(self, broker: str) -> int:
        return 7

    def poll(self, seconds: float) -> list[Any]:
        events, self.events = self.events, []
        return events


def test_all_subscribers_overload_the_source_and_half_of_them_do_not() -> None:
    scenario = SoakLoad(240, speed=2.0).scenario(1)
    (made,) = [p for p in saturated_layout(scenario).resources("soak").profiles.values() if p.name == "edge"]
    assert made.spec.emulation is not None
    per = made.spec.emulation.per_subscription.seconds
    rate = sum(one.rate_per_minute for one in workload.plan_workload(scenario, quotes.load()).publishers) / 60
    assert rate * per * 216 == pytest.approx(UTILIZATION, rel=0.01)
    assert rate * per * 116 < 0.8


def run(lanes: SaturatedLanes, harness: ScriptedHarness, served: list[str], stay: int = 0) -> msg.HandoverPlan | None:
    """Run one session and return its plan; None if none begins. Its first `stay` members have the outcome `stayed`."""
    harness.control.sent.clear()
    lanes.step(0.0, begin=1)
    asked = [one for one in harness.control.sent if isinstance(one, msg.ListSubscribers)]
    if not asked:
        return None
    lanes.listings.on_page("east-head", msg.SubscriberPage(asked[0].id, asked[0].edge, 7, served, False), 0.0)
    lanes.step(0.0, begin=1)
    (command,) = [one for one in harness.control.sent if isinstance(one, msg.Command)]
    plan = command.plan
    assert plan is not None
    outcomes = ["stayed"] * stay + ["moved"] * (len(plan.members) - stay)
    members = list(zip(plan.members, outcomes, strict=True))
    lanes.on_outcome("east-head", msg.Outcome(command.session, 1, 7, "done", members))
    return plan


def report_queue_delay(harness: ScriptedHarness, edge: str, seconds: float) -> None:
    report = {"input_queue_delay_seconds": seconds}
    harness.events.append(LoadReportReceived(edge, report))


def test_a_session_begins_when_publications_wait_and_the_way_back_when_none_does() -> None:
    harness = ScriptedHarness()
    names = [f"s{number}" for number in range(20)]
    made: Any = harness
    lanes = SaturatedLanes(made, random.Random(1), SessionMix(members=8), subscribers=20)
    first = run(lanes, harness, names)
    assert first is not None
    assert (first.source, first.target, len(first.members), first.replay) == (SOURCE, BESIDE, 2, False)
    assert run(lanes, harness, names) is None  # no publication waits
    report_queue_delay(harness, SOURCE, 0.7)
    lanes.step(0.0, begin=0)
    there = run(lanes, harness, names)
    assert there is not None
    assert (there.source, there.target, len(there.members), there.replay) == (SOURCE, TARGET, 8, True)
    assert run(lanes, harness, names) is None  # publications still wait
    report_queue_delay(harness, SOURCE, 0.0)
    lanes.step(0.0, begin=0)
    back = run(lanes, harness, there.members)
    assert back is not None
    assert (back.source, back.target, sorted(back.members), back.replay) == (
        TARGET, SOURCE, sorted(there.members), False,
    )  # fmt: skip
    assert (len(lanes.done), [one.plan for one in lanes.counted]) == (3, [there])


def test_small_sessions_follow_one_another_until_half_are_away_or_the_queue_is_empty() -> None:
    harness = ScriptedHarness()
    names = [f"s{number}" for number in range(200)]
    made: Any = harness
    lanes = SaturatedLanes(made, random.Random(1), SessionMix(), subscribers=200)
    run(lanes, harness, names)
    report_queue_delay(harness, SOURCE, 0.7)
    lanes.step(0.0, begin=0)
    there = 0
    while (plan := run(lanes, harness, names)) is not None:
        assert (plan.source, plan.target) == (SOURCE, TARGET)
        assert 0 < len(plan.members) <= 34
        there += len(plan.members)
    assert 100 <= there < 134
    report_queue_delay(harness, SOURCE, 0.0)
    lanes.step(0.0, begin=0)
    back = run(lanes, harness, names[:there])
    assert back is not None
    assert (back.source, back.target, len(back.members)) == (TARGET, SOURCE, there)


def test_members_that_stayed_on_the_way_back_are_drained_by_another_session() -> None:
    harness = ScriptedHarness()
    names = [f"s{number}" for number in range(20)]
    made: Any = harness
    lanes = SaturatedLanes(made, random.Random(1), SessionMix(members=8), subscribers=20)
    run(lanes, harness, names)
    report_queue_delay(harness, SOURCE, 0.7)
    lanes.step(0.0, begin=0)
    there = run(lanes, harness, names)
    assert there is not None
    report_queue_delay(harness, SOURCE, 0.0)
    lanes.step(0.0, begin=0)
    back = run(lanes, harness, there.members, stay=3)
    assert back is not None
    report_queue_delay(harness, SOURCE, 0.4)
    lanes.step(0.0, begin=0)
    rest = run(lanes, harness, back.members[:3])
    assert rest is not None
    assert (rest.source, rest.target, sorted(rest.members)) == (TARGET, SOURCE, sorted(back.members[:3]))
