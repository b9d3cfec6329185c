"""Publishers at a head: identity, handles, credit, quota, and answers in their order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core import records as r
from plimsoll.core.config import Limits
from plimsoll.core.link import Link, LinkLimits
from plimsoll.core.publishers import Publishers
from plimsoll.core.wire import Info


def link(name: str = "c") -> Link:
    return Link(
        name.encode(), local=Info("h", "head", 1), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0
    )


def opened(publishers: Publishers, at: Link, handle: int = 1, name: str = "p", incarnation: int = 1) -> Any:
    return publishers.open(at, r.Open(handle, name, incarnation), "h", 5, 0.0)


def answers(publishers: Publishers, now: float = 0.0) -> list[Any]:
    return [answer for _, answer in publishers.answers(now)]


def take(publishers: Publishers, at: Link, seq: int, handle: int = 1, now: float = 0.0) -> Any:
    publisher = publishers.get(at, handle)
    assert publisher is not None
    publishers.took(publisher, seq, 100, now)
    return publisher


def test_acceptance_is_cumulative_and_credit_comes_at_half_the_window():
    publishers, at = Publishers(Limits(publisher_window=10)), link()
    assert opened(publishers, at) == r.Opened(1, "h", 5, 0, 10)
    assert answers(publishers) == []
    for seq in (1, 2, 3, 4):
        take(publishers, at, seq)
    assert answers(publishers) == [r.Accepted(1, 4)]
    take(publishers, at, 5)
    assert answers(publishers) == [r.Accepted(1, 5), r.Credit(1, 15)]
    assert answers(publishers) == []


def test_an_answer_waits_for_edges_and_names_those_that_are_late():
    publishers, at = Publishers(Limits()), link()
    opened(publishers, at)
    first = publishers.await_edges(take(publishers, at, 1), 1)
    second = publishers.await_edges(take(publishers, at, 2), 2)
    take(publishers, at, 3)
    assert answers(publishers) == []
    second.missing = False
    publishers.touch("p")
    assert answers(publishers) == [], "the first still waits"
    first.missing, first.late = False, ["e2"]
    publishers.touch("p")
    assert answers(publishers) == [r.Unconfirmed(1, 1, ["e2"]), r.Accepted(1, 3)]


def test_a_new_link_hears_the_exceptions_and_then_all_that_was_accepted():
    publishers, old, new = Publishers(Limits()), link("old"), link("new")
    opened(publishers, old)
    publisher = take(publishers, old, 1)
    publishers.single_out(publisher, r.Refused(1, 1, "oversized", ""))
    take(publishers, old, 2)
    answers(publishers)
    publishers.lost(old)
    assert publishers.get(old, 1) is None
    assert opened(publishers, new, handle=9) == r.Opened(9, "h", 5, 2, 1024)
    assert list(publishers.again(new, 9)) == [r.Refused(9, 1, "oversized", "")]
    assert answers(publishers) == [r.Accepted(9, 2)]


def test_exceptions_that_are_kept_are_bounded_by_the_window():
    publishers, at = Publishers(Limits(publisher_window=8)), link()
    opened(publishers, at)
    publisher = publishers.get(at, 1)
    assert publisher is not None
    for seq in range(1, 50):
        publishers.single_out(publisher, r.Refused(1, seq, "malformed", ""))
    assert [answer.seq for answer in publishers.again(at, 1)] == list(range(42, 50))


def test_a_name_belongs_to_its_newest_incarnation():
    publishers, one, two = Publishers(Limits()), link("one"), link("two")
    opened(publishers, one, incarnation=3)
    take(publishers, one, 1)
    assert opened(publishers, two, incarnation=2) is None
    assert opened(publishers, two, incarnation=4).last_seq == 0
    assert publishers.get(one, 1) is None
    assert len(publishers) == 1


def test_a_handle_that_is_used_again_leaves_its_older_publisher_without_a_link():
    publishers, at = Publishers(Limits()), link()
    opened(publishers, at, name="p")
    opened(publishers, at, name="q")
    assert publishers.by_name["p"].link is None
    publisher = publishers.get(at, 1)
    assert publisher is not None
    assert publisher.name == "q"
    publishers.close(at, 1)
    publishers.close(at, 1)
    assert [p.link for p in publishers.by_name.values()] == [None, None]


def test_the_same_publisher_elsewhere_ends_the_older_use():
    publishers, one, two = Publishers(Limits()), link("one"), link("two")
    opened(publishers, one)
    opened(publishers, two)
    publishers.lost(one)
    publisher = publishers.get(two, 1)
    assert publisher is not None
    assert publisher.link is two


def test_only_those_who_are_away_are_forgotten():
    publishers, one, two = Publishers(Limits()), link("one"), link("two")
    opened(publishers, one, name="away")
    opened(publishers, two, name="here")
    publishers.lost(one)
    publishers.forget_idle(100.0, 200.0)
    assert len(publishers) == 2
    publishers.forget_idle(300.0, 200.0)
    assert set(publishers.by_name) == {"here"}


@given(st.floats(1, 200), st.lists(st.floats(0.001, 0.5), min_size=5, max_size=60))
def test_a_publisher_that_keeps_to_its_credit_keeps_to_its_quota(rate: float, steps: list[float]):
    publishers, at = Publishers(Limits(publisher_rate_per_second=rate, publisher_window=1024)), link()
    credit, seq, now = opened(publishers, at).through, 0, 0.0
    first = credit
    for step in steps:
        now += step
        while seq < credit:
            seq += 1
            take(publishers, at, seq, now=now)
        for answer in answers(publishers, now):
            if isinstance(answer, r.Credit):
                credit = answer.through
        if seq == credit:
            assert publishers.wake_at(now) > now, "somebody must wake to give credit"
    assert seq <= first + rate * now + 2 * max(rate, 1.0) + 1


def test_nobody_is_held_without_a_quota():
    publishers, at = Publishers(Limits()), link()
    opened(publishers, at)
    assert publishers.wake_at(0.0) == float("inf")
