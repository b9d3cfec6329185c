"""What a head that may have restarted knows of slices: it waits, and what no member says is told as a gap or marked."""

from __future__ import annotations

from tests.core.head.groups.scripted_group import EPOCH, LAST, NAME, ScriptedGroup

from plimsoll.core.head.groups.group_memory import GroupMemory
from plimsoll.core.transport.link import NEVER

BEFORE_ALL = (NAME, 0, 0)
ACCEPTED = (NAME, EPOCH, LAST)
KNOWN = (NAME, EPOCH, 7)


def restarted(*members: str) -> tuple[ScriptedGroup, GroupMemory]:
    """Its head has restarted, and waits for 6 s."""
    group = ScriptedGroup(*members)
    return group, GroupMemory(group, group.host.now + 6.0)


def begun(*members: str) -> tuple[ScriptedGroup, GroupMemory]:
    """A group that its head takes to be new."""
    group = ScriptedGroup(*members)
    return group, GroupMemory(group, 0.0)


def test_members_may_say_what_they_have_until_the_time_is_over() -> None:
    group, memory = restarted()
    assert memory.is_waiting
    group.host.now += 6.0
    assert not memory.is_waiting


def test_what_no_member_has_said_is_a_gap_and_what_this_life_has_accepted_is_marked() -> None:
    group, memory = restarted("a")
    held, spoken_of, unknown, begun_blind = group.slices
    held.begin("a", 3)
    held.token = KNOWN
    spoken_of.token = KNOWN  # a member has released it, and another may have had it since
    begun_blind.begin("a", 3)
    group.host.now += 6.0
    memory.look()
    assert [each.token for each in group.slices] == [KNOWN, KNOWN, BEFORE_ALL, BEFORE_ALL]
    assert [each.given_to for each in (held, spoken_of, unknown, begun_blind)] == [None, ACCEPTED, ACCEPTED, None]


def test_it_doubts_once() -> None:
    group, memory = restarted()
    group.host.now += 6.0
    memory.look()
    for each in group.slices:
        each.given_to, each.token = None, None
    memory.look()
    assert {(each.given_to, each.token) for each in group.slices} == {(None, None)}


def test_a_new_group_doubts_nothing_nor_does_one_that_waits_for_ever() -> None:
    for until in (0.0, NEVER):
        group = ScriptedGroup("a")
        GroupMemory(group, until).look()
        assert {(each.given_to, each.token) for each in group.slices} == {(None, None)}


def test_to_hold_makes_it_wait_and_doubt_again_unless_the_time_is_past() -> None:
    group, memory = begun("a")
    memory.hold(group.host.now + 1.0)
    assert memory.is_waiting
    memory.look()
    assert group.slices[0].token == BEFORE_ALL
    group, memory = begun("a")
    memory.hold(group.host.now)
    memory.look()
    assert (memory.is_waiting, group.slices[0].token) == (False, None)


def test_a_restart_that_a_member_tells_before_any_slice_is_held_makes_it_wait() -> None:
    group, memory = begun("a")
    memory.learn_of_restart()
    assert memory.hold_until == group.host.now + group.times.gone
    until = memory.hold_until
    group.host.now += 1.0
    memory.learn_of_restart()
    assert memory.hold_until == until, "one that waits anyway waits no longer for it"


def test_slices_that_began_as_those_of_a_new_group_begin_again_behind_the_gap() -> None:
    group, memory = begun("a", "b")
    blind, revoked, free, sound = group.slices
    for each in (blind, revoked):
        each.begin("a", 3)
        each.is_blind = True
    sound.begin("b", 3)
    sound.token = KNOWN
    group.revoke(revoked, "b")
    group.take_did()
    memory.learn_of_restart()
    assert not memory.is_waiting
    assert group.did == [(0, "a", "")], "that which is revoked already is not revoked again"
    assert [each.is_doubted for each in group.slices] == [True, True, False, False]
    assert [each.is_blind for each in group.slices] == [False] * 4
    assert (free.token, sound.token) == (BEFORE_ALL, KNOWN)
    group.take_did()
    memory.learn_of_restart()
    assert group.did == [], "the next member that says so tells nothing new"


def test_a_slice_that_begins_again_is_doubted_no_more() -> None:
    group, memory = begun("a")
    each = group.slices[0]
    each.token, each.is_doubted = KNOWN, True
    memory.begin_again(each)
    assert (each.token, each.is_doubted) == (BEFORE_ALL, False)
