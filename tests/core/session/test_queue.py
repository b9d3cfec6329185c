"""A thousand sessions at once: the order of the queue, the work of an event, and the writes of a second."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.session.model import spec_of

from plimsoll.core.session import (
    EdgeView,
    Effect,
    EngineSettings,
    Event,
    FleetObserved,
    FleetView,
    HeadView,
    MediatorEngine,
    SaveSession,
    SessionRequest,
    SessionUpserted,
    Tick,
)
from plimsoll.core.session.queue_order import ORIGINS, Origin, turn

TURNS = st.tuples(st.sampled_from(ORIGINS), st.sampled_from([0.0, 1.0, 2.5]), st.text(min_size=1, max_size=3))
MANY = 1000


@given(TURNS, TURNS)
def test_no_two_sessions_have_the_same_turn(one: tuple[Origin, float, str], other: tuple[Origin, float, str]):
    assert (turn(*one) == turn(*other)) == (one == other)
    assert (turn(*one) < turn(*other)) + (turn(*other) < turn(*one)) == (one != other)


def test_the_origin_counts_before_the_time_and_the_time_before_the_uid():
    wanted: list[tuple[Origin, float, str]] = [
        ("evacuation", 9.0, "z"), ("user", 1.0, "z"), ("user", 5.0, "a"), ("user", 5.0, "b"), ("trigger", 0.0, "a"),
    ]  # fmt: skip
    assert sorted(set(wanted), key=lambda each: turn(*each)) == wanted


class Crowd:
    """An engine in virtual time whose queue is full, with the steps of each event and the writes of each second."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.engine = MediatorEngine(1, settings=EngineSettings())
        self.steps: list[int] = []
        self.writes: dict[int, int] = {}
        names = [f"e{number}" for number in range(8)]
        heads = {"h": HeadView("h", "east", 1)}
        self.view = FleetView(heads, {name: EdgeView(name, "east", "h") for name in names})
        taken = 0
        step = self.engine._next_step

        def counted(request, session):
            nonlocal taken
            taken += 1
            return step(request, session)

        self.engine._next_step = counted
        self._taken = lambda: taken

    def handle(self, event: Event) -> list[Effect]:
        before = self._taken()
        effects = self.engine.handle(event, self.now)
        self.steps.append(self._taken() - before)
        saves = sum(isinstance(each, SaveSession) for each in effects)
        self.writes[int(self.now)] = self.writes.get(int(self.now), 0) + saves
        return effects

    def ask(self, uid: str, source: str, *, evacuates: bool = False, **fields: object) -> None:
        action = {"action": "Drain"} if evacuates else {"select": {"count": 1}, "target": {"name": "e1"}}
        spec = spec_of(**{"scope": "Local", "mode": "Execute", "source": {"name": source}, **action, **fields})
        self.spec = spec
        self.handle(SessionUpserted(SessionRequest(uid, uid, 1, spec, evacuates=evacuates)))

    def run(self, seconds: float) -> None:
        for number in range(int(seconds * 10)):
            self.now += 0.1
            self.handle(FleetObserved(self.view) if number % 10 == 0 else Tick())


@pytest.fixture
def crowd() -> Crowd:
    """1,000 sessions by triggers, of which one runs; then an evacuation and one by a user."""
    found = Crowd()
    found.handle(FleetObserved(found.view))
    for number in range(MANY):
        found.ask(f"crowd-{number:04}", "e0", trigger={"broker": "e0", "reason": "OverloadedOutput"})
    found.writes.clear()
    return found


@pytest.mark.sweep
def test_an_evacuation_begins_at_once_and_a_users_session_is_the_next(crowd: Crowd):
    crowd.ask("user", "e0")
    crowd.ask("evacuation", "e7", evacuates=True)
    assert crowd.engine.sessions["evacuation"].phase != "Requested"
    assert crowd.engine.sessions["user"].message.endswith(f"place 1 of {MANY} in the queue")


@pytest.mark.sweep
def test_an_event_takes_bounded_work_and_a_second_bounded_writes(crowd: Crowd):
    settings = crowd.engine.settings
    crowd.run(20.0)
    assert max(crowd.steps) <= 2 * 2 * (2 * settings.queue_looks + settings.max_sessions + 1)
    assert max(crowd.writes.values()) <= settings.queue_saves + 3 * settings.max_sessions


@pytest.mark.sweep
def test_every_session_that_waits_says_its_place(crowd: Crowd):
    crowd.run(5.0)
    waiting = [one for one in crowd.engine.sessions.values() if one.phase == "Requested"]
    assert len(waiting) > MANY / 2
    assert all(" in the queue" in one.message and one.reason == "Queued" for one in waiting)


def test_the_end_of_a_wait_says_what_it_waited_for(crowd: Crowd):
    crowd.now += crowd.engine.settings.seconds(crowd.spec.limits.queue_for)
    crowd.run(3.0)
    ended = [one for one in crowd.engine.sessions.values() if one.phase == "Rejected"]
    late = [one for one in ended if one.reason == "QueueTimeout"]
    assert late
    assert all("waits for" in one.message and "place " in one.message for one in late)
    assert not [one for one in ended if one.reason == "NoView"]


@pytest.mark.sweep
def test_a_mediator_that_is_late_ends_no_session(crowd: Crowd):
    [running] = [one for one in crowd.engine.sessions.values() if one.phase != "Requested"]
    crowd.now += 100.0
    crowd.handle(Tick())
    crowd.handle(FleetObserved(crowd.view))
    assert not crowd.engine.sessions[running.uid].is_over


def test_what_can_never_begin_is_refused_before_the_queue_and_not_by_its_end():
    crowd = Crowd()
    crowd.handle(FleetObserved(crowd.view))
    for number in range(100):
        crowd.ask(f"s{number:03}", "e0", target={"name": "e1" if number % 5 else "absent"})
    crowd.run(45)
    reasons = {uid: session.reason for uid, session in crowd.engine.sessions.items()}
    missing = {uid for uid in reasons if int(uid[1:]) % 5 == 0}
    assert {reasons[uid] for uid in missing} == {"NotFound"}
    assert "NotFound" not in {reason for uid, reason in reasons.items() if uid not in missing}
    assert "Queued" in reasons.values()
