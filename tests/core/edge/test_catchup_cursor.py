"""The cursor of an edge: one slice at a time, from the lowest member on or by turns; who joins waits for the next."""

from __future__ import annotations

from typing import Any

from plimsoll.core import predicates
from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment, PendingEnd
from plimsoll.core.edge.catchup_cursor import FILTER_CHARACTERS, FILTERS_AT_MOST, CatchupCursor
from plimsoll.core.protocol.messages import Fetch, Fetched


def member(position: int, *texts: str) -> EdgeAttachment:
    no_port: Any = None
    made = EdgeAttachment(f"s{position}", position, no_port, (1, 2), 1, [])
    made.position = position
    for i, text in enumerate(texts or ("[class,=,'A']",)):
        made.subscriptions[i] = (predicates.parse(text), i)
    return made


def test_a_slice_begins_at_the_lowest_member_and_ends_for_all():
    cursor, low, high = CatchupCursor(), member(5), member(9)
    cursor.join(low)
    cursor.join(high)
    assert (low.state, high.state) == (AttachmentState.CATCHUP, AttachmentState.CATCHUP)
    fetch = cursor.begin()
    assert fetch == Fetch(1, 5, [str(predicates.parse("[class,=,'A']"))])
    assert cursor.begin() is None, "one slice at a time"
    assert list(cursor.end(Fetched(1, 7, False))) == []
    assert (low.position, high.position) == (7, 9), "who is further has not gone back"
    assert cursor.begin() == Fetch(2, 7, fetch.filters)
    assert list(cursor.end(Fetched(2, 20, True))) == [low, high]
    assert (low.position, high.position) == (20, 20)
    assert cursor.begin() is None


def test_who_joins_meanwhile_waits_for_the_next_slice():
    cursor, first, late = CatchupCursor(), member(50), member(3)
    cursor.join(first)
    cursor.begin()
    cursor.join(late)
    assert list(cursor.end(Fetched(1, 60, True))) == [first]
    assert late.position == 3, "it had no part in that slice"
    fetch = cursor.begin()
    assert fetch is not None
    assert fetch.after == 3


def test_members_may_leave_at_any_time():
    cursor, one, two = CatchupCursor(), member(1), member(2)
    cursor.join(one)
    cursor.begin()
    cursor.join(two)
    cursor.leave(one)
    cursor.leave(two)
    cursor.leave(two)
    assert len(cursor) == 0
    assert list(cursor.end(Fetched(1, 9, True))) == []
    assert cursor.begin() is None


def test_many_or_long_filters_are_left_to_the_head():
    cursor = CatchupCursor()
    cursor.join(member(1, *[f"[n,=,{i}]" for i in range(FILTERS_AT_MOST)]))
    fetch = cursor.begin()
    assert fetch is not None
    assert len(fetch.filters) == FILTERS_AT_MOST
    cursor.reset()
    cursor.join(member(1, *[f"[n,=,{i}]" for i in range(FILTERS_AT_MOST + 1)]))
    fetch = cursor.begin()
    assert fetch is not None
    assert fetch.filters == []
    cursor.reset()
    cursor.join(member(1, f"[s,=,'{'x' * FILTER_CHARACTERS}']"))
    fetch = cursor.begin()
    assert fetch is not None
    assert fetch.filters == []


def test_after_a_reset_an_older_slice_is_ignored():
    cursor, one = CatchupCursor(), member(1)
    cursor.join(one)
    first = cursor.begin()
    cursor.reset()
    assert len(cursor) == 0
    cursor.join(one)
    second = cursor.begin()
    assert first is not None
    assert second is not None
    assert first.cursor != second.cursor


def test_a_member_that_has_reached_its_cut_is_through_before_the_others():
    cursor, cut, other = CatchupCursor(), member(5), member(6)
    cut.pending_end = PendingEnd(20, "7.1", ("h", 7, 0))
    cursor.join(cut)
    cursor.join(other)
    cursor.begin()
    assert list(cursor.end(Fetched(1, 19, False))) == []
    cursor.begin()
    assert list(cursor.end(Fetched(2, 30, False))) == [cut]
    assert list(cursor.members) == [other]


def test_one_that_comes_back_with_an_old_token_again_and_again_does_not_hold_up_the_others():
    cursor, others = CatchupCursor(), [member(900), member(500)]
    for each in others:
        cursor.join(each)
    through: set[EdgeAttachment] = set()
    for _ in range(40):
        restless = member(0)
        cursor.join(restless)
        fetch = cursor.begin()
        assert fetch is not None
        assert all(each.position >= fetch.after for each in cursor.members), "no member misses what a slice leaves out"
        to = min(fetch.after + 100, 1000)
        through.update(cursor.end(Fetched(fetch.cursor, to, to == 1000)))
        cursor.leave(restless)
    assert through == set(others)


def test_every_other_slice_belongs_to_each_member_in_turn():
    cursor, members = CatchupCursor(), [member(at) for at in (30, 20, 10)]
    for each in members:
        cursor.join(each)
    begins = []
    for _ in range(8):
        fetch = cursor.begin()
        assert fetch is not None
        begins.append(fetch.after)
        cursor.end(Fetched(fetch.cursor, fetch.after, False))
    assert begins == [10, 30, 10, 20, 10, 10, 10, 30]


def test_one_who_waits_for_a_turn_is_neither_replayed_nor_advanced():
    cursor, near, far = CatchupCursor(), member(90), member(10)
    cursor.join(near)
    cursor.join(far)
    cursor.begin()
    cursor.end(Fetched(1, 20, False))
    assert cursor.begin() == Fetch(2, 90, [str(predicates.parse("[class,=,'A']"))])
    assert (list(cursor.members), len(cursor)) == ([near], 2)
    assert list(cursor.end(Fetched(2, 100, True))) == [near]
    assert far.position == 20
    assert cursor.begin() == Fetch(3, 20, [str(predicates.parse("[class,=,'A']"))])


def test_long_lists_are_not_written_out_for_each_slice():
    """A slice is read every few milliseconds, and the list may have thousands."""

    class Unwritten:
        def __str__(self) -> str:
            raise AssertionError("written out")

    cursor, slow = CatchupCursor(), member(1)
    unwritten: Any = Unwritten()
    slow.subscriptions = {i: (unwritten, i) for i in range(FILTERS_AT_MOST + 1)}
    cursor.join(slow)
    assert cursor.begin() == Fetch(1, 1, [])
