"""Plans of a policy for a session: subscribers that may not move, amounts, reasons, and what is stored of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.core.session.balanced import Balanced

from plimsoll.core.policies.model.plan import OffloadPlan
from plimsoll.core.policies.padres import Padres
from plimsoll.core.profiling.profile_codec import PIECE_BYTES
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import HeadMessage, Session


@pytest.fixture
def world() -> Balanced:
    world = Balanced(seed=2)
    world.fill("a", 24)
    for edge in world.edges.values():
        edge.sensing._look_at = float("inf")
    world.run(3.0)
    return world


def balance(world: Balanced, name: str = "s", **fields: Any) -> Session:
    parties = {"source": "a"} if "candidates" in fields else {"source": "a", "target": "b"}
    uid = world.ask(name, **{**parties, **fields})
    world.until_over(uid)
    return world.session(uid)


def test_half_of_what_is_alike_moves_and_the_rest_stays_with_a_reason(world: Balanced):
    session = balance(world)
    assert world.counts() == (12, 12, 0)
    assert session.plan is not None
    assert session.plan.stop.startswith("Balanced")
    assert [one.count for one in session.plan.moves] == [12]
    assert session.message == "12 moved"


def test_limits_and_exclusions_are_kept(world: Balanced):
    excluded = [f"a{number:03}" for number in range(20)]
    session = balance(world, exclusions={"subscribers": excluded}, limits={"maxMoves": 3})
    assert session.plan is not None
    assert session.plan.pairs[0].members == ["a020", "a021", "a022"]
    assert session.plan.rejected == {"Excluded": excluded}
    assert session.plan.stop.startswith("Limit")


def test_who_was_moved_just_now_rests(world: Balanced):
    balance(world)
    world.run(5.0)
    session = balance(world, "t", source="b", target="c")
    assert (session.phase, session.reason) == ("Succeeded", "NothingToMove")
    assert session.plan is not None
    assert len(session.plan.rejected["MovedRecently"]) == 12
    assert "12 were moved less than moveInterval ago" in session.message
    world.run(2.0)
    said = [
        effect.message
        for effect in world.sent
        if isinstance(effect.message, msg.Reservation) and effect.message.edge == "b"
    ]
    assert (said[-1].state, said[-1].tried) == ("OK", []), "soon they may move"


def test_who_has_left_since_the_profile_is_not_moved(world: Balanced):
    profile = world.edges["a"].profile
    world.edges["a"].profile = lambda target, targets=(): profile(target)
    stale = profile("b")
    world.edges["a"].profile = lambda target, targets=(): stale
    for name in [f"a{number:03}" for number in range(10)]:
        world.serves["a"].discard(name)
    session = balance(world)
    assert session.plan is not None
    assert len(session.plan.rejected["NotServed"]) == 10
    assert not set(session.plan.pairs[0].members) & set(session.plan.rejected["NotServed"])


def test_where_no_subscriber_can_go_to_the_first_edge_of_the_list_the_next_one_is_asked(world: Balanced):
    """b has as many as a, and c has none: one session goes on to c, instead of a second one."""
    world.fill("b", 24)
    world.run(1.0)
    candidates = [{"name": name, "metric": "Input", "difference": "200m"} for name in "bc"]
    session = balance(world, candidates=candidates)
    assert (session.phase, session.reason, session.targets) == ("Succeeded", "Moved", ["c"])
    assert [(offer.edge, offer.answer, offer.is_futile) for offer in session.offers] == [
        ("b", "OK", True), ("c", "OK", False),
    ]  # fmt: skip
    assert "brings the two closer" in session.offers[0].message or "Balanced" in session.offers[0].message
    assert session.plan is not None
    assert {pair.target for pair in session.plan.pairs} == {"c"}


def test_a_list_that_comes_to_nothing_is_told_as_a_whole(world: Balanced):
    for edge in "bc":
        world.fill(edge, 24)
    world.run(1.0)
    candidates = [{"name": name, "metric": "Input", "difference": "200m"} for name in "bc"]
    session = balance(world, candidates=candidates)
    assert (session.phase, session.reason) == ("Succeeded", "NothingToMove")
    assert all(f"{name}, input: " in session.message for name in "bc")
    world.run(2.0)
    assert [each.target for each in world.edges["a"].sensing.memory.futile] == ["b", "c"]
    assert not world.edges["b"].sensing.memory.futile, "a target has tried nothing"


def test_what_came_to_nothing_is_told_to_the_edge_that_wanted_it(world: Balanced):
    world.fill("b", 24)
    world.run(1.0)
    candidates = [{"name": "b", "metric": "Input", "difference": "200m"}]
    session = balance(world, candidates=candidates)
    assert (session.phase, session.reason) == ("Succeeded", "NothingToMove")
    world.run(2.0)
    said = [effect.message for effect in world.sent if isinstance(effect.message, msg.Reservation)]
    freed = next(word for word in said if word.edge == "a" and word.state == "OK")
    assert [each.target for each in freed.tried] == ["b"]
    assert [each.target for each in world.edges["a"].sensing.memory.futile] == ["b"]


def test_an_invalid_profile_is_queried_again(world: Balanced):
    uid = world.ask("s", source="a", target="b")
    profiles = world.mediator._context.profile_queries
    asked: list[int] = []

    def spoil() -> bool:
        asking = profiles._pending.get((uid, "a"))
        if asking is not None and asking.id not in asked and len(asked) < 2:
            asked.append(asking.id)
            world.handle(HeadMessage("east-head", msg.ProfileReply(asking.id, "a", 7, 0, 1, b"nonsense")))
        return world.mediator.sessions[uid].is_over

    world.until(spoil)
    assert len(set(asked)) == 2
    assert world.session(uid).phase == "Succeeded"


def test_profiles_that_never_make_sense_are_the_reason_of_the_end(world: Balanced):
    head, handle = world.heads["east-head"], world.heads["east-head"].on

    def nonsense(record: Any) -> Any:
        if isinstance(record, msg.ProfileQuery):
            return world.handle(HeadMessage("east-head", msg.ProfileReply(record.id, "a", 7, 0, 1, b"nonsense")))
        return handle(record)

    head.on = nonsense
    session = balance(world)
    assert (session.phase, session.reason) == ("Rejected", "NoSample")
    assert "did not come in time; the last one cannot be read: a: record: Expected `array`" in session.message


def test_without_a_profile_the_session_is_rejected(world: Balanced):
    answer = world.heads["east-head"].on
    head = world.heads["east-head"]
    head.on = lambda record: None if isinstance(record, msg.ProfileQuery) else answer(record)
    session = balance(world)
    assert (session.phase, session.reason) == ("Rejected", "NoSample")
    assert "the subscription profiles of a did not come in time" in session.message


def test_a_plan_that_fails_a_check_moves_no_subscriber(world: Balanced, monkeypatch: pytest.MonkeyPatch):
    def twice(self: Padres, *arguments: Any, **more: Any) -> OffloadPlan:
        made = plan(self, *arguments, **more)
        return replace(made, steps=(*made.steps, *made.steps))

    plan = Padres.plan
    monkeypatch.setattr(Padres, "plan", twice)
    session = balance(world)
    assert (session.phase, session.reason) == ("Rejected", "FaultyPlan")
    assert "a000 moves 2 times" in session.message
    assert world.counts() == (24, 0, 0)
    world.run(2.0)
    assert set(world.states()) == {"OK"}


def test_a_frame_of_a_profile_has_room_in_a_control_frame():
    assert PIECE_BYTES < 1024 * 1024
