"""Plans for an overloaded head: who is considered, what deadlines are known of their topics, and what is refused."""

from __future__ import annotations

from typing import Any

from tests.core.session.triggers.test_head_overload import OVERLOADED, OverloadWorld

from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad
from plimsoll.core.policies.model.topic_load import TopicLoad, topic_report
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.session import EdgeView, FleetView, Session
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import EngineSettings
from plimsoll.core.session.request import head_relief_plan
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec


def planned(world: OverloadWorld, **fields: Any) -> Session:
    world.ask("user", mode="DryRun", **fields)
    return world.until_over("user")


def stays(session: Session) -> dict[str, tuple[str, str]]:
    assert session.plan is not None
    return {one.what: (one.kind, one.reason) for one in session.plan.stays}


def test_a_publisher_without_traffic_is_not_considered_and_it_says_so():
    world = OverloadWorld({**OVERLOADED, "p9": 0.0})
    assert stays(planned(world))["p9"] == ("Unreported", "stays at a, which reports no traffic of it")


def test_publishers_that_are_excluded_stay():
    world = OverloadWorld(OVERLOADED)
    session = planned(world, exclusions={"subscribers": ["p1"]})
    assert stays(session)["p1"] == ("Staying", "stays at a: p1: is excluded by the session")
    assert session.plan is not None
    assert [pair.members for pair in session.plan.pairs] == [["p2"]]


def test_those_that_a_session_has_just_moved_stay():
    world = OverloadWorld(OVERLOADED)
    world.ask("back", select={"names": ["p1"]}, target={"name": "west"})
    world.until_over("back")
    world.ask("again", source={"name": "west"}, select={"names": ["p1"]}, target={"name": "east"})
    world.until_over("again")
    session = planned(world, limits={"moveInterval": "1h"})
    assert stays(session)["p1"][0] == "Staying"


def test_no_more_move_than_the_limit_says():
    world = OverloadWorld({"p1": 5.0, "p2": 5.0, "p3": 5.0, "p4": 5.0}, uplinks={"a": 10_000.0})
    session = planned(world, limits={"maxMoves": 1})
    assert session.plan is not None
    assert session.plan.members == 1
    assert session.plan.stop == "Limit: 1 may move, which is the limit, and the next step does not fit"
    assert len(stays(session)) == 3


def test_a_head_that_is_not_overloaded_keeps_all():
    world = OverloadWorld({"p1": 1.0})
    session = planned(world)
    assert (session.phase, session.reason) == ("Succeeded", "NothingToMove")
    assert session.message == "NotOverloaded: a is not overloaded any more"


def test_messages_may_wait_as_long_as_at_the_edge_where_they_may_wait_least():
    context = EngineContext(3, EngineSettings())
    own = {
        "topicAttribute": "topic", "topics": [{"name": "buoys", "latency": "2s"}], "defaultLatency": "30s",
    }  # fmt: skip
    policy = parse_block(PolicySpec, {"type": "DelaySensitive", "delaySensitive": own})
    buoys, other = topic_hash("buoys"), topic_hash("other")
    served = TopicLoad(buoys, "buoys", required_seconds=1.0, transmission_seconds=0.25, broker_seconds=0.25)
    report = {"broker": "e", **topic_report([served])}
    context.fleet = FleetView({}, {"e": EdgeView("e", "west", "w", report=report)}, {"east": policy})
    rows = [PublisherTopicLoad("p", buoys), PublisherTopicLoad("p", other), PublisherTopicLoad("q", None)]
    assert head_relief_plan.allowed_seconds(context, "east", rows) == {buoys: 0.5, other: 30.0}
    context.fleet = FleetView({}, {}, {"east": policy})
    assert head_relief_plan.allowed_seconds(context, "east", rows) == {buoys: 2.0, other: 30.0}
