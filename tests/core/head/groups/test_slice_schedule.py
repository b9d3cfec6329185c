"""When slices move: what members do comes first, then what mediators command, then balancing; one pair at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.core.head.groups.scripted_group import ScriptedGroup

from plimsoll.core.head.groups.slice_schedule import SliceSchedule, announce_to_none
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceMove, SlicePlan


def scheduled(*members: str, balancing: str = "Rates", count: int = 4) -> tuple[ScriptedGroup, SliceSchedule]:
    """A group in which these members have come together, and have shared its slices."""
    group = ScriptedGroup(*members, count=count)
    schedule = SliceSchedule(group, balancing)
    schedule.go_on()
    schedule.go_on()  # nothing is left to do for newcomers
    group.take_did()
    return group, schedule


def joined(group: ScriptedGroup, schedule: SliceSchedule, name: str) -> None:
    group.add(name)
    schedule.begin_again()


def test_slices_without_a_holder_are_assigned_at_once() -> None:
    group = ScriptedGroup("a", "b")
    schedule = SliceSchedule(group, "None")
    schedule.go_on()
    assert group.did == [(0, "", "a"), (2, "", "a"), (1, "", "b"), (3, "", "b")]
    assert (schedule.is_settled, group.counts["sessions"]) == (True, 0), "nothing was revoked for it"


def test_without_members_slices_wait_for_the_next_one() -> None:
    group = ScriptedGroup()
    schedule = SliceSchedule(group, "None")
    schedule.go_on()
    assert (group.did, schedule.is_settled) == ([], True)
    joined(group, schedule, "a")
    schedule.go_on()
    assert group.has() == {"": [], "a": [0, 1, 2, 3]}


def test_a_newcomer_gets_its_share_one_pair_after_another() -> None:
    group, schedule = scheduled("a", "b", count=6)
    joined(group, schedule, "c")
    schedule.go_on()
    [(first, giver, taker)] = group.take_did()
    assert (giver, taker) == ("b", "c")
    schedule.go_on()
    assert group.did == [], "the first pair is waited for"
    group.let_go(first)
    schedule.go_on()
    [(second, giver, taker)] = group.take_did()
    assert (giver, taker) == ("a", "c")
    group.let_go(second)
    assert {name: len(numbers) for name, numbers in group.has().items()} == {"": 0, "a": 2, "b": 2, "c": 2}
    assert group.counts["sessions"] == 2


def test_a_slow_giver_holds_up_the_next_pair_for_a_while_at_most() -> None:
    group, schedule = scheduled("a", "b", count=6)
    joined(group, schedule, "c")
    schedule.go_on()
    group.take_did()
    group.host.now += group.times.session - 0.01
    schedule.go_on()
    assert group.did == []
    group.host.now += 0.02
    schedule.go_on()
    assert [(giver, taker) for _, giver, taker in group.did] == [("a", "c")]


def test_a_newcomer_whose_plan_was_cut_short_still_gets_its_share() -> None:
    group, schedule = scheduled("a", count=6)
    joined(group, schedule, "b")
    schedule.go_on()
    moved = [number for number, *_ in group.take_did()]
    assert len(moved) == 3
    joined(group, schedule, "c")
    group.host.now += group.times.session
    schedule.go_on()  # `a` has not let go yet, so `b` has nothing to give to `c`
    group.let_go(*moved, *(number for number, *_ in group.take_did()))
    assert [len(numbers) for numbers in group.has().values()] == [0, 2, 3, 1]
    for _ in range(2):
        schedule.go_on()
        group.let_go(*(number for number, *_ in group.take_did()))
    assert sorted(len(numbers) for numbers in group.has().values()) == [0, 2, 2, 2]


def test_the_slices_of_one_that_leaves_go_to_others_and_those_of_the_last_wait() -> None:
    group, schedule = scheduled("a", "b")
    group.members["a"].is_leaving = True
    schedule.begin_again()
    schedule.go_on()
    assert group.did == [(0, "a", "b"), (2, "a", "b")]
    group.let_go(*(number for number, *_ in group.take_did()))
    del group.members["a"]
    schedule.forget("a")
    group.members["b"].is_leaving = True
    schedule.begin_again()
    schedule.go_on()
    assert group.take_did() == [(number, "b", "") for number in range(4)]
    schedule.begin_again()
    group.host.now += group.times.session
    schedule.go_on()
    assert group.did == [], "what is revoked is not revoked again"


def test_a_command_begins_behind_what_members_do_and_ahead_of_balancing() -> None:
    group, schedule = scheduled("a", "b")
    move = SliceMove("a", "b", 0)
    schedule.command((move,), empties=False)
    assert schedule.is_under_way(move)
    joined(group, schedule, "c")
    group.host.now += group.times.balance
    schedule.go_on()
    assert group.take_did() == [(1, "b", "c")]
    group.let_go(1)
    schedule.go_on()  # nothing is left to do for the newcomer
    schedule.go_on()
    assert group.did == [(0, "a", "b")]
    assert schedule.is_under_way(move), "its giver has yet to let go"
    group.let_go(0)
    assert not schedule.is_under_way(move)


def test_a_command_without_its_taker_or_of_a_slice_that_has_gone_on_moves_nothing() -> None:
    for move in (SliceMove("a", "x", 0), SliceMove("b", "a", 0)):
        group, schedule = scheduled("a", "b")
        schedule.command((move,), empties=False)
        schedule.go_on()
        assert (group.did, schedule.commanded) == ([], [])
        assert not schedule.is_under_way(move)


def test_a_drained_member_gets_nothing_until_it_is_named_as_a_taker() -> None:
    group, schedule = scheduled("a", "b")
    schedule.command((SliceMove("a", "b", 0), SliceMove("a", "b", 2)), empties=False)
    assert group.members["a"].is_emptied, "its last slices are taken"
    schedule.go_on()
    group.let_go(0, 2)
    schedule.begin_again()
    schedule.go_on()
    assert group.has() == {"": [], "a": [], "b": [0, 1, 2, 3]}
    assert [each.takes for each in schedule.consumers()] == [False, True]
    schedule.command((SliceMove("b", "a", 1),), empties=False)
    assert not group.members["a"].is_emptied


@pytest.mark.parametrize("empties", [False, True])
def test_a_giver_that_keeps_a_slice_is_drained_only_if_the_session_says_so(empties: bool) -> None:
    group, schedule = scheduled("a", "b")
    moves = (SliceMove("a", "b", 0),)
    schedule.command(moves, empties=empties)
    assert group.members["a"].is_emptied is empties
    schedule.withdraw(moves)
    assert (group.members["a"].is_emptied, schedule.commanded) == (False, [])
    schedule.go_on()
    assert group.take_did() == []


def test_drained_members_serve_again_for_want_of_others() -> None:
    group, schedule = scheduled("a", "b")
    schedule.command((SliceMove("a", "b", 0),), empties=True)
    schedule.go_on()
    group.let_go(0)
    del group.members["b"]
    schedule.forget("b")
    for each in group.slices:
        if each.holder == "b":
            each.end(None)
    schedule.begin_again()
    schedule.go_on()
    assert group.has() == {"": [], "a": [0, 1, 2, 3]}
    assert not group.members["a"].is_emptied


def unbalanced() -> tuple[ScriptedGroup, SliceSchedule]:
    """All work is at `a`, as both have measured."""
    group, schedule = scheduled("a", "b")
    group.host.now += 1.0
    group.measure("a", 400.0)
    group.measure("b", 0.0)
    return group, schedule


def test_balancing_waits_for_its_interval_and_needs_two() -> None:
    group, schedule = unbalanced()
    schedule.go_on()
    assert group.did == []
    group.host.now += group.times.balance
    schedule.go_on()
    [(number, giver, taker)] = group.take_did()
    assert (giver, taker) == ("a", "b")
    group.let_go(number)
    assert schedule.plan.moves == (SliceMove("a", "b", number),)
    group.host.now += group.times.balance / 2
    schedule.go_on()
    assert group.did == []
    alone, schedule = scheduled("a")
    alone.measure("a", 400.0)
    before = schedule.plan
    alone.host.now += alone.times.balance
    schedule.go_on()
    assert (alone.did, schedule.plan) == ([], before)


def test_another_policy_counts_from_the_next_interval() -> None:
    group, schedule = unbalanced()
    schedule.balance_by("None")
    group.host.now += group.times.balance
    schedule.go_on()
    assert group.did == []
    schedule.balance_by("Rates")
    group.host.now += group.times.balance
    schedule.go_on()
    assert len(group.did) == 1


def test_with_mediators_they_are_told_and_the_head_moves_nothing_itself() -> None:
    group, schedule = unbalanced()
    told: list[Any] = []

    def announce(name: str, consumers: Sequence[ConsumerLoad], plan: SlicePlan) -> bool:
        told.append((name, [each.name for each in consumers], len(plan.moves)))
        return True

    schedule.announce = announce
    group.host.now += group.times.balance
    schedule.go_on()
    schedule.go_on()
    assert (told, group.did) == ([("readings", ["a", "b"], 1)], [])
    assert "mediators" in schedule.plan.reason
    assert not announce_to_none("readings", [], SlicePlan())


def test_consumers_have_what_they_are_about_to_get() -> None:
    group, schedule = scheduled("a", "b")
    group.revoke(group.slices[0], "b")
    group.revoke(group.slices[2], "")
    found = {each.name: [load.number for load in each.slices] for each in schedule.consumers()}
    assert found == {"a": [2], "b": [0, 1, 3]}
