"""An edge and the reservations of mediators: late ones change nothing, silence frees it, an end counts once."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.edge.balancing.reservation import LONGEST_SECONDS, EdgeReservation
from plimsoll.core.protocol import messages as msg


def word(number: int, state: Any, session: str = "s", seconds: float = 10.0, mediator: int = 3) -> msg.Reservation:
    return msg.Reservation(mediator, number, "e1", session, state, seconds)


def test_a_session_begins_once_and_ends_once():
    standing = EdgeReservation()
    assert standing.take(word(1, "BUSY"), "OK", 0.0) == "began"
    assert standing.take(word(2, "BUSY"), "BUSY", 5.0) == ""
    assert not standing.lapsed(14.0)
    assert standing.take(word(3, "STABILIZING"), "BUSY", 14.0) == "moved"
    assert standing.take(word(4, "STABILIZING"), "STABILIZING", 15.0) == ""
    assert standing.take(word(5, "OK"), "STABILIZING", 16.0) == ""
    assert standing.session == ""


@pytest.mark.parametrize("state", ["BUSY", "N/A", "STABILIZING"])
def test_an_edge_that_is_not_free_does_not_begin_when_asked(state: Any):
    standing = EdgeReservation()
    assert standing.take(word(1, "ASK"), state, 0.0) == ""
    assert standing.session == ""


def test_who_said_yes_says_it_again_to_the_same_session_and_no_to_another():
    standing = EdgeReservation()
    assert standing.take(word(1, "ASK"), "OK", 0.0) == "began"
    standing.take(word(2, "ASK"), "BUSY", 1.0)
    assert standing.session == "s"
    standing.take(word(3, "ASK", "t"), "BUSY", 1.0)
    assert standing.session == "s"


def test_late_words_and_those_of_older_mediators_are_not_new():
    standing = EdgeReservation()
    assert standing.is_new(word(5, "BUSY"))
    assert not standing.is_new(word(5, "OK"))
    assert not standing.is_new(word(4, "OK"))
    assert not standing.is_new(word(9, "OK", mediator=2))
    assert standing.is_new(word(1, "OK", mediator=4))


def test_the_end_of_another_session_is_no_end():
    standing = EdgeReservation()
    standing.take(word(1, "BUSY", "t"), "OK", 0.0)
    assert standing.take(word(2, "OK"), "BUSY", 0.0) == ""
    assert standing.take(word(3, "STABILIZING"), "BUSY", 0.0) == ""
    assert standing.session == "t"
    assert standing.take(word(4, "OK", "t"), "BUSY", 0.0) == "ended"


def test_load_that_came_without_a_reservation_stabilizes_all_the_same():
    standing = EdgeReservation()
    standing.take(word(1, "BUSY"), "OK", 0.0)
    assert standing.lapsed(10.0)
    assert not standing.lapsed(11.0)
    assert standing.take(word(2, "STABILIZING"), "OK", 20.0) == "moved"


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -5.0])
def test_nothing_binds_for_a_time_that_is_none(seconds: float):
    standing = EdgeReservation()
    standing.take(word(1, "BUSY", seconds=seconds), "OK", 0.0)
    assert standing.lapsed(0.0)


def test_nothing_binds_for_long_at_one_word():
    standing = EdgeReservation()
    standing.take(word(1, "BUSY", seconds=1e9), "OK", 0.0)
    assert not standing.lapsed(LONGEST_SECONDS - 1)
    assert standing.lapsed(LONGEST_SECONDS)
