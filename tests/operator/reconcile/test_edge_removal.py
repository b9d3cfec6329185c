"""How an edge leaves: its pod outlives its EdgeBroker until it is emptied, and its session stays."""

from tests.operator.world import World

from plimsoll.operator import names
from plimsoll.operator.reconcile import edge_removal
from plimsoll.operator.reconcile.steps import Delete, Evacuate, Patch, StepBlocked, subject_of


def leaving_edge() -> World:
    world = World()
    world.settle()
    world.delete(("EdgeBroker", "edge-1"))
    return world


def steps(world: World) -> list[object]:
    return list(edge_removal.removal_steps(world.desired(), world.observed(), world.moment()))


def test_step_by_step():
    world = leaving_edge()
    assert "edge-1" not in world.of("EdgeBroker"), "nothing holds up a deletion"
    assert [edge["metadata"]["name"] for edge in edge_removal.leaving_edges(world.observed())] == ["edge-1"]
    (asked,) = steps(world)
    assert isinstance(asked, Evacuate)
    world.carry_out([asked])
    assert [type(step) for step in steps(world)] == [StepBlocked]
    world.end_session(world.sessions()[0])
    (ended,) = steps(world)
    assert isinstance(ended, Delete)
    assert subject_of(ended) == ("StatefulSet", "edge-1")
    world.carry_out([ended])
    (blocked,) = steps(world)  # its pod lets the last ones go
    assert isinstance(blocked, StepBlocked)
    assert blocked.reason == "waiting for its pod to end"
    world.objects["Pod", "edge-1-0"]["metadata"]["finalizers"] = ["example.com/keeps"]
    (blocked,) = steps(world)
    assert isinstance(blocked, StepBlocked)
    assert "which the finalizers example.com/keeps of others keep" in blocked.reason
    del world.objects["Pod", "edge-1-0"]["metadata"]["finalizers"]
    world.controllers()
    assert steps(world) == []
    assert not list(edge_removal.leaving_edges(world.observed()))
    assert world.of("LoadBalancingSession") == [asked.session["metadata"]["name"]]  # what was done is kept


def test_a_pod_that_does_not_serve_is_not_evacuated():
    world = leaving_edge()
    world.set_pod("edge-1", ready=False, waiting="CrashLoopBackOff")
    assert [type(step) for step in steps(world)] == [Delete]


def test_an_edge_that_is_not_ready_for_a_moment_keeps_its_subscribers():
    world = leaving_edge()
    world.set_pod("edge-1", ready=False)
    assert [type(step) for step in steps(world)] == [StepBlocked]
    world.set_pod("edge-1", ready=True)
    world.carry_out(edge_removal.removal_steps(world.desired(), world.observed(), world.moment()))
    world.set_pod("edge-1", ready=False)
    assert [type(step) for step in steps(world)] == [StepBlocked], "its session goes on"
    world.now += 31
    assert [type(step) for step in steps(world)] == [Delete], "long not ready, while its head is"


def test_an_edge_is_not_held_up_for_ever_by_a_head_that_is_away():
    world = leaving_edge()
    world.set_pod("edge-1", ready=False)
    world.set_pod("east-head", ready=False)
    world.now += 100
    assert [type(step) for step in steps(world)] == [StepBlocked]
    world.now += 100
    assert [type(step) for step in steps(world)] == [Delete]


def test_a_finalizer_of_an_earlier_version_is_removed_and_others_are_left():
    world = World()
    world.settle()
    world.objects["EdgeBroker", "edge-1"]["metadata"]["finalizers"] = ["others/own", names.FINALIZER]
    (step,) = world.look()
    assert isinstance(step, Patch)
    assert step.patch["metadata"]["finalizers"] == ["others/own"]
    world.objects["EdgeBroker", "edge-1"]["metadata"]["deletionTimestamp"] = world.time
    released, asked = steps(world)
    assert isinstance(released, Patch)
    assert isinstance(asked, Evacuate)


def test_an_edge_that_is_wanted_again_is_made_anew_when_it_has_been_emptied():
    world = leaving_edge()
    world.settle()
    assert world.of("EdgeBroker") == ["edge-0", "edge-1", "edge-2"]
    assert world.of("Pod") == ["east-head-0", "edge-0-0", "edge-1-0", "edge-2-0"]
