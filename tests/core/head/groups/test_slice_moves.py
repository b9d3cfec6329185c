"""Moves of slices by sessions: real heads, edges and clients in virtual time, and the mediator's engine beside them."""

from __future__ import annotations

from tests.core.group_mediator import GroupMediator
from tests.core.group_play import GroupPlay


def play_with(*names: str, count: int = 6, balancing: str = "None") -> tuple[GroupPlay, GroupMediator]:
    play = GroupPlay(count=count, sensors=2 * count, balancing=balancing)
    mediator = GroupMediator(play)
    for name in names:
        play.join(name)
    mediator.run(4.0)
    return play, mediator


def test_slices_go_from_one_consumer_to_another_and_both_have_counted():
    play, mediator = play_with("a", "b")
    wanted = play.has("a")[:2]
    mediator.run(2.0, rate=100)
    mediator.ask("by-hand", giver="a", taker="b", numbers=wanted)
    session = mediator.finish("by-hand", rate=100)
    mediator.run(8.0, rate=100)
    status = mediator.status("by-hand")
    assert (session.phase, session.reason) == ("Succeeded", "Moved"), status
    assert set(wanted) <= set(play.has("b"))
    assert status["audit"] == {"subscribers": 2, "lost": 0, "duplicated": 0, "reordered": 0, "suppressed": 0}, status
    assert [one["name"] for one in status["measured"]["edges"]] == ["a", "b"], status
    play.check()


def test_a_consumer_that_works_too_much_gives_slices_by_a_session_of_a_trigger():
    play, mediator = play_with("a", "b", balancing="Rates")
    play.consumers["a"].work = 0.02
    mediator.run(30.0, rate=60)
    [name] = [name for name in mediator.requests if name.startswith("slices-readings-")][:1]
    session = mediator.session(name)
    assert session.triggered
    assert session.counts()["moved"] > 0, mediator.status(name)
    assert len(play.has("b")) > len(play.has("a"))
    play.check()


def test_a_drained_consumer_keeps_none_until_it_is_named_as_a_taker():
    play, mediator = play_with("a", "b", "c")
    mediator.ask("drain", giver="a")
    assert mediator.finish("drain").reason == "Moved"
    assert not play.has("a")
    play.join("d")
    mediator.run(5.0, rate=20)
    assert not play.has("a")
    mediator.ask("back", taker="a", numbers=[0])
    assert mediator.finish("back").reason == "Moved"
    assert play.has("a") == [0]


def test_a_dry_run_moves_nothing():
    play, mediator = play_with("a", "b")
    before = play.has("a"), play.has("b")
    mediator.ask("dry", giver="a", mode="DryRun")
    session = mediator.finish("dry")
    assert session.plan is not None
    assert (session.phase, session.plan.members) == ("Planned", len(before[0]))
    assert (play.has("a"), play.has("b")) == before
