"""Moves of slices by sessions: real heads, edges and clients in virtual time, and the mediator's engine beside them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.group_mediator import GroupMediator
from tests.core.group_play import GroupPlay

from plimsoll.core.protocol import messages as msg


def play_with(
    *names: str, count: int = 6, balancing: str = "None", **definition: Any
) -> tuple[GroupPlay, GroupMediator]:
    play = GroupPlay(count=count, sensors=2 * count, balancing=balancing, **definition)
    mediator = GroupMediator(play)
    for name in names:
        play.join(name)
    mediator.run(4.0)
    return play, mediator


@pytest.mark.parametrize("in_session", ["Deliver", "Cache"])
def test_slices_go_from_one_consumer_to_another_and_both_have_counted(in_session: str):
    play, mediator = play_with("a", "b", in_session=in_session)
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
    assert play.group.caches.counts["merged"] >= (2 if in_session == "Cache" else 0)
    play.check()


@pytest.mark.sweep
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


def test_one_that_was_drained_and_is_the_last_has_all_and_gives_the_next_its_share():
    play, mediator = play_with("a", "b")
    mediator.ask("drain", giver="a")
    assert mediator.finish("drain").reason == "Moved"
    play.crash("b")
    mediator.run(10.0, rate=20)
    assert play.has("a") == list(range(6))
    play.join("c")
    mediator.run(5.0, rate=20)
    assert [len(play.has(name)) for name in ("a", "c")] == [3, 3]
    play.check(is_exact=False)


def test_a_dry_run_moves_nothing():
    play, mediator = play_with("a", "b")
    before = play.has("a"), play.has("b")
    mediator.ask("dry", giver="a", mode="DryRun")
    session = mediator.finish("dry")
    assert session.plan is not None
    assert (session.phase, session.plan.members) == ("Planned", len(before[0]))
    assert (play.has("a"), play.has("b")) == before


def test_a_mediator_that_dies_in_the_middle_ends_the_session_in_its_next_life():
    play, mediator = play_with("a", "b")
    play.consumers["a"].work = 3.0  # it holds what it has in hand for long
    mediator.run(1.0, rate=60)
    mediator.ask("slow", giver="a", taker="b")
    mediator.run(1.0)
    assert not mediator.session("slow").is_over
    mediator.kill()
    play.consumers["a"].work = 0.0
    play.run(5.0, rate=20)  # the head goes on without it
    assert not play.has("a")
    mediator.start()
    session = mediator.finish("slow", rate=20)
    assert (session.phase, session.reason) == ("Succeeded", "Moved"), mediator.status("slow")
    play.check()


def test_a_head_that_dies_in_the_middle_leaves_no_slice_behind_and_the_session_says_where_they_are():
    play, mediator = play_with("a", "b")
    play.consumers["a"].work = 1.5
    mediator.run(1.0, rate=60)
    planned = set(play.has("a"))
    mediator.ask("cut-short", giver="a", taker="b")
    mediator.run(0.5)
    play.fleet.crash("h")
    mediator.run(0.5)
    play.fleet.start("h")
    session = mediator.finish("cut-short")
    mediator.run(10.0)
    counts = session.counts()
    assert counts["moved"] + counts["stayed"] + counts["detached"] == session.planned, mediator.status("cut-short")
    assert sorted(play.has("a") + play.has("b")) == list(range(6))
    came = {number for change in play.consumers["b"].changes for number in change.came}
    assert counts["moved"] == len(came & planned), mediator.status("cut-short")
    assert len(play.has("a")) == 3  # its head has forgotten that it was to have none


def test_a_giver_that_never_finishes_what_it_has_leaves_the_outcome_unknown_and_the_rest_moved():
    play, mediator = play_with("a", "b")
    mediator.run(1.0, rate=60)
    play.consumers["a"].is_paused = True
    play.publish(play.has("a")[0])
    held = [owned.slice for owned in play.consumers["a"].member.slices.values() if owned.handed]
    mediator.ask("stuck", giver="a", taker="b")
    session = mediator.finish("stuck", seconds=120.0)
    assert session.is_over
    assert session.counts()["unknown"] == len(held), mediator.status("stuck")
    play.consumers["a"].is_paused = False
    mediator.run(3.0)
    assert not play.has("a")
    play.check()


def test_a_giver_that_dies_in_the_middle_gives_all_and_is_not_audited():
    play, mediator = play_with("a", "b")
    play.consumers["a"].work = 3.0
    mediator.run(1.0, rate=60)
    mediator.ask("dying", giver="a", taker="b")
    mediator.run(0.3)
    play.crash("a")
    session = mediator.finish("dying")
    assert session.counts()["moved"] == session.planned, mediator.status("dying")
    play.check(is_exact=False)


def test_what_was_on_its_way_to_a_taker_that_dies_has_not_stayed_but_gone_to_another():
    play, mediator = play_with("a", "b", "c")
    play.consumers["a"].work = 12.0
    mediator.run(1.0, rate=60)
    held = {owned.slice for owned in play.consumers["a"].member.slices.values() if owned.handed}
    assert held
    mediator.ask("orphaned", giver="a", taker="b")
    mediator.run(0.5)
    play.crash("b")
    mediator.run(7.5)
    assert "b" not in play.group.members
    assert set(play.has("a")) == held  # told to let go of them, for one that is there no more
    session = mediator.finish("orphaned", seconds=90.0)
    assert session.counts()["detached"] == len(held), mediator.status("orphaned")
    mediator.run(10.0)
    assert play.has("c") == list(range(6))
    play.check(is_exact=False)


def test_a_stopped_session_lets_those_stay_that_have_not_begun():
    play, mediator = play_with("a", "b", count=12)
    play.consumers["a"].work = 2.0
    mediator.run(1.0, rate=60)
    mediator.ask("stopped", giver="a", taker="b", limits={"maxInFlight": 2})
    mediator.run(0.3)
    mediator.change("stopped", stop=True)
    session = mediator.finish("stopped")
    assert session.reason == "Stopped", mediator.status("stopped")
    assert 0 < session.counts()["moved"] < session.planned
    play.check(seconds=60.0)


def test_a_drain_that_is_stopped_before_it_begins_leaves_its_consumer_as_it_was():
    play, mediator = play_with("a", "b", "c", "d", count=8)
    play.consumers["a"].work = 4.0
    mediator.run(1.0, rate=60)
    play.leave("a")  # which holds up what is commanded, until it has finished what it has in hand
    mediator.run(0.1)
    mediator.ask("overtaken", giver="b", taker="c")
    mediator.run(0.3)
    assert play.group.schedule.commanded
    mediator.change("overtaken", stop=True)
    session = mediator.finish("overtaken")
    assert session.counts()["stayed"] == session.planned > 0, mediator.status("overtaken")
    mediator.run(8.0)
    had = play.has("b")
    assert len(had) >= session.planned
    play.crash("d")
    mediator.run(8.0)
    assert len(play.has("b")) > len(had)
    play.check(is_exact=False)


def test_a_command_that_comes_after_its_stop_moves_nothing():
    play, _ = play_with("a", "b")
    moves, before = play.fleet.head().slice_commands.moves, (play.has("a"), play.has("b"))
    assert moves.abort("1.7").state == "failed"
    plan = msg.SliceMovesPlan(play.group.name, "a", "b", before[0], 10.0)
    assert moves.move("1.7", plan).state == "failed"
    play.run(1.0)
    assert (play.has("a"), play.has("b")) == before


def test_names_that_the_group_does_not_have_are_refused_with_those_that_it_has():
    _, mediator = play_with("a", "b")
    mediator.ask("who", giver="nobody")
    assert "no such consumer: a, b" in mediator.finish("who").message
    mediator.ask("by-policy")
    session = mediator.finish("by-policy")
    assert (session.phase, session.reason) == ("Rejected", "NoPolicy")


@pytest.mark.parametrize(("work", "is_announced"), [(0.02, False), (0.05, True)])
def test_a_group_with_next_to_no_work_is_left_as_it_is(work: float, is_announced: bool):
    play, mediator = play_with("a", "b", balancing="Rates")
    play.consumers["a"].work = work  # of some 3 items a second; a step less of it is measured
    mediator.run(25.0, rate=6)
    assert play.group.schedule.policy.balance(play.group.schedule.consumers()).moves or is_announced
    assert bool(mediator.requests) is is_announced
    play.check()


def test_the_last_slices_may_go_to_one_that_was_emptied_before():
    play, mediator = play_with("a", "b")
    for name, giver in (("first", "a"), ("second", "b")):
        mediator.ask(name, giver=giver)
        assert mediator.finish(name).reason == "Moved", mediator.status(name)
    assert play.has("a") == list(range(6))
