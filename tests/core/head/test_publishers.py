"""Publishers at a head: identity, names, handles, and what is remembered of those that are away."""

from __future__ import annotations

from collections import deque

import pytest
from tests.core.head.publishing import granted, link, opened, take

from plimsoll.core.config import BrokerLimits
from plimsoll.core.head.durability.records import PublisherKnown
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.permissions import INCARNATION_STEP, INCARNATIONS_BELOW, NameGrants
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.link import Link


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


# -- what an identity may do


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


# -- whose name it is


def owned(name: str) -> Link:
    at = link(name)
    at.identity = name
    return at


def test_an_identity_has_no_more_names_than_it_leaves_and_those_that_it_has_closed_count():
    publishers = PublisherTable(BrokerLimits(max_publishers=8))
    for identity, most in (("ann", 4), ("bob", 2), ("eve", 1)):
        at = owned(identity)
        for number in range(most):
            opened(publishers, at, name=f"{identity}{number}")
            publishers.close(at, 1)
        with pytest.raises(WireError, match="places left for others") as refused:
            opened(publishers, at, name=f"{identity}{most}")
        assert refused.value.code == "full"
        assert opened(publishers, at, name=f"{identity}0", incarnation=5) is not None, "it has this name already"
        publishers.lost(at)
    with pytest.raises(WireError, match="4 publishers of this identity, and 1 places left for others"):
        opened(publishers, owned("ann"), name="another")
    assert opened(publishers, owned("joe"), name="joe") is not None
    with pytest.raises(WireError, match="this head has its 8 publishers"):
        opened(publishers, owned("tom"), name="tom")
    publishers.lose(publishers.by_name["joe"])
    publishers.forget_idle(300.0, 200.0)
    for number in range(4):
        assert opened(publishers, owned("tom"), name=f"tom{number}") is not None


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
    publishers.forget_idle(300.0, 50.0)
    with pytest.raises(WireError, match="another identity"):
        opened(publishers, eve, incarnation=9)
    publishers.claims.expire(361.0)
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
