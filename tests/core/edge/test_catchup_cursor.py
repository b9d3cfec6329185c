"""The cursor of an edge: one slice at a time, from the lowest member on; later members wait for the next slice."""

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
    cursor.join(high)
    cursor.join(low)
    assert (low.state, high.state) == (AttachmentState.CATCHUP, AttachmentState.CATCHUP)
    fetch = cursor.begin()
    assert fetch == Fetch(1, 5, [str(predicates.parse("[class,=,'A']"))])
    assert cursor.begin() is None, "one slice at a time"
    assert list(cursor.end(Fetched(1, 7, False))) == []
    assert (low.position, high.position) == (7, 9), "who is further has not gone back"
    assert cursor.begin() == Fetch(2, 7, fetch.filters)
    assert list(cursor.end(Fetched(2, 20, True))) == [high, low]
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
