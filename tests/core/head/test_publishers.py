"""Publishers at a head: identity, handles, credit, quota, and answers in their order."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.config import BrokerLimits
from plimsoll.core.head.durability.records import PublisherKnown
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.permissions import INCARNATION_STEP, INCARNATIONS_BELOW, ClientPermissions, NameGrants
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info, WireError
from plimsoll.core.transport.link import Link, LinkLimits


def link(name: str = "c") -> Link:
    return Link(
        name.encode(), local=Info("h", "head", 1), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0
    )


def opened(publishers: PublisherTable, at: Link, handle: int = 1, name: str = "p", incarnation: int = 1) -> Any:
    return publishers.open(at, msg.Open(handle, name, incarnation), "h", 5, 0.0)


def answers(publishers: PublisherTable, now: float = 0.0) -> list[Any]:
    return [answer for _, answer in publishers.answers(now)]


def take(publishers: PublisherTable, at: Link, seq: int, handle: int = 1, now: float = 0.0) -> Any:
    publisher = publishers.get(at, handle)
    assert publisher is not None
    publishers.took(publisher, seq, 100, now)
    return publisher


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
    first = publishers.await_edges(take(publishers, at, 1), 1)
    second = publishers.await_edges(take(publishers, at, 2), 2)
    take(publishers, at, 3)
    assert answers(publishers) == []
    second.missing = False
    publishers.touch("p")
    assert answers(publishers) == [], "the first still waits"
    first.missing, first.late = False, ["e2"]
    publishers.touch("p")
    assert answers(publishers) == [msg.Unconfirmed(1, 1, ["e2"]), msg.Accepted(1, 3)]


def test_a_new_link_gets_the_exceptions_and_then_all_that_was_accepted():
    publishers, old, new = PublisherTable(BrokerLimits()), link("old"), link("new")
    opened(publishers, old)
    publisher = take(publishers, old, 1)
    publishers.single_out(publisher, msg.Refused(1, 1, "oversized", ""))
    take(publishers, old, 2)
    answers(publishers)
    publishers.lost(old)
    assert publishers.get(old, 1) is None
    assert opened(publishers, new, handle=9) == msg.Opened(9, "h", 5, 2, 128)
    assert list(publishers.again("p", 9)) == [msg.Refused(9, 1, "oversized", "")]
    assert answers(publishers) == [msg.Accepted(9, 2)]


def test_exceptions_that_are_kept_are_bounded_by_the_window():
    publishers, at = PublisherTable(BrokerLimits(publisher_window=8)), link()
    opened(publishers, at)
    publisher = publishers.get(at, 1)
    assert publisher is not None
    for seq in range(1, 50):
        publishers.single_out(publisher, msg.Refused(1, seq, "malformed", ""))
    assert [answer.seq for answer in publishers.again("p", 1)] == list(range(42, 50))


def test_a_name_belongs_to_its_newest_incarnation():
    publishers, one, two = PublisherTable(BrokerLimits()), link("one"), link("two")
    opened(publishers, one, incarnation=3)
    take(publishers, one, 1)
    assert opened(publishers, two, incarnation=2) is None
    assert opened(publishers, two, incarnation=4).last_seq == 0
    assert publishers.get(one, 1) is None
    assert len(publishers) == 1


def test_a_handle_that_is_used_again_leaves_its_older_publisher_without_a_link():
    publishers, at = PublisherTable(BrokerLimits()), link()
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
    publishers, one, two = PublisherTable(BrokerLimits()), link("one"), link("two")
    opened(publishers, one)
    opened(publishers, two)
    publishers.lost(one)
    publisher = publishers.get(two, 1)
    assert publisher is not None
    assert publisher.link is two


def test_only_those_who_are_away_are_forgotten():
    publishers, one, two = PublisherTable(BrokerLimits()), link("one"), link("two")
    opened(publishers, one, name="away")
    opened(publishers, two, name="here")
    publishers.lost(one)
    publishers.forget_idle(100.0, 200.0)
    assert len(publishers) == 2
    publishers.forget_idle(300.0, 200.0)
    assert set(publishers.by_name) == {"here"}


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
            assert publishers.wake_at(now) > now, "the head must wake to give credit"
    assert seq <= first + rate * now + 2 * max(rate, 1.0) + 1


def test_no_publisher_is_held_back_without_a_quota():
    publishers, at = PublisherTable(BrokerLimits()), link()
    opened(publishers, at)
    assert publishers.wake_at(0.0) == float("inf")


# -- what an identity may do


def granted(at: Link, **grant: Any) -> Link:
    at.identity, at.grant = "ann", ClientPermissions("ann", **grant)
    return at


def test_who_may_not_publish_cannot_open_and_is_told_so():
    publishers, at = PublisherTable(BrokerLimits()), granted(link(), publishes=False)
    with pytest.raises(WireError, match="ann may not publish") as refused:
        opened(publishers, at)
    assert refused.value.code == "role"
    assert (len(publishers), publishers.roles_refused) == (0, 1)


def test_who_may_not_publish_any_more_is_told_for_each_publisher_and_no_other():
    publishers, at, other = PublisherTable(BrokerLimits()), granted(link()), granted(link("d"))
    for handle in (1, 2):
        opened(publishers, at, handle, f"p{handle}")
    opened(publishers, other, name="q")
    granted(at, publishes=False)
    text = "ann may not publish; its roles lack publish"
    assert list(publishers.regranted(at, 0.0)) == [msg.Refused(1, 0, "role", text), msg.Refused(2, 0, "role", text)]
    assert publishers.get(at, 1) is publishers.get(at, 2) is None
    assert publishers.get(other, 1) is not None
    assert list(publishers.regranted(at, 0.0)) == []
    assert publishers.roles_refused == 2


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
    assert publishers.wake_at(0.4) == pytest.approx(0.6, abs=0.01)
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


# -- whose name it is


def owned(name: str) -> Link:
    at = link(name)
    at.identity = name
    return at


def test_a_name_belongs_to_the_identity_that_opened_it_first():
    publishers, ann, eve = PublisherTable(BrokerLimits()), owned("ann"), owned("eve")
    assert opened(publishers, ann, incarnation=5) is not None
    for incarnation in (1, 6, INCARNATIONS_BELOW - 1, 2**63 - 1):
        with pytest.raises(WireError, match="not permitted: publisher 'p' belongs to another identity; ") as refused:
            opened(publishers, eve, incarnation=incarnation)
        assert refused.value.code == "role"
    assert take(publishers, ann, 1).link is ann
    publishers.lost(ann)
    with pytest.raises(WireError, match="another identity"):
        opened(publishers, eve, incarnation=9)
    publishers.forget_idle(100.0, 50.0)
    assert opened(publishers, eve, incarnation=1) is not None, "a head forgets publishers that stay away"


@pytest.mark.parametrize("incarnation", [INCARNATIONS_BELOW, 2**63 - 1, 6 + INCARNATION_STEP])
def test_an_incarnation_that_jumps_is_refused(incarnation: int):
    publishers, ann = PublisherTable(BrokerLimits()), owned("ann")
    opened(publishers, ann, incarnation=5)
    with pytest.raises(WireError, match=f"incarnation {incarnation} is ") as refused:
        opened(publishers, ann, incarnation=incarnation)
    assert refused.value.code == "range"
    assert opened(publishers, ann, incarnation=5 + INCARNATION_STEP) is not None


def test_a_prefix_that_is_granted_outweighs_who_came_first():
    publishers, ann, eve = PublisherTable(BrokerLimits()), owned("ann"), owned("eve")
    opened(publishers, eve, name="feed-1", incarnation=INCARNATIONS_BELOW - 1)
    names = NameGrants({"feed-": frozenset({"ann"})})
    assert [(each.code, each.handle) for each in publishers.regranted(eve, 0.0, names)] == [("role", 1)]
    assert publishers.open(ann, msg.Open(1, "feed-1", 5), "h", 5, 0.0, names) is not None
    with pytest.raises(WireError, match="another identity"):
        publishers.open(eve, msg.Open(1, "feed-2", 5), "h", 5, 0.0, names)
    assert list(publishers.regranted(ann, 0.0, names)) == []


def test_a_restored_publisher_is_forgotten_only_once_it_has_been_away_from_this_head():
    """The machine may have been up for days: its clock says nothing of when the publisher was there."""
    publishers = PublisherTable(BrokerLimits())
    publishers.restore(PublisherKnown("p", 1, "c", 7), deque())
    publishers.forget_idle(1_000_000.0, 300.0)
    assert publishers.by_name["p"].last_seq == 7
    publishers.forget_idle(1_000_200.0, 300.0)
    assert "p" in publishers.by_name
    publishers.forget_idle(1_000_301.0, 300.0)
    assert "p" not in publishers.by_name
