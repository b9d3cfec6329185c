"""Who leads, as stored: a standby is promoted if and only if it is in sync, and what is over does not come again."""

from __future__ import annotations

import pytest

from plimsoll.core.head.standby.leadership import (
    LEASE_SECONDS,
    SILENT_HEARTBEATS,
    HeadLeadership,
    leadership_status,
    silence_seconds,
    stored_leadership,
)

ALONE = HeadLeadership().begun(0)
IN_SYNC = ALONE.noted({"term": 1, "incarnation": 9, "sync": 1})


def test_a_standby_in_sync_is_promoted_in_the_next_term():
    assert HeadLeadership(1, 0, standby=9, sync=1) == IN_SYNC
    assert IN_SYNC.promoted() == HeadLeadership(2, 1, leads=9)
    assert IN_SYNC.promoted().begun(1) == HeadLeadership(3, 1)


def test_without_one_no_process_is_promoted():
    with pytest.raises(ValueError, match="no standby in sync"):
        ALONE.promoted()


@pytest.mark.parametrize(
    "status",
    [{}, {"term": 2, "incarnation": 9, "sync": 1}, {"term": 1, "incarnation": 9, "sync": 0}, {"term": 1, "sync": 1},
     {"term": 1, "incarnation": "9", "sync": True}],
)  # fmt: skip
def test_a_status_that_says_nothing_new_changes_nothing(status):
    assert ALONE.noted(status) == ALONE


def test_what_is_over_is_not_noted_again():
    alone = IN_SYNC.without_standby({})
    assert (alone.standby, alone.ended) == (0, 1)
    assert alone.noted({"term": 1, "incarnation": 9, "sync": 1}) == alone
    assert alone.noted({"term": 1, "incarnation": 9, "sync": 2}).standby == 9


def test_a_standby_that_was_never_noted_is_given_up_as_well():
    head = {"term": 1, "standby_in_sync": 9, "standby_syncs": 3}
    alone = ALONE.without_standby(head)
    assert alone.ended == 3
    assert alone.waits_in_vain(head)
    assert not alone.waits_in_vain({**head, "standby_in_sync": 0})
    assert not alone.waits_in_vain({**head, "standby_syncs": 4})
    assert not alone.waits_in_vain({**head, "term": 2})
    assert ALONE.without_standby({**head, "term": 2}).ended == 0


def test_it_is_read_as_it_was_stored():
    assert stored_leadership({"leadership": leadership_status(IN_SYNC)}) == IN_SYNC
    assert stored_leadership({}) == HeadLeadership()


def test_the_silence_after_which_another_may_lead_is_above_the_lease_and_the_patience_of_a_standby():
    assert silence_seconds(1.0) == 3.25
    assert silence_seconds(0.4) == LEASE_SECONDS + 0.1
    assert silence_seconds(2.0) == SILENT_HEARTBEATS * 2.0 + 0.5


@pytest.mark.parametrize("stored", [None, 7, [], {"leader": 7, "term": 3}, {"leader": -1, "term": 3}, {"leader": "1"}])
def test_of_a_status_that_someone_has_changed_only_a_leader_that_can_be_is_read(stored: object):
    assert stored_leadership({"leadership": stored}).leader == 0
