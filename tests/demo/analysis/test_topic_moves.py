"""What sessions have moved, by topic."""

from __future__ import annotations

from typing import Any

from plimsoll.core.protocol.topic_units import topic_hash, unit_name
from plimsoll.core.session.session_plan import PlannedPair, SessionPlan
from plimsoll.demo.analysis.topic_moves import TopicMove, topic_moves, topic_number


class Ended:
    """As much of a session as is read here."""

    started_at = 34.0

    def __init__(self, *members: str, moved: int, is_parent: bool = False, ended_at: float | None = 35.0) -> None:
        pair = PlannedPair(source="b1", target="b0", source_head="h", target_head="h", members=list(members))
        self.plan: SessionPlan | None = SessionPlan(hash="", pairs=[pair], made_at=34.0)
        self.moved, self.is_parent, self.ended_at = moved, is_parent, ended_at

    def counts(self) -> dict[str, int]:
        return {"moved": self.moved}


def test_members_count_by_topic_whether_they_are_units_or_whole():
    some: list[Any] = [Ended(unit_name("s1-0", topic_hash("t1")), "s1-1", "s14-0", moved=3)]
    assert topic_moves(some, 40.0) == [TopicMove(34.0, 35.0, "b1", "b0", {1: 2, 14: 1})]
    assert topic_number("s14-0") == 14


def test_parents_and_sessions_that_moved_none_are_left_out_and_an_open_one_ends_now():
    whole, none = Ended("s1-0", moved=1, is_parent=True), Ended("s1-0", moved=0)
    some: list[Any] = [whole, none, Ended("s8-0", moved=1, ended_at=None)]
    (found,) = topic_moves(some, 40.0)
    assert (found.ended_at, found.text()) == (40.0, "1 of topic 8 from b1 to b0")
