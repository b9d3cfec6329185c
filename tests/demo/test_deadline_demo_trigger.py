"""The plan of the demo of deadlines on the queueing model: where the trigger falls, whenever brokers happen to report.

Heads of frames are left out of sizes here, and so is the bandwidth that the demo gives for them.
"""

from __future__ import annotations

import pytest

from plimsoll.core.policies.model.topic_requirements import TopicRequirements
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.session import Session
from plimsoll.core.spec.brokers import head_name
from plimsoll.demo import crisis_tables as tables
from plimsoll.demo import deadline_demo as demo
from plimsoll.demo.analysis.deadline_claims import OWN, TRIGGER_TOLERANCE
from plimsoll.demo.crisis_workload import plan_crisis, required_seconds
from plimsoll.demo.workload import PlannedPublisher
from plimsoll.mediator.fleet_view import VIEWS_OF_A_REPORT
from plimsoll.simulator.queueing.fleet import LinkDelays, QueueingFleet
from plimsoll.simulator.queueing.mediator import MediatorPauses
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber

BURST = demo.DEADLINE_SCENARIO.step_seconds
PAUSES = MediatorPauses(0.1, 0.1, 1.0 / VIEWS_OF_A_REPORT)
"""Rounds and views of a mediator that is a process, in seconds of the fleet's clock."""


def publisher(one: PlannedPublisher) -> TrafficPublisher:
    rate, head = 1.0 / one.interval_seconds, head_name(tables.CLUSTER)
    more = (RateStep(one.faster_at, one.factor * rate),) if one.faster_at < demo.DEADLINE_SCENARIO.seconds else ()
    return TrafficPublisher(
        one.name, head, (one.quote(0).attributes(),), (RateStep(0.0, rate), *more), one.first_at, one.payload_bytes
    )


def wanted(topic: str) -> str:
    return f"[{tables.ATTRIBUTE},=,'{topic}']"


def plans(seed: int) -> list[Session]:
    """The sessions of the policy until 3 s behind the burst, 6 s of the text."""
    plan = plan_crisis(demo.DEADLINE_SCENARIO)
    subscribers = [
        TrafficSubscriber(
            each.name,
            tables.CLUSTER,
            (f"[{tables.ATTRIBUTE},=,'{each.topics[0]}']",),
            each.joins_at,
            prefer=each.prefer,
        )
        for each in plan.subscribers
    ]
    resources = tables.crisis_resources(demo.policies(demo.SPEED)[OWN], round(100 / demo.SPEED), speed=demo.SPEED)
    latencies = {topic_hash(tables.topic_name(n)): each for n, each in required_seconds(demo.SPEED).items()}
    fleet = QueueingFleet(
        resources, Traffic([publisher(each) for each in plan.publishers], subscribers), seed=seed,
        links=LinkDelays(0.001, 0.001), fair_by_topic=True, mediator_pauses=PAUSES,
        required=TopicRequirements(tables.ATTRIBUTE, latencies),
    )  # fmt: skip
    fleet.run(BURST + 3.0)
    assert fleet.counts.late == {}
    found = [one.session for one in fleet.mediator.objects.values() if one.session is not None]
    return [one for one in found if not one.parent]


@pytest.mark.parametrize("seed", [2, 6])
def test_the_trigger_is_at_its_second_whenever_brokers_report(seed: int):
    """The danger is there at 33.9 s; a report comes within a second, and the mediator sees it within 0.35 s."""
    [session] = plans(seed)
    at = tables.BURST_AT + (session.requested_at - BURST) * demo.SPEED
    assert 33.5 < at < 33.9 + 1.35 + 0.1, "what is left of the bound is for processes that have to wait for a processor"
    assert at < tables.TRIGGER_AT + TRIGGER_TOLERANCE
    assert session.counts()["moved"] == tables.TOPICS[tables.MOVED].subscribers
