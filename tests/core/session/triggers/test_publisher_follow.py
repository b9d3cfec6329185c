"""Policy Pulsar with `publishers: Follow`: when a session begins, for whom, and for whom no other one."""

from __future__ import annotations

from typing import Literal

from tests.core.session.kinds.test_publisher_session import World

from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad
from plimsoll.core.session.triggers import publisher_follow
from plimsoll.core.spec.types.policy import PolicySpec, PulsarParameters

INTERVAL = 10.0


def toward(head: str, *names: str) -> list[PublisherTopicLoad]:
    return [PublisherTopicLoad(name, 7, 5.0, 50.0, 0.0, 5.0, 0.0, 50.0, head) for name in names]


def world_of(publishers: Literal["Stay", "Follow"] = "Follow") -> World:
    world = World("p0", "p1", "p2")
    own = PulsarParameters(topic_attribute="topic", publishers=publishers)
    world.policies = {"east": PolicySpec(type="Pulsar", pulsar=own)}
    world.source.loads = toward("b", "p0", "p2")
    return world


def names(world: World) -> list[str]:
    return [request.name for request in world.requests.values()]


def test_publishers_go_where_their_subscribers_are():
    world = world_of()
    world.run(INTERVAL / 2)
    assert names(world) == [], "one look is not enough"
    world.run(INTERVAL)
    [name] = names(world)
    session = world.until_over(name)
    world.source.loads = []
    world.run(3 * INTERVAL)
    assert names(world) == [name], "those that have gone are not reported any more"
    assert (session.phase, session.reason, session.triggered) == ("Succeeded", "Moved", True)
    assert world.heads["b"].publishers == {"p0", "p2"}
    assert world.source.publishers == {"p1"}
    request = world.requests[name].spec
    assert request.trigger is not None
    assert request.trigger.reason == "all subscribers of 2 publishers are behind west-head"


def test_by_default_they_stay():
    world = world_of("Stay")
    world.run(5 * INTERVAL)
    assert names(world) == []


def test_those_that_are_not_found_twice_stay():
    world = world_of()
    world.run(INTERVAL / 2)
    for number in range(8):
        world.source.loads = toward("b", "p0") if number % 2 else toward("c", "p0")
        world.run(INTERVAL)
    assert names(world) == []


def test_clients_that_do_not_move_are_left_alone_for_a_while():
    world = world_of()
    world.source.stays = {"p0", "p2"}
    world.run(10 * INTERVAL)
    assert len(names(world)) == 1
    world.run((publisher_follow.LEFT_ALONE_INTERVALS + 3) * INTERVAL)
    assert len(names(world)) == 2


def test_not_while_publishers_of_the_head_move_already():
    world = world_of()
    world.source.is_slow = True
    world.ask("user", select={"names": ["p1"]}, target={"name": "north"})
    world.run(3 * INTERVAL)
    assert names(world) == ["user"]
