"""The mediator in a world that loses, repeats, delays, restarts and dies: sessions end as they must."""

from __future__ import annotations

import random

import pytest
from hypothesis import Phase, example, given, note, settings
from hypothesis import strategies as st
from tests.core.session.model import STEP, Faults, World, decode

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import (
    Deposed,
    EngineSettings,
    HeadMessage,
    MediatorEngine,
    SendMessage,
    Session,
    SessionRequest,
    SessionUpserted,
    Tick,
    encode,
)
from plimsoll.core.session.batch import OUTCOMES

HARSH = st.builds(
    Faults,
    loss=st.sampled_from((0.0, 0.1, 0.4)),
    repeat=st.sampled_from((0.0, 0.2)),
    delay=st.sampled_from((0.0, 0.3, 3.0)),
    mediator_dies=st.sampled_from((0.0, 0.02, 0.1)),
    head_restarts=st.sampled_from((0.0, 0.005, 0.03)),
    leaves=st.sampled_from((0.0, 0.1)),
    speed=st.sampled_from((0.05, 0.3, 0.9)),
    heal_at=st.sampled_from((1_000_010.0, 1_000_040.0, float("inf"))),
)


def some_session(world: World, draw: random.Random, name: str) -> str:
    """One of the sessions that users request."""
    source = draw.choice("abw")
    limits = {"maxInFlight": draw.choice((3, 20)), "queueFor": draw.choice(("20s", "5m"))}
    wanted = {"deadline": draw.choice(("5s", "30s", "90s")), "retries": draw.choice((0, 2)), "limits": limits}
    kind = draw.choice(("pair", "pair", "drain", "clusters"))
    if kind == "drain":
        return world.ask(name, source=source, action="Drain", scope=draw.choice(("Local", "Global")), **wanted)
    if kind == "clusters":
        return world.ask(name, scope="Global", source="east", target="west", select={"count": 6}, **wanted)
    select = draw.choice(({"count": 5}, {"sharePercent": 50}))
    target = draw.choice([edge for edge in (None, "b", "c", "v") if edge != source])
    scope = draw.choice(("Local", "Global"))
    return world.ask(
        name, source=source, select=select, scope=scope, **({"target": target} if target else {}), **wanted
    )


def last_outcomes(world: World) -> dict[str, tuple[str, str, str]]:
    """Of each subscriber the outcome that it had last, and the two ends of that batch."""
    last: dict[str, tuple[float, str, str, str]] = {}
    for _, session in world.saves:
        for batch in session.batches:
            if batch.ended_at is None:  # it may end in the step that begins another attempt, and is then not stored
                for name in batch.members:
                    if name in last and last[name][0] <= batch.begun_at:
                        del last[name]
                continue
            for name, state in batch.members.items():
                if state in OUTCOMES and (name not in last or last[name][0] <= batch.ended_at):
                    last[name] = (batch.ended_at, state, batch.source, batch.target)
    return {name: rest for name, (_, *rest) in last.items()}


