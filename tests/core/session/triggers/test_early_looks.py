"""Looks before the interval is over: a report that shows a deadline in danger is not kept waiting."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.policies.model.topic_load import TopicLoad, topic_report
from plimsoll.core.policies.registry import rebalancer_of_spec
from plimsoll.core.session import (
    CreateSession,
    EdgeView,
    EngineSettings,
    FleetObserved,
    FleetView,
    MediatorEngine,
    Tick,
)
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.triggers.early_looks import is_overload_reported
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

POLICY: dict[str, Any] = {
    "type": "DelaySensitive",
    "detection": {"stabilizeFor": "4s"},
    "delaySensitive": {"topicAttribute": "topic", "interval": "60s", "topics": [{"name": "fast", "latency": "1100ms"}]},
}


def edge(name: str, depth: int, seq: int, cluster: str = "east") -> EdgeView:
    """100 messages may wait for a topic with 0.8 s, less what a minute of growth and a balancing take."""
    fast = TopicLoad(
        7, "fast", 7, input_rate=200.0, depth=depth, arrival_rate=176.0, delivery_rate=175.0, required_seconds=1.1,
        transmission_seconds=0.3,
    )  # fmt: skip
    report = {
        "broker": name,
        "cluster": cluster,
        "epoch": 1,
        "seq": seq,
        "interval_seconds": 1.0,
        **topic_report([fast]),
    }
    return EdgeView(name, cluster, f"{cluster}-head", report=report)


def view(depth: int, seq: int, policy: dict[str, Any] = POLICY) -> FleetView:
    edges = {"e0": edge("e0", depth, seq), "e1": edge("e1", 0, seq), "w0": edge("w0", 500, 1, "west")}
    return FleetView(edges=edges, policies={"east": parse_block(PolicySpec, policy)})


def found(context: EngineContext, fleet: FleetView) -> bool:
    context.outbox.begin(context.now + 0.1)
    context.observe(fleet)
    policy = rebalancer_of_spec(fleet.policies["east"])
    assert policy is not None
    return is_overload_reported(context, "east", policy)


def test_each_report_is_checked_once():
    context = EngineContext(1, EngineSettings())
    assert not found(context, view(10, 1)), "the other cluster has a danger, and is not asked about"
    assert found(context, view(100, 2))
    assert not found(context, view(100, 2))
    assert found(context, view(100, 3))
    assert not found(context, view(10, 4))


def test_a_view_is_gone_through_once_however_many_events_there_are():
    context, fleet = EngineContext(1, EngineSettings()), view(100, 1)
    assert found(context, fleet)
    context.checked_reports.clear()
    policy = rebalancer_of_spec(fleet.policies["east"])
    assert policy is not None
    assert not is_overload_reported(context, "east", policy)
    assert found(context, fleet), "the next view"


def test_edges_without_a_report_and_other_policies_have_none():
    context = EngineContext(1, EngineSettings())
    assert not found(context, FleetView(edges={"e0": EdgeView("e0", "east", "h")}, policies=view(0, 1).policies))
    assert not found(context, view(100, 1, {"type": "Bad", "bad": {"interval": "60s"}}))


def sessions(engine: MediatorEngine, fleet: FleetView, now: float) -> list[str]:
    effects = [*engine.handle(FleetObserved(fleet), now), *engine.handle(Tick(), now + 0.05)]
    return [effect.spec["trigger"]["reason"] for effect in effects if isinstance(effect, CreateSession)]


@pytest.mark.parametrize(("depth", "is_wanted"), [(100, True), (10, False)])
def test_a_session_begins_with_the_report_and_not_with_the_interval(depth: int, is_wanted: bool):
    engine = MediatorEngine(1)
    assert sessions(engine, view(10, 1), 100.0) == [], "the first look, and the next is due in a minute"
    reasons = sessions(engine, view(depth, 2), 101.0)
    assert [reason.startswith("DelaySensitive: e0: 100 messages of fast") for reason in reasons] == [True] * is_wanted
