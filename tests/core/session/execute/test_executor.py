"""Batches of a session: how many, how, until when, and in which phase the session ends."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.session.model import STEP, Faults, World

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import EngineSettings, Session, Timings


def world_of(count: int, **more: Any) -> World:
    world = World(seed=2, **more)
    world.fill("a", count)
    return world


def ask(world: World, count: int, **fields: Any) -> str:
    return world.ask("s", **{"source": "a", "target": "b", "select": {"count": count}, **fields})


def ended(world: World, uid: str, seconds: float = 300.0) -> Session:
    world.until_over(uid, seconds=seconds)
    return world.session(uid)


def plans(world: World) -> list[msg.HandoverPlan]:
    """The plans of all batches, in order."""
    found = {send.message.session: send.message.plan for send in world.sent
             if isinstance(send.message, msg.Command) and send.message.plan is not None}  # fmt: skip
    return list(found.values())


def test_no_more_are_under_way_than_is_said():
    world = world_of(23)
    session = ended(world, ask(world, 23, limits={"maxInFlight": 7}))
    assert [len(plan.members) for plan in plans(world)] == [7, 7, 7, 2]
    assert [name for plan in plans(world) for name in plan.members] == sorted(world.serves["b"])
    assert (session.phase, session.reason, session.counts()["moved"]) == ("Succeeded", "Moved", 23)
    for one, other in zip(session.batches, session.batches[1:], strict=False):
        assert one.ended_at is not None
        assert one.ended_at <= other.begun_at


def test_long_names_make_small_batches():
    world = World()
    names = [f"{number:03}{'x' * 250}" for number in range(2000)]
    world.serves["a"] |= set(names)
    world.page = 1000
    ended(world, ask(world, 2000, limits={"maxInFlight": 2000}))
    sizes = [sum(len(name) + 16 for name in plan.members) for plan in plans(world)]
    assert len(sizes) == 3
    assert 250 * 1024 < sizes[0] <= 256 * 1024


def test_no_more_move_than_is_said():
    world = world_of(10)
    session = ended(world, ask(world, 8, limits={"maxMoves": 3}))
    assert session.counts()["moved"] == 3
    assert session.plan is not None
    assert session.plan.rejected == {"OverLimit": ["a003", "a004", "a005", "a006", "a007"]}


def test_members_whose_clients_have_gone_are_told():
    world = world_of(60, faults=Faults(leaves=0.2))
    session = ended(world, ask(world, 60))
    counts = session.counts()
    assert (session.phase, session.reason) == ("Succeeded", "Partial")
    assert counts["away"] > 0
    assert sum(counts.values()) == 60
    assert session.message == ", ".join(f"{number} {state}" for state, number in counts.items() if number)


def test_who_does_not_get_everything_in_time_is_detached():
    world = world_of(5, faults=Faults(speed=0.9), settings=EngineSettings(timings=Timings(drain=1.0)))
    uid = ask(world, 5)
    world.until(lambda: world.heads["east-head"].handovers and "cut" in [
        one.state for one in world.heads["east-head"].handovers.values()])  # fmt: skip
    world.faults = Faults(speed=0.0)
    session = ended(world, uid)
    assert session.counts()["detached"] > 0
    assert session.phase in ("Succeeded", "Failed")


def test_if_no_subscriber_could_be_moved_it_is_rolled_back():
    world = world_of(5, faults=Faults(speed=0.0))
    session = ended(world, ask(world, 5))
    assert (session.phase, session.reason) == ("RolledBack", "NobodyMoved")
    assert session.counts()["stayed"] == 5


def test_a_head_that_refuses_ends_it():
    world = world_of(20, refuses=True)
    session = ended(world, ask(world, 20, limits={"maxInFlight": 5}))
    assert (session.phase, session.reason) == ("RolledBack", "Refused")
    assert session.message == "full: too many sessions; 5 unknown, 15 not begun"
    assert len(plans(world)) == 1


# ---------------------------------------------------------------- stop, deadline, and what fails on the way


def test_stopped_before_the_first_cut_it_is_rolled_back():
    world = world_of(9, faults=Faults(speed=0.02))
    uid = ask(world, 9)
    world.until(lambda: world.mediator.sessions[uid].phase == "Preparing")
    world.change(uid, stop=True)
    session = ended(world, uid)
    assert (session.phase, session.reason) == ("RolledBack", "Stopped")
    assert len(world.serves["a"]) == 9


def test_stopped_behind_a_cut_it_begins_no_further_batch():
    world = world_of(20, faults=Faults(speed=0.3))
    uid = ask(world, 20, limits={"maxInFlight": 5})
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    world.change(uid, stop=True)
    session = ended(world, uid)
    assert (session.phase, session.reason) == ("Failed", "Stopped")
    assert session.counts()["moved"] == len(world.serves["b"]) > 0
    assert len(session.batches) == 1


def test_stopped_when_all_is_done_it_has_succeeded():
    world = world_of(4)
    uid = ask(world, 4)
    world.until(lambda: world.mediator.sessions[uid].phase == "Stabilizing")
    world.change(uid, stop=True)
    assert ended(world, uid).phase == "Succeeded"


@pytest.mark.parametrize("deadline", ["1s", "3s", "10s", "20s"])
@pytest.mark.parametrize("speed", [0.0, 0.03, 0.3])
def test_it_ends_by_its_deadline(deadline: str, speed: float):
    world = world_of(60, faults=Faults(speed=speed))
    session = ended(world, ask(world, 60, deadline=deadline, limits={"maxInFlight": 6}))
    assert session.ended_at is not None
    assert session.started_at is not None
    assert session.ended_at - session.started_at <= float(deadline[:-1]) + STEP
    assert not world.heads["east-head"].is_starting
    world.run(30)
    assert all(one.state in ("done", "aborted") for one in world.heads["east-head"].handovers.values())


def test_the_time_of_a_batch_is_cut_to_what_is_left():
    world = world_of(5)
    uid = ask(world, 5, deadline="20s")
    session = ended(world, uid)
    [plan] = plans(world)
    left = session.deadline_at - session.batches[0].begun_at
    assert plan.prepare_seconds + plan.drain_seconds < left
    assert plan.prepare_seconds == pytest.approx(0.3 * (left - 4.0))


def test_a_session_that_cannot_know_by_its_deadline_says_unknown_and_keeps_its_brokers():
    world = world_of(5, faults=Faults(speed=0.3))
    uid = ask(world, 5, deadline="10s")
    world.until(lambda: world.mediator.sessions[uid].phase == "Cutting")
    world.faults = Faults(loss=1.0, speed=0.3)
    session = ended(world, uid)
    assert (session.phase, session.reason) == ("Failed", "DeadlineExceeded")
    assert session.counts()["unknown"] == 5
    assert session.holds_until is None or session.holds_until <= world.now + 45
    world.faults = Faults()
    other = world.ask("other", source="a", target="b", select={"count": 1})
    world.run(1)
    if session.holds_until is not None and world.now < session.holds_until:
        assert world.mediator.sessions[other].reason == "Queued"
    world.until_over(other)


def test_a_target_that_goes_ends_it_when_it_does_not_come_back():
    world = world_of(30, faults=Faults(speed=0.3))
    uid = ask(world, 30, limits={"maxInFlight": 5}, deadline="5m")
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    world.down.add("b")
    world.run(5)
    world.down.clear()
    world.run(3)
    assert not world.mediator.sessions[uid].is_over, "it came back"
    world.down.add("b")
    session = ended(world, uid)
    assert (session.phase, session.reason) == ("Failed", "TargetNotReady")
    assert session.counts()["moved"] == len(world.serves["b"])


def test_a_head_that_restarts_again_and_again_ends_it():
    world = world_of(10, faults=Faults(speed=0.0))
    uid = ask(world, 10, deadline="10m")
    for _ in range(4):
        world.until(lambda: world.mediator.sessions[uid].batch is not None)
        world.heads["east-head"].restart()
        world.run(5)
    session = ended(world, uid)
    assert (session.phase, session.reason) == ("RolledBack", "HeadRestarts")


def test_a_head_that_restarts_once_only_costs_time():
    world = world_of(10, faults=Faults(speed=0.2))
    uid = ask(world, 10)
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    world.heads["east-head"].restart()
    session = ended(world, uid)
    assert session.phase == "Succeeded"
    assert session.counts()["moved"] == len(world.serves["b"])
    assert sum(session.counts().values()) == 10


# ---------------------------------------------------------------- by drain or by replay


def busy_source(delay: float, log_seconds: float = 1000.0, **more: Any) -> World:
    world = world_of(4, **more)
    world.reports = {
        "a": {"input_queue_delay_seconds": delay},
        "east-head": {"log_limit_bytes": 1000.0 * log_seconds, "log_bytes_per_second": 1000.0},
    }
    return world


@pytest.mark.parametrize(
    ("delay", "log_seconds", "fields", "replay"),
    [
        (1.9, 1000.0, {}, False),
        (2.1, 1000.0, {}, True),
        (2.1, 10.0, {}, False),
        (60.0, 1000.0, {"handover": "Drain"}, False),
        (0.0, 1000.0, {"handover": "Replay"}, True),
        (60.0, 1000.0, {"target": "v", "scope": "Global"}, False),
    ],
)
def test_by_drain_or_by_replay(delay: float, log_seconds: float, fields: dict[str, Any], replay: bool):
    world = busy_source(delay, log_seconds)
    session = ended(world, ask(world, 4, **fields))
    assert [plan.replay for plan in plans(world)] == [replay]
    assert session.plan is not None
    assert session.plan.handover == ("replay" if replay else "drain")
    assert session.plan.drain_seconds == pytest.approx(delay)


def test_each_batch_goes_by_what_is_reported_then():
    world = busy_source(10.0)
    uid = ask(world, 4, limits={"maxInFlight": 2})
    world.until(lambda: world.mediator.sessions[uid].batch is not None)
    world.reports["a"] = {"input_queue_delay_seconds": 0.0}
    world.run(1.2)
    ended(world, uid)
    assert [plan.replay for plan in plans(world)] in ([True, False], [True, True])
    assert plans(world)[0].replay


def test_a_replay_that_the_log_does_not_allow_is_not_begun():
    world = busy_source(10.0, log_seconds=20.0)
    session = ended(world, ask(world, 4, handover="Replay"))
    assert (session.phase, session.reason) == ("Rejected", "LogTooShort")
    assert "the log of east-head lasts 20.0 s, replay wants 44.0 s" in session.message


# ---------------------------------------------------------------- attempts


def test_an_attempt_that_failed_is_tried_again_and_goes_into_the_history():
    world = world_of(10, refuses=True)
    uid = ask(world, 6, retries=2)
    world.until(lambda: world.mediator.sessions[uid].attempt == 2)
    session = world.session(uid)
    assert (session.phase, session.reason, session.is_over) == ("Requested", "Retrying", False)
    [first] = session.history
    assert (first.number, first.phase, first.reason, first.planned) == (1, "RolledBack", "Refused", 6)
    world.refuses = False
    session = ended(world, uid)
    assert (session.phase, session.attempt, session.counts()["moved"]) == ("Succeeded", 2, 6)
    assert session.started_at is not None
    assert session.started_at >= first.ended_at + 5.0


def test_another_attempt_moves_only_what_is_left():
    world = world_of(40, faults=Faults(speed=0.5))
    uid = ask(world, 20, retries=1, limits={"maxInFlight": 5}, deadline="1m")
    world.until(lambda: world.mediator.sessions[uid].counts()["moved"] >= 5)
    world.refuses = True
    world.until(lambda: world.mediator.sessions[uid].attempt == 2)
    moved = len(world.serves["b"])
    assert 5 <= moved < 20
    assert world.session(uid).history[0].moved == sorted(world.serves["b"])
    world.refuses = False
    session = ended(world, uid)
    assert session.counts()["moved"] == 20 - moved
    assert len(world.serves["b"]) == 20


def test_attempts_are_limited_and_their_pauses_grow():
    world = world_of(3, refuses=True)
    uid = ask(world, 3, retries=3)
    session = ended(world, uid, seconds=100)
    assert session.attempt == 4
    assert [one.reason for one in session.history] == ["Refused"] * 3
    starts = [one.started_at for one in session.history] + [session.started_at]
    pauses = [later - one.ended_at for one, later in zip(session.history, starts[1:], strict=True)]  # type: ignore[operator]  # all but the last have ended
    assert pauses == [pytest.approx(wanted, abs=0.3) for wanted in (5, 10, 20)]


def test_more_attempts_may_be_allowed_afterwards():
    world = world_of(3, refuses=True)
    uid = ask(world, 3)
    ended(world, uid)
    world.refuses = False
    world.change(uid, retries=1)
    session = ended(world, uid)
    assert (session.phase, session.attempt) == ("Succeeded", 2)


def test_what_was_stopped_is_not_tried_again():
    world = world_of(9, faults=Faults(speed=0.02))
    uid = ask(world, 9, retries=5)
    world.until(lambda: world.mediator.sessions[uid].phase == "Preparing")
    world.change(uid, stop=True)
    assert ended(world, uid).attempt == 1


def test_one_time_factor_scales_it_all():
    took = []
    for factor in (1.0, 10.0):
        world = world_of(3, faults=Faults(speed=0.0), settings=EngineSettings(time_factor=factor))
        session = ended(world, ask(world, 3, deadline="30s"), seconds=500)
        assert session.started_at is not None
        took.append(world.now - session.started_at)
        assert session.deadline_at - session.started_at == pytest.approx(30 * factor)
        assert plans(world)[0].prepare_seconds == pytest.approx(0.3 * 25 * factor, rel=0.05)
    assert took[1] == pytest.approx(10 * took[0], rel=0.1)


def test_loads_are_measured_once_they_have_settled():
    world = world_of(10)
    world.reports = {"a": {"output_utilization": 0.8}, "b": {"output_utilization": 0.1}}
    uid = ask(world, 5)
    world.until(lambda: world.mediator.sessions[uid].phase == "Stabilizing")
    world.reports = {"a": {"output_utilization": 0.45}, "b": {"output_utilization": 0.5}}
    session = ended(world, uid)
    assert session.plan is not None
    seen = {one.edge: one for one in session.plan.forecasts}
    loads = [(one.utilization_before, one.utilization_after, one.utilization_measured) for one in seen.values()]
    assert loads == [(0.8, 0.4, 0.45), (0.1, 0.5, 0.5)]
    assert [(one.subscribers_after, one.subscribers_measured) for one in seen.values()] == [(5, 5), (5, 5)]
    assert session.spent["Stabilizing"] >= 3.0