@settings(deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # not to shrink
@given(seed=st.integers(0, 2**32), faults=HARSH, most=st.sampled_from((1, 3)), page=st.sampled_from((3, 50)))
@example(seed=4171, faults=Faults(loss=0.1, mediator_dies=0.1, speed=0.05), most=1, page=3)  # edges not known yet
def test_every_session_ends_by_its_deadline_and_reports_correctly(seed: int, faults: Faults, most: int, page: int):
    """The world itself checks at every effect: intents are stored first, one session per broker, deadlines."""
    draw = random.Random(seed)
    world = World(seed, faults, EngineSettings(max_sessions=most), page)
    world.fill("a", draw.choice((0, 5, 30)))
    world.fill("b", 10)
    world.fill("w", 6)
    for number in range(draw.randint(1, 4)):
        uid = some_session(world, draw, f"s{number}")
        world.run(draw.random() * 3)
        if draw.random() < 0.2:
            world.change(uid, stop=True)
    world.until(lambda: all(session.is_over for session in world.mediator.sessions.values()), 2000)
    note(str([(s.name, s.phase, s.reason) for s in world.mediator.sessions.values()]))
    for name, (state, source, target) in last_outcomes(world).items():
        if state == "moved":
            assert name in world.serves[target], (name, source, target)
        elif state == "stayed":
            assert name not in world.serves[target], (name, source, target)


def test_a_mediator_may_die_before_every_effect():
    def run(dies_at: int) -> World:
        world = World(seed=4, dies_at=dies_at)
        world.fill("a", 12)
        uid = world.ask("s", source="a", target="b", select={"count": 12}, limits={"maxInFlight": 5})
        world.until_over(uid, seconds=100)
        assert world.session(uid).phase == "Succeeded", dies_at
        assert len(world.serves["b"]) == 12
        return world

    effects = run(0).effects
    assert effects > 20
    for number in range(1, effects + 1):
        assert run(number).epoch == 2


def test_a_drain_goes_on_wherever_its_mediator_dies():
    def run(dies_at: int) -> World:
        world = World(seed=5, dies_at=dies_at)
        world.fill("a", 8)
        uid = world.ask("s", source="a", action="Drain")
        world.until_over(uid, seconds=100)
        assert (world.session(uid).phase, world.session(uid).reason) == ("Succeeded", "Drained"), dies_at
        assert not world.serves["a"]
        names = [one.request.name for one in world.store.values()]
        assert len(names) == len(set(names)) == 3, "a child is made once"
        return world

    for number in range(1, run(0).effects + 1):
        assert run(number).epoch == 2


def test_the_same_events_give_the_same_effects():
    runs = []
    for _ in range(2):
        world = World(seed=9, faults=Faults(loss=0.2, delay=0.5, head_restarts=0.01))
        world.fill("a", 20)
        world.until_over(world.ask("s", source="a", target="b", select={"sharePercent": 60}))
        runs.append((world.saves, world.sent, world.told))
    assert runs[0] == runs[1]


def test_what_is_stored_is_all_that_a_new_mediator_needs():
    world = World(seed=3)
    world.fill("a", 9)
    uid = world.ask("s", source="a", target="b", select={"count": 9}, limits={"maxInFlight": 4})
    world.until(lambda: world.mediator.sessions[uid].phase == "Draining")
    stored = world.session(uid)
    assert decode(encode(stored)) == stored
    world.start()
    assert world.mediator.sessions[uid].batches[0].id == stored.batches[0].id
    world.until_over(uid)
    assert world.session(uid).counts()["moved"] == 9


def test_after_a_restart_it_asks_before_it_commands():
    world = World(seed=3, faults=Faults(speed=0.05))
    world.fill("a", 3)
    uid = world.ask("s", source="a", target="b", select={"count": 3})
    world.until(lambda: world.mediator.sessions[uid].phase == "Preparing")
    before = len(world.sent)
    world.start()
    world.step()
    steps = [send.message.step for send in world.sent[before:] if isinstance(send.message, msg.Command)]
    assert steps[0] == "ask"
    world.until_over(uid)
    assert world.session(uid).phase == "Succeeded"


def test_a_session_that_waits_for_brokers_is_not_rejected_because_no_mediator_ran():
    world = World()
    world.fill("a", 3)
    world.cordoned.add("b")
    uid = world.ask("s", source="a", target="b", select={"count": 3})
    world.until(lambda: world.mediator.sessions[uid].phase == "Negotiating")
    world.now += 2 * world.settings.timings.negotiate
    world.cordoned.discard("b")
    world.start()
    world.until_over(uid)
    assert (world.session(uid).phase, world.session(uid).reason) == ("Succeeded", "Moved")


def test_ids_rise_and_are_never_used_twice():
    world = World(seed=6, faults=Faults(mediator_dies=0.05))
    world.fill("a", 30)
    world.until_over(world.ask("s", source="a", target="b", select={"count": 30}, limits={"maxInFlight": 3}))
    prepared: dict[str, tuple[str, ...]] = {}
    for send in world.sent:
        command = send.message
        if isinstance(command, msg.Command) and command.step == "prepare" and command.plan is not None:
            known = prepared.setdefault(command.session, tuple(command.plan.members))
            assert known == tuple(command.plan.members)
            assert command.session.startswith(f"{command.mediator}.")
    numbers = [tuple(map(int, session.split("."))) for session in prepared]
    assert numbers == sorted(numbers)


def test_a_mediator_whose_epoch_is_not_the_highest_does_not_start():
    world = World()
    world.fill("a", 1)
    uid = world.ask("s", source="a", target="b", select={"count": 1})
    world.until_over(uid)
    for epoch, found in ((1, "was written in epoch 1"), (0, "0 is too low")):
        with pytest.raises(ValueError, match=found):
            MediatorEngine(epoch, [world.session(uid)])


def test_a_deposed_mediator_says_so_once_and_then_nothing():
    world = World(seed=1, faults=Faults(speed=0.05))
    world.fill("a", 5)
    uid = world.ask("s", source="a", target="b", select={"count": 5})
    world.until(lambda: world.mediator.sessions[uid].phase == "Preparing")
    batch = world.mediator.sessions[uid].batches[0]
    told = msg.Outcome(batch.id, 7, batch.head_epoch, "failed", [], "mediator-epoch: 7")
    assert world.mediator.handle(HeadMessage("east-head", told), world.now) == [Deposed(7)]
    assert world.mediator.is_deposed
    for event in (Tick(), HeadMessage("east-head", told), SessionUpserted(world.store[uid].request)):
        assert world.mediator.handle(event, world.now + 100.0) == []


def test_of_two_mediators_the_older_is_silenced_by_the_first_head_that_knows():
    world = World(seed=2, faults=Faults(speed=0.1))
    world.fill("a", 6)
    uid = world.ask("s", source="a", target="b", select={"count": 6})
    world.until(lambda: world.mediator.sessions[uid].phase == "Preparing")
    old = world.mediator
    world.start()
    world.until_over(uid)
    head = world.heads["east-head"]
    sends = [effect for effect in old.handle(Tick(), world.now) if isinstance(effect, SendMessage)]
    answers = [(send.head, said) for send in sends if (said := head.on(send.message)) is not None]
    effects = [effect for name, said in answers for effect in old.handle(HeadMessage(name, said), world.now)]
    assert sends
    assert effects == [Deposed(2)]
    assert world.session(uid).phase == "Succeeded"


def test_progress_is_stored_now_and_then_and_intents_at_once():
    world = World(seed=1, faults=Faults(speed=0.02))
    world.fill("a", 200)
    uid = world.ask("s", source="a", target="b", select={"count": 200}, deadline="2m")
    world.until_over(uid, seconds=300)
    moments = [at for at, session in world.saves if session.uid == uid and session.phase in ("Cutting", "Draining")]
    lasted = moments[-1] - moments[0]
    assert lasted > 5
    assert len(moments) < 2 * lasted + 6


def test_the_clock_may_be_set_back_between_two_lives():
    world = World(seed=1, faults=Faults(speed=0.05))
    world.fill("a", 4)
    uid = world.ask("s", source="a", target="b", select={"count": 4}, deadline="60s")
    world.until(lambda: world.mediator.sessions[uid].phase == "Preparing")
    world.run(5)
    left = world.session(uid).deadline_at - world.now
    world.now -= 3600
    world.checker.slack_seconds += 3600
    world._next_view = 0.0
    world.start()
    session = world.mediator.sessions[uid]
    assert session.phase_at <= world.now
    assert session.deadline_at - world.now <= left + 6
    world._wire.clear()
    world.until_over(uid, seconds=70)


def test_within_a_life_time_never_goes_back():
    world = World()
    uid = world.ask("s", source="a", target="b", select={"count": 1})
    mediator = MediatorEngine(1)
    mediator.handle(SessionUpserted(world.store[uid].request), 500.0)
    mediator.handle(Tick(), 100.0)
    world.change(uid, retries=1)
    later = SessionRequest("later", "later", 1, world.store[uid].request.spec)
    mediator.handle(SessionUpserted(later), 100.0)
    assert mediator.sessions["later"].requested_at == 500.0


def test_a_forced_deletion_ends_all_commands_but_one_abort():
    world = World(seed=1, faults=Faults(speed=0.01))
    world.fill("a", 4)
    uid = world.ask("s", source="a", target="b", select={"count": 4})
    world.until(lambda: world.mediator.sessions[uid].batch is not None)
    before = len(world.sent)
    world.delete(uid)
    world.run(20)
    commands = [send.message for send in world.sent[before:] if isinstance(send.message, msg.Command)]
    assert [command.step for command in commands] == ["abort"]
    assert uid not in world.mediator.sessions
    assert len(world.serves["a"]) == 4


def test_a_deletion_that_waits_is_a_stop_and_then_an_end():
    world = World(seed=1, faults=Faults(speed=0.02))
    world.fill("a", 40)
    uid = world.ask("s", source="a", target="b", select={"count": 40}, limits={"maxInFlight": 4})
    world.until(lambda: world.mediator.sessions[uid].counts()["moved"] > 0)
    old = world.store[uid].request
    world.store[uid].request = SessionRequest(old.name, old.uid, old.generation + 1, old.spec, deleting=True)
    world.handle(SessionUpserted(world.store[uid].request))
    world.until(lambda: "s" in world.forgotten)
    last = [session for _, session in world.saves if session.uid == uid][-1]
    assert (last.phase, last.reason) == ("Failed", "Deleted")
    assert last.counts()["moved"] == len(world.serves["b"])


def test_an_object_is_kept_for_its_time_to_live():
    world = World()
    world.fill("a", 1)
    uid = world.ask("s", source="a", target="b", select={"count": 1}, ttl="30s")
    world.until_over(uid)
    world.run(25)
    assert world.forgotten == []
    world.run(10)
    assert world.forgotten == ["s"]
    assert uid not in world.mediator.sessions


def test_events_about_no_session_change_nothing():
    world = World()
    world.fill("a", 2)
    uid = world.ask("s", source="a", target="b", select={"count": 2})
    world.until_over(uid)
    stray = [
        HeadMessage("east-head", msg.Outcome("1.99", 0, 10, "done", [("z", "moved")])),
        HeadMessage("no-head", msg.Outcome("1.1", 0, 10, "done", [])),
        HeadMessage("east-head", msg.SubscriberPage(12345, "a", 10, ["z"], True)),
    ]
    for event in stray:
        assert world.mediator.handle(event, world.now) == []


def test_thousands_of_sessions_that_have_ended_cost_nothing_at_an_event(monkeypatch: pytest.MonkeyPatch):
    world = World()
    world.fill("a", 1)
    uid = world.ask("s", source="a", target="b", select={"count": 1})
    world.until_over(uid)
    over = world.session(uid)
    world.mediator = MediatorEngine(2, [replace_uid(over, f"u{number}") for number in range(2000)])
    touched = 0
    is_over = Session.is_over.fget  # type: ignore[attr-defined]  # it is a property

    def counted(session: Session) -> bool:
        nonlocal touched
        touched += 1
        return bool(is_over(session))

    world.mediator.handle(Tick(), world.now)
    monkeypatch.setattr(Session, "is_over", property(counted))
    for _ in range(5):
        world.mediator.handle(Tick(), world.now + STEP)
    assert touched == 0


def replace_uid(session: Session, uid: str) -> Session:
    plain = {**encode(session), "uid": uid, "name": uid}
    for batch in plain["batches"]:
        batch["id"] = f"1.{uid[1:]}"
    return decode(plain)


def test_edges_are_cordoned_while_they_are_drained():
    world = World(faults=Faults(speed=0.05))
    world.fill("a", 5)
    uid = world.ask("s", source="a", action="Drain")
    seen = set()
    while not (uid in world.mediator.sessions and world.mediator.sessions[uid].is_over):
        seen.add(
            (world.mediator.sessions[uid].phase in ("Preparing", "Draining", "Stabilizing"), world.mediator.cordoned)
        )
        world.step()
    assert seen == {(False, frozenset()), (True, frozenset({"a"}))}
    assert world.mediator.cordoned == frozenset()
