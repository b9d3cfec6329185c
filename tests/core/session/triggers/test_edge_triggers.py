"""Triggers become sessions: one for each need, none for a late, repeated or early one; loads become balanced."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.core.session.balanced import POLICY, Balanced, Faults

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import HeadMessage
from plimsoll.core.session.triggers.edge_triggers import ENDED_SESSIONS_AT_MOST, surplus_sessions
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec


@pytest.fixture
def world() -> Balanced:
    world = Balanced(seed=1)
    world.fill("a", 24)
    return world


def ended(world: Balanced) -> list[Any]:
    return [one for one in world.mediator.sessions.values() if one.is_over]


def trigger(world: Balanced, edge: str = "a", seq: int = 0, epoch: int = 7, **changes: Any) -> msg.Trigger:
    items = [msg.ActionItem("b", "input", 0.5)]
    return msg.Trigger(edge, epoch, seq or world.edges["a"].seq, **{"actions": items, "reason": "wanted", **changes})


def hear(world: Balanced, said: msg.Trigger) -> int:
    """How many objects there are more after a trigger."""
    before = len(world.store)
    world.handle(HeadMessage("east-head", said))
    return len(world.store) - before


def quiet(world: Balanced) -> Balanced:
    """Edges send nothing by themselves."""
    for edge in world.edges.values():
        edge.sensing._look_at = float("inf")
    world.run(2.0)
    return world


def test_unequal_load_becomes_even_by_itself(world: Balanced):
    world.run(40.0)
    assert max(world.counts()) - min(world.counts()) <= 5, "a trigger is five subscribers"
    assert {one.phase for one in ended(world)} <= {"Succeeded", "Rejected"}
    names = world.named_like("balance-")
    assert len(names) == len(world.store) >= 2
    world.run(30.0)
    assert world.named_like("balance-") == names, "with unchanged load nothing more is wanted"
    assert world.states() == ("OK", "OK", "OK")
    assert all(edge.sensing.balanced == sorted(set("abc") - {name}) for name, edge in world.edges.items())


@pytest.mark.parametrize("name", ["Random", "LeastLoaded", "Greedy"])
def test_every_policy_makes_load_even(name: str):
    world = Balanced(seed=1, policy=parse_block(PolicySpec, {**POLICY, "type": name}))
    world.fill("a", 24)
    world.run(60.0)
    assert max(world.counts()) - min(world.counts()) <= 5, world.counts()
    plans = [one.plan for one in ended(world) if one.plan is not None]
    assert {plan.policy for plan in plans} == {name}
    assert not [plan.faults for plan in plans if plan.faults]
    settled = len(world.store)
    world.run(20.0)
    assert len(world.store) == settled


def test_a_session_says_what_was_wanted_asked_planned_predicted_and_measured(world: Balanced):
    world.until(lambda: bool(ended(world)))
    [first] = ended(world)
    request = world.mediator._context.requests[first.uid]
    assert request.spec.trigger is not None
    assert request.spec.trigger.broker == "a"
    assert first.kind == "balance"
    assert first.triggered
    assert [offer.answer for offer in first.offers].count("OK") == 1
    plan = first.plan
    assert plan is not None
    assert (plan.policy, plan.metric) == ("Padres", first.offers[0].metric)
    assert sum(one.count for one in plan.moves) == plan.members > 0
    assert all(one.reason for one in plan.moves)
    assert plan.stop
    for forecast in plan.forecasts:
        assert forecast.before is not None
        assert forecast.after is not None
        assert forecast.measured is not None
        assert forecast.measured.input == pytest.approx(forecast.after.input, abs=0.02)
        assert forecast.measured.match_seconds == pytest.approx(forecast.after.match_seconds, abs=0.0005)
        assert forecast.subscribers_measured == forecast.subscribers_after


def test_while_it_runs_both_are_busy_and_then_they_stabilize(world: Balanced):
    world.until(lambda: any(one.batch is not None for one in world.mediator.sessions.values()))
    [session] = world.mediator.sessions.values()
    pair = {*session.sources, *session.targets}
    world.run(0.5)
    assert {name: world.edges[name].sensing.state for name in "abc"} == {
        name: "BUSY" if name in pair else "OK" for name in "abc"
    }
    world.until(lambda: session.uid in {one.uid for one in ended(world)} or "STABILIZING" in world.states())
    assert {world.edges[name].sensing.state for name in pair} == {"STABILIZING"}


def test_one_session_of_one_edge_at_a_time(world: Balanced):
    quiet(world)
    assert hear(world, trigger(world)) == 1
    world.run(0.2)
    assert hear(world, trigger(world, seq=world.edges["a"].seq + 1)) == 0
    assert hear(world, trigger(world, seq=world.edges["a"].seq + 2)) == 0


def test_late_repeated_and_foreign_triggers_are_not_heeded(world: Balanced):
    quiet(world)
    world.edges["a"].seq += 50
    world.run(2.0)
    seq = world.edges["a"].seq
    assert hear(world, trigger(world, seq=seq - 40)) == 0, "it is late"
    assert hear(world, trigger(world, epoch=6)) == 0, "that life is over"
    assert hear(world, trigger(world, edge="v")) == 0, "that cluster has no policy"
    assert hear(world, trigger(world, edge="unknown")) == 0
    assert hear(world, trigger(world, actions=[])) == 0
    assert hear(world, trigger(world, seq=seq)) == 1
    uid = next(iter(world.store))
    world.delete(uid)
    world.run(5.0)
    assert hear(world, trigger(world, seq=seq)) == 0, "it was heard before"


@pytest.mark.parametrize("difference", [float("nan"), float("inf"), -1.0, 1e300])
def test_what_makes_no_sense_in_a_trigger_is_left_out(world: Balanced, difference: float):
    quiet(world)
    items = [msg.ActionItem(target, "match", difference) for target in ("unknown", "v", "a", "x" * 253)]
    assert hear(world, trigger(world, actions=items)) == 0
    items.append(msg.ActionItem("c", "match", difference, ["cpu", "cpu"]))
    assert hear(world, trigger(world, seq=world.edges["a"].seq + 1, actions=items, reason="x" * 60_000)) == 1
    [stored] = world.store.values()
    assert [each.name for each in stored.request.spec.candidates] == ["c"]
    assert stored.request.spec.trigger is not None
    assert len(stored.request.spec.trigger.reason) == 500


def test_a_name_is_created_once_even_if_the_mediator_restarts(world: Balanced):
    quiet(world)
    assert hear(world, trigger(world)) == 1
    world.start()
    assert hear(world, trigger(world)) == 0
    assert len(world.store) == 1


def test_after_sessions_that_moved_no_subscriber_the_next_one_waits_longer_each_time(world: Balanced):
    quiet(world)
    world.down = {"b", "c"}
    world.run(2.0)
    begun: list[float] = []
    while len(begun) < 4:
        before = len(world.store)
        world.run(0.1)
        hear(world, trigger(world, seq=world.edges["a"].seq))
        if len(world.store) > before:
            begun.append(world.now)
    pauses = [after - before for before, after in pairwise(begun)]
    assert all(one.phase == "Rejected" for one in ended(world))
    first = 1.0  # the interval of the policy here
    assert pauses == sorted(pauses)
    assert pauses[0] >= first
    assert pauses[2] >= 4 * first


def test_an_overloaded_edge_does_not_wait_until_it_has_stabilized(world: Balanced):
    world.until(lambda: "STABILIZING" in world.states())
    stabilizing = next(one for one in world.mediator.sessions.values() if one.phase == "Stabilizing")
    source = stabilizing.sources[0]
    world.rate = 6.0  # 20 x 6 a second, 12 ms each: more than there is
    world.until(lambda: any(one.phase == "Succeeded" for one in ended(world)), 3.0)
    assert world.states()[0] != "OK"
    assert any(name.startswith(f"balance-{source}-") for name in world.named_like("balance-"))


def test_ended_sessions_that_edges_wanted_are_kept_up_to_a_number(world: Balanced):
    world.until(lambda: bool(ended(world)))
    quiet(world)
    [first] = ended(world)[:1]
    context = world.mediator._context
    for number in range(ENDED_SESSIONS_AT_MOST + 3):
        uid = f"old-{number:03}"
        context.table.put(type(first)(**{**{f: getattr(first, f) for f in first.__struct_fields__}, "uid": uid,
                                     "name": uid, "ended_at": float(number)}), saved_at=world.now)  # fmt: skip
        context.requests[uid] = context.requests[first.uid]
    assert len(list(surplus_sessions(context))) == len(ended(world)) - ENDED_SESSIONS_AT_MOST
    assert next(surplus_sessions(context)).name == "old-000"


@pytest.mark.parametrize("seed", range(6))
def test_load_becomes_balanced_despite_lost_repeated_or_late_messages(seed: int):
    faults = Faults(
        loss=0.15, repeat=0.15, delay=1.0, mediator_dies=0.004, head_restarts=0.001, leaves=0.02, heal_at=1_000_050.0
    )
    world = Balanced(seed=seed, faults=faults)
    world.fill("a", 20)
    world.fill("b", 4)
    world.run(110.0)
    assert max(world.counts()) - min(world.counts()) <= 5, (seed, world.counts())
    assert not [one.name for one in world.mediator.sessions.values() if not one.is_over], seed
    settled = len(world.store)
    world.run(15.0)
    assert len(world.store) == settled, (seed, "it goes on moving")
    assert set(world.states()) == {"OK"}, seed


def test_without_a_policy_triggers_and_answers_are_not_heeded(world: Balanced):
    quiet(world)
    world.policy = None  # type: ignore[assignment]  # as a fleet without one
    view = world.view
    world.view = lambda: type(view())(view().heads, view().edges)
    world.run(2.0)
    assert hear(world, trigger(world)) == 0
    world.run(5.0)
    assert not [effect for effect in world.sent if isinstance(effect.message, msg.Reservation)]
