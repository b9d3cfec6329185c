"""What a grant permits, and how a request beyond it is refused."""

from __future__ import annotations

import time

from plimsoll.core.permissions import (
    ALL_PERMISSIONS,
    INCARNATION_STEP,
    INCARNATIONS_BELOW,
    NO_NAME_GRANTS,
    NO_PERMISSIONS,
    ClientPermissions,
    NameGrants,
    foreign_name,
    incarnation_fault,
)


def test_who_may_do_everything_is_refused_nothing():
    assert ALL_PERMISSIONS.publish_refusal == ALL_PERMISSIONS.subscribe_refusal == ""


def test_a_refusal_names_the_identity_and_the_role_that_it_lacks():
    assert ClientPermissions("ann", publishes=False).publish_refusal == "ann may not publish; its roles lack publish"
    assert ClientPermissions("ann", publishes=False).subscribe_refusal == ""
    assert (
        ClientPermissions("ann", subscribes=False).subscribe_refusal
        == "ann may not subscribe; its roles lack subscribe"
    )
    assert NO_PERMISSIONS.publish_refusal
    assert NO_PERMISSIONS.subscribe_refusal


def test_feeds_are_read_by_role_and_by_name():
    all_feeds, some = ClientPermissions("ann"), ClientPermissions("ann", feeds=("quotes", "trades"))
    assert all_feeds.read_refusal("quotes") == some.read_refusal("quotes") == ""
    assert some.read_refusal("fires") == "ann may not read the feed fires; it may read quotes, trades"
    none = ClientPermissions("ann", feeds=())
    assert none.read_refusal("fires") == "ann may not read the feed fires; it may read no feed"
    assert NO_PERMISSIONS.read_refusal("fires")
    without = ClientPermissions("ann", reads=False, feeds=("fires",))
    assert without.read_refusal("fires") == "ann may not read feeds; its roles lack read"


def test_who_may_have_some_channels_alone_reads_no_feed_that_is_not_named():
    """A feed may hold the results of any channel, since its recorder may subscribe to all."""
    restricted = ClientPermissions("ann", channels=("fires",))
    assert restricted.read_refusal("quotes").endswith("so name the feeds that it may read")
    assert ClientPermissions("ann", channels=("fires",), feeds=("quotes",)).read_refusal("quotes") == ""


def test_the_longest_prefix_of_a_name_decides():
    names = NameGrants({"desk-": frozenset({"ann"}), "desk-7": frozenset({"bob", "cat"})})
    assert names.holders("desk-1") == {"ann"}
    assert names.holders("desk-77") == {"bob", "cat"}
    assert names.holders("desk") == NO_NAME_GRANTS.holders("desk-1") == frozenset()
    assert names.permits("ann", "desk-1", maker="eve")
    assert not names.permits("ann", "desk-7", maker="ann")
    assert not names.permits("eve", "desk-1", maker="eve")


def test_a_name_without_a_prefix_is_its_makers():
    assert NO_NAME_GRANTS.permits("ann", "x", maker="ann")
    assert not NO_NAME_GRANTS.permits("ann", "x", maker="eve")
    assert NO_NAME_GRANTS.permits("ann", "x", maker="")
    for names in (NO_NAME_GRANTS, NameGrants({"x": frozenset({"ann"})})):
        assert names.permits("", "x", maker="eve"), "an edge of an earlier release does not say whose it is"


def test_the_refusal_of_a_name_shows_no_control_characters():
    assert foreign_name("subscriber", "a\x1b[1m\n\u202e").startswith(
        "not permitted: subscriber 'a\\x1b[1m\\n\\u202e' belongs to another identity; "
    )


def test_incarnations_count_up_or_follow_the_clock():
    now = time.time_ns() // 1000
    assert incarnation_fault(now, 0) == incarnation_fault(now + 1, now) == incarnation_fault(2, 1) == ""
    assert incarnation_fault(1, now) == "", "an older one is refused as such"
    assert incarnation_fault(7 + INCARNATION_STEP, 7) == ""
    assert "more than 2^49 above the last one, 7" in incarnation_fault(8 + INCARNATION_STEP, 7)
    assert "not below 2^53" in incarnation_fault(INCARNATIONS_BELOW, 0)
