"""Answers to publishers: cumulative, in their order, with their exceptions, and the credit beside them."""

from __future__ import annotations

from tests.core.head.publishing import answers, link, opened, take

from plimsoll.core.config import BrokerLimits
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.protocol import messages as msg


def test_acceptance_is_cumulative_and_credit_comes_at_half_the_window():
    publishers, at = PublisherTable(BrokerLimits(publisher_window=10)), link()
    assert opened(publishers, at) == msg.Opened(1, "h", 5, 0, 10)
    assert answers(publishers) == []
    for seq in (1, 2, 3, 4):
        take(publishers, at, seq)
    assert answers(publishers) == [msg.Accepted(1, 4)]
    take(publishers, at, 5)
    assert answers(publishers) == [msg.Accepted(1, 5), msg.Credit(1, 15)]
    assert answers(publishers) == []


def test_an_answer_waits_for_edges_and_names_those_that_are_late():
    publishers, at = PublisherTable(BrokerLimits()), link()
    opened(publishers, at)
    first = publishers.answers.await_edges(take(publishers, at, 1), 1)
    second = publishers.answers.await_edges(take(publishers, at, 2), 2)
    take(publishers, at, 3)
    assert answers(publishers) == []
    second.missing = False
    publishers.answers.touch("p")
    assert answers(publishers) == [], "the first still waits"
    first.missing, first.late = False, ["e2"]
    publishers.answers.touch("p")
    assert answers(publishers) == [msg.Unconfirmed(1, 1, ["e2"]), msg.Accepted(1, 3)]


def test_a_new_link_gets_the_exceptions_and_then_all_that_was_accepted():
    publishers, old, new = PublisherTable(BrokerLimits()), link("old"), link("new")
    opened(publishers, old)
    publisher = take(publishers, old, 1)
    publishers.answers.single_out(publisher, msg.Refused(1, 1, "oversized", ""))
    take(publishers, old, 2)
    answers(publishers)
    publishers.lost(old)
    assert publishers.get(old, 1) is None
    assert opened(publishers, new, handle=9) == msg.Opened(9, "h", 5, 2, 128)
    assert list(publishers.answers.again("p", 9)) == [msg.Refused(9, 1, "oversized", "")]
    assert answers(publishers) == [msg.Accepted(9, 2)]


def test_exceptions_that_are_kept_are_bounded_by_the_window():
    publishers, at = PublisherTable(BrokerLimits(publisher_window=8)), link()
    opened(publishers, at)
    publisher = publishers.get(at, 1)
    assert publisher is not None
    for seq in range(1, 50):
        publishers.answers.single_out(publisher, msg.Refused(1, seq, "malformed", ""))
    assert [answer.seq for answer in publishers.answers.again("p", 1)] == list(range(42, 50))
