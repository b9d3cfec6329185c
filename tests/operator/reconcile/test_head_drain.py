"""A head that is to be replaced is emptied of publishers first, where another head can take them; never for long."""

from __future__ import annotations

from typing import Any

from tests.operator.reconcile.test_rollout import TWO, image, settled
from tests.operator.world import World

from plimsoll.core.spec import head_name
from plimsoll.mediator import evacuation
from plimsoll.operator import names
from plimsoll.operator.reconcile.rollout import cordoned_for_rollout
from plimsoll.operator.reconcile.steps import Evacuate, ReconcileStep, Restart, StepBlocked

HEADS = ("east-head", "west-head")


def heads_only(text: str = TWO) -> World:
    """Two clusters of which both heads have to be replaced, and first their edges."""
    world = settled(text)
    image(world)
    return world


def is_of_head(step: ReconcileStep) -> bool:
    return isinstance(step, Evacuate) and step.session["spec"]["action"] == "MovePublishers"


def until_evacuated(world: World) -> Evacuate:
    """Until the session of a head is made; those of edges end at once."""
    for _ in range(60):
        steps = world.round()
        found = [step for step in steps if isinstance(step, Evacuate) and is_of_head(step)]
        if found:
            return found[0]
        assert not any(isinstance(step, Restart) and step.broker in HEADS for step in steps)
        for name in world.sessions():
            world.end_session(name)
    raise AssertionError("no session was made")


def restarted(world: World, rounds: int = 10) -> Restart | None:
    """The first head that is restarted."""
    for _ in range(rounds):
        found = [step for step in world.round() if isinstance(step, Restart) and step.broker in HEADS]
        if found:
            return found[0]
    return None


def test_its_publishers_are_moved_before_it_is_restarted():
    world = heads_only()
    step = until_evacuated(world)
    session: dict[str, Any] = step.session
    cluster = step.owner["metadata"]["name"]
    assert session["spec"]["action"] == "MovePublishers"
    assert session["spec"]["select"] == {"sharePercent": 100}
    assert session["spec"]["source"] == {"name": cluster}
    assert session["metadata"]["ownerReferences"][0]["name"] == cluster
    assert head_name(cluster) in cordoned_for_rollout(world.desired(), world.observed())
    assert restarted(world) is None, "its session runs"
    waits = [each.reason for each in world.round() if isinstance(each, StepBlocked)]
    assert any(f"waiting for session {session['metadata']['name']} to move its publishers" in why for why in waits)
    world.end_session(session["metadata"]["name"])
    restart = restarted(world)
    assert restart is not None
    assert (restart.broker, restart.event) == (head_name(cluster), "Restarting")
    assert head_name(cluster) not in cordoned_for_rollout(world.desired(), world.observed()), "it has another pod"


def test_heads_are_drained_one_after_the_other():
    world = heads_only()
    told = []
    for _ in range(60):
        steps = world.round()
        told += [
            head_name(step.owner["metadata"]["name"])
            for step in steps
            if isinstance(step, Evacuate) and is_of_head(step)
        ]
        told += [step.broker for step in steps if isinstance(step, Restart) and step.broker in HEADS]
        for name in world.sessions():
            world.end_session(name)
    assert sorted(told) == sorted([*HEADS, *HEADS])
    assert told[0] == told[1], "the first is replaced before the second is emptied"


def test_a_session_that_takes_too_long_is_not_waited_for():
    world = heads_only()
    until_evacuated(world)
    assert restarted(world) is None
    world.now += evacuation.LONGEST_HEAD_SECONDS
    restart = restarted(world)
    assert restart is not None
    assert restart.event == "DrainTimeout"
    assert "takes too long, so its publishers stay" in restart.reason


def test_a_session_that_ends_badly_does_not_hold_the_head():
    world = heads_only()
    name = until_evacuated(world).session["metadata"]["name"]
    world.end_session(name, "Failed")
    world.objects["LoadBalancingSession", name]["status"]["message"] = "3 publishers remain: a, b, c"
    restart = restarted(world)
    assert restart is not None
    assert restart.event == "DrainTimeout"
    assert restart.reason.endswith("has ended Failed: 3 publishers remain: a, b, c")


def test_the_only_head_says_why_its_publishers_stay():
    world = settled()
    image(world)
    for _ in range(60):
        for name in world.sessions():
            world.end_session(name)
        heads = [step for step in world.round() if isinstance(step, Restart) and step.broker == "east-head"]
        if heads:
            break
    assert heads[0].event == "NoOtherHead"
    assert "it is the only head, so its publishers stay" in heads[0].reason


def test_without_another_ready_head_nothing_is_tried():
    world = heads_only()
    cluster = until_evacuated(world).owner["metadata"]["name"]
    for name in world.of("LoadBalancingSession"):
        world.delete(("LoadBalancingSession", name))
    other = next(name for name in HEADS if name != head_name(cluster))
    world.set_pod(other, ready=False)
    found = [step for _ in range(5) for step in world.look()]
    assert not any(is_of_head(step) for step in found)
    waits = [step.reason for step in found if isinstance(step, StepBlocked)]
    assert any("another head is starting" in why for why in waits), "one that starts is waited for"


def test_a_head_that_does_not_serve_is_restarted_at_once():
    world = heads_only()
    world.set_pod("east-head", ready=False, waiting="ImagePullBackOff")
    restart = restarted(world, 3)
    assert restart is not None
    assert (restart.broker, restart.event) == ("east-head", "Restarting")


def test_a_change_that_is_taken_back_leaves_the_head_and_its_cordon_ends():
    world = heads_only()
    step = until_evacuated(world)
    head = head_name(step.owner["metadata"]["name"])
    before = world.objects["Pod", f"{head}-0"]["metadata"]["annotations"][names.RESTART_HASH]
    pod_image = world.objects["Pod", f"{head}-0"]["spec"]["containers"][0]["image"]
    image(world, pod_image)
    world.end_session(step.session["metadata"]["name"])
    for _ in range(60):
        for name in world.sessions():
            world.end_session(name)
        if not world.round():
            break
    assert head not in cordoned_for_rollout(world.desired(), world.observed())
    assert world.objects["Pod", f"{head}-0"]["metadata"]["annotations"][names.RESTART_HASH] == before
