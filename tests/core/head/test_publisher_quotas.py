"""Quotas of publishers: their own, and those that all publishers of an identity share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.head.publishing import answers, granted, link, opened, take

from plimsoll.core.config import BrokerLimits
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.protocol import messages as msg


@given(st.floats(1, 200), st.lists(st.floats(0.001, 0.5), min_size=5, max_size=60))
def test_a_publisher_that_keeps_to_its_credit_keeps_to_its_quota(rate: float, steps: list[float]):
    publishers, at = PublisherTable(BrokerLimits(publisher_rate_per_second=rate, publisher_window=1024)), link()
    credit, seq, now = opened(publishers, at).through, 0, 0.0
    first = credit
    for step in steps:
        now += step
        while seq < credit:
            seq += 1
            take(publishers, at, seq, now=now)
        for answer in answers(publishers, now):
            if isinstance(answer, msg.Credit):
                credit = answer.through
        if seq == credit:
            assert publishers.answers.wake_at(now) > now, "the head must wake to give credit"
    assert seq <= first + rate * now + 2 * max(rate, 1.0) + 1


def test_no_publisher_is_held_back_without_a_quota():
    publishers, at = PublisherTable(BrokerLimits()), link()
    opened(publishers, at)
    assert publishers.answers.wake_at(0.0) == float("inf")


def test_the_quota_of_an_identity_is_of_all_its_publishers_together():
    publishers = PublisherTable(BrokerLimits(publisher_window=100, publisher_rate_per_second=1000.0))
    ann = [granted(link(name), publications_per_second=10.0) for name in "cd"]
    for n, at in enumerate(ann):
        opened(publishers, at, name=f"p{n}")
    for seq in range(1, 11):
        take(publishers, ann[0], seq)
    assert answers(publishers) == [msg.Accepted(1, 10)]
    assert publishers.credits.times_held == 1
    # The other one has its credit already; its use is owed, and neither gets more before that is paid back.
    for seq in range(1, 6):
        take(publishers, ann[1], seq)
    answers(publishers)
    assert answers(publishers, 0.4) == []
    assert publishers.answers.wake_at(0.4) == pytest.approx(0.6, abs=0.01)
    later = answers(publishers, 0.7)
    assert {type(answer) for answer in later} == {msg.Credit}
    assert publishers.credits.times_held == 2


def test_a_quota_of_an_identity_takes_the_place_of_the_brokers_own_and_no_more():
    publishers = PublisherTable(BrokerLimits(publisher_window=100, publisher_bytes_per_second=150.0))
    at = granted(link(), publications_per_second=50.0)
    assert opened(publishers, at) == msg.Opened(1, "h", 5, 0, 50)
    for seq in range(1, 31):
        take(publishers, at, seq, now=0.0)
    assert answers(publishers) == [msg.Accepted(1, 30)], "the bytes of one publisher have their limit still"
    granted(at, bytes_per_second=1e6)
    assert list(publishers.regranted(at, 0.0)) == []
    assert answers(publishers) == [msg.Credit(1, 130)]


def test_publishers_of_other_identities_do_not_share():
    publishers = PublisherTable(BrokerLimits(publisher_window=100))
    ann, bob = granted(link(), publications_per_second=1.0), link("b")
    bob.identity, bob.grant = "bob", ClientPermissions("bob", publications_per_second=10.0)
    opened(publishers, ann)
    opened(publishers, bob, name="q")
    take(publishers, ann, 1)
    for seq in range(1, 6):
        take(publishers, bob, seq)
    assert msg.Credit(1, 15) in answers(publishers)


def test_who_has_gone_takes_no_part_of_the_quota():
    publishers = PublisherTable(BrokerLimits(publisher_window=100))
    first, second = (granted(link(name), publications_per_second=10.0) for name in "cd")
    assert opened(publishers, first).through == 10
    assert opened(publishers, second, name="q").through == 5
    publishers.lost(second)
    publishers.close(first, 1)
    assert opened(publishers, second, name="r").through == 10


def test_opening_again_does_not_refill_a_quota():
    publishers = PublisherTable(BrokerLimits(publisher_window=100))
    at = granted(link(), publications_per_second=10.0)
    opened(publishers, at)
    for seq in range(1, 11):
        take(publishers, at, seq)
    assert opened(publishers, at, incarnation=2).through == 0
    assert opened(publishers, at, name="q").through == 0
