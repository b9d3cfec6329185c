"""Who leads a head of two processes that start again by themselves: each decision, and what each process is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.core.head.standby.leadership import LEASE_SECONDS, TERM_AFTER_ALL, HeadLeadership
from plimsoll.core.protocol import messages as msg
from plimsoll.mediator.head_pair import SILENT_SECONDS, PairDecision, ProcessView

IN_SYNC = HeadLeadership(3, 0, standby=22, sync=1, leads=11)
ALONE = HeadLeadership(3, 0, leads=11)


def waiting(incarnation: int, **more: Any) -> ProcessView:
    return ProcessView({"role": "waiting", "incarnation": incarnation}, unheard_seconds=0.1, **more)


def leader(term: int = 3, incarnation: int = 11, *, unheard: float = 0.1, **said: Any) -> ProcessView:
    views = {name: said.pop(name) for name in ("silent_seconds", "ended", "is_leaving") if name in said}
    status = {"role": "head", "incarnation": incarnation, "term": term, **said}
    return ProcessView(status, unheard_seconds=unheard, **views)


def standby(term: int = 3, incarnation: int = 22, sync: int = 1, *, linked: bool = True, **more: Any) -> ProcessView:
    status = {"role": "standby", "incarnation": incarnation, "term": term, "sync": sync, "linked": linked}
    return ProcessView(status, unheard_seconds=0.1, **more)


GONE = ProcessView()


def change(stored: HeadLeadership, first: ProcessView, second: ProcessView, **asked: Any) -> HeadLeadership:
    """The next value, or the same one."""
    found = PairDecision(stored, (first, second), **asked).change()
    return stored if found is None else found.after


def commands(stored: HeadLeadership, first: ProcessView, second: ProcessView, **asked: Any) -> list[tuple[int, Any]]:
    return list(PairDecision(stored, (first, second), **asked).commands())


def test_the_first_process_leads_first_and_is_told_so_until_it_does():
    stored = change(HeadLeadership(), waiting(11), waiting(22))
    assert stored == HeadLeadership(1, 0, leads=11)
    assert commands(stored, waiting(11), waiting(22)) == [(0, msg.Lead(1, 11))]
    assert commands(stored, leader(1), waiting(22)) == [(1, msg.Follow(22))]


def test_the_second_one_does_not_lead_first():
    """Process 0 may have been a head without a standby until now, and still be one."""
    assert change(HeadLeadership(), GONE, waiting(22)) == HeadLeadership()


def test_the_standby_says_itself_that_it_is_in_sync():
    said = leader(standby_in_sync=22, standby_syncs=1)
    assert change(ALONE, said, standby(sync=0)) == ALONE
    assert change(ALONE, said, standby()) == IN_SYNC


@pytest.mark.parametrize(
    "first",
    [waiting(12), ProcessView(ended=frozenset({11})), leader(unheard=0.5, ended=frozenset({11}))],
    ids=["another incarnation answers", "its pod is gone", "its container has ended"],
)
def test_a_standby_in_sync_leads_when_the_head_has_ended(first: ProcessView):
    after = change(IN_SYNC, first, standby())
    assert after == HeadLeadership(4, 1, leads=22)
    assert (1, msg.Promote(4)) in commands(after, first, standby())


def test_nor_does_an_operator_that_starts_then_give_the_term_to_any_other():
    """The mediator that stored the promotion has ended before it said so."""
    after = HeadLeadership(4, 1, leads=22)
    assert commands(after, GONE, standby()) == [(1, msg.Promote(4))]
    assert change(after, waiting(12), standby()) == after
    assert change(after, waiting(12), waiting(23)) == HeadLeadership(5, 1, leads=23)


def test_a_head_is_not_replaced_by_a_standby_that_is_not_there():
    assert change(IN_SYNC, waiting(12), ProcessView(standby().status, unheard_seconds=30)) == IN_SYNC
    assert change(IN_SYNC, waiting(12), waiting(23)) == HeadLeadership(3, 0, ended=1, leads=11)


WILD = 2**53 - 1
"""What the definition lets anyone with rights write into the status."""


def test_a_term_that_no_process_has_reached_keeps_no_standby_from_leading():
    wild = replace(IN_SYNC, term=WILD)
    after = change(wild, GONE, standby())
    assert after == IN_SYNC
    assert change(after, waiting(12), standby()).term == 4
    assert change(wild, leader(), GONE) == IN_SYNC
    assert change(wild, GONE, GONE) == wild, "nobody says which it was"


def test_a_term_that_nobody_knows_any_more_is_followed_by_a_higher_one():
    wild = HeadLeadership(WILD, 0, leads=11)
    assert change(wild, GONE, waiting(23)) == wild, "the head may live, and has not answered yet"
    after = change(wild, waiting(12), waiting(23))
    assert after == replace(wild, term=TERM_AFTER_ALL)
    begun = change(after, waiting(12), waiting(23))
    assert begun == HeadLeadership(TERM_AFTER_ALL + 1, 0, leads=12)
    led = leader(begun.term, 12)
    assert change(begun, led, waiting(23)) == begun, "it is no number of someone else"
    assert commands(begun, led, waiting(23)) == [(1, msg.Follow(23))]


def test_an_end_that_no_process_has_reached_keeps_no_head_waiting():
    said = leader(standby_in_sync=22, standby_syncs=1)
    assert change(replace(IN_SYNC, ended=WILD), said, standby()) == IN_SYNC, "the pair stays in sync"
    for wild in (replace(ALONE, ended=WILD), replace(IN_SYNC, sync=WILD)):
        after = change(wild, said, GONE)
        assert after == replace(ALONE, ended=1)
        assert commands(after, said, GONE) == [(0, msg.GoOnAlone(3, 1))]
        assert change(after, said, standby(sync=1)) == after, "what is over does not come again"
        assert change(after, leader(standby_in_sync=22, standby_syncs=2), standby(sync=2)).sync == 2
    assert commands(replace(ALONE, ended=10**8), said, GONE) == [(0, msg.GoOnAlone(3, 1))]


def test_a_head_that_neither_the_mediator_nor_the_standby_hears_is_replaced():
    late = LEASE_SECONDS + 0.1
    assert change(IN_SYNC, leader(unheard=late), standby()) == IN_SYNC
    assert change(IN_SYNC, leader(unheard=LEASE_SECONDS - 0.1), standby(silent_seconds=1)) == IN_SYNC
    found = PairDecision(IN_SYNC, (leader(unheard=late), standby(silent_seconds=1))).change()
    assert found is not None
    assert (found.after.term, found.ends) == (4, 0), "it holds connections"


def test_one_that_comes_back_behind_that_is_told_to_end_and_so_is_not_followed():
    after = HeadLeadership(4, 1, leads=22)
    new = leader(4, 22)
    assert commands(after, leader(3), new) == [(0, msg.Replaced(4))]
    assert commands(after, waiting(12), new) == [(0, msg.Follow(12))]


def test_a_planned_change_asks_the_head_to_leave_and_promotes_once_it_has_said_goodbye():
    asked = {"hands_over": "pod h-0 has earlier settings"}
    assert change(IN_SYNC, leader(), standby(), **asked) == IN_SYNC
    assert commands(IN_SYNC, leader(), standby(), **asked) == [(0, msg.Leave())]
    assert commands(ALONE, leader(), standby(sync=0), **asked) == []
    assert change(IN_SYNC, leader(), standby(linked=False), **asked).term == 4
    found = PairDecision(IN_SYNC, (leader(), standby(linked=False)), hands_over=asked["hands_over"]).change()
    assert found is not None
    assert found.event is not None
    assert (found.event.type, found.event.reason) == ("Normal", "Promoted")


def test_one_whose_pod_is_to_end_leaves_by_itself():
    assert commands(IN_SYNC, leader(is_leaving=True), standby()) == []
    assert change(IN_SYNC, leader(is_leaving=True), standby()) == IN_SYNC
    assert change(IN_SYNC, leader(is_leaving=True), standby(linked=False)).term == 4


def test_a_process_that_waited_and_is_over_is_given_no_term_after_the_other():
    """Its container has ended a second ago: its last answer is fresh, and is of nobody."""
    over = ProcessView(status=waiting(11).status, unheard_seconds=1.5, ended=frozenset({11}))
    for stored in (ALONE, HeadLeadership(3, 0, leads=10)):
        assert change(stored, over, GONE) == stored


def test_a_standby_that_has_ended_is_given_up_in_the_store_before_the_head_is_told():
    said = leader(standby_in_sync=22, standby_syncs=1)
    after = change(IN_SYNC, said, waiting(23))
    assert after == HeadLeadership(3, 0, ended=1, leads=11)
    assert (0, msg.GoOnAlone(3, 1)) in commands(after, said, waiting(23))


def test_one_that_the_store_never_knew_is_given_up_too():
    said = leader(standby_in_sync=22, standby_syncs=2)
    assert change(ALONE, said, waiting(23)) == HeadLeadership(3, 0, ended=2, leads=11)


def test_a_silent_standby_is_given_up_by_a_head_that_lives():
    said: dict[str, Any] = {"standby_in_sync": 22, "standby_syncs": 1, "silent_seconds": SILENT_SECONDS + 0.1}
    assert change(IN_SYNC, leader(**said), standby()).standby == 0
    lost = ProcessView(standby().status, unheard_seconds=9)
    assert change(IN_SYNC, leader(unheard=9, **said), lost) == IN_SYNC


@pytest.mark.parametrize(("unheard", "silent", "standby_after"), [(3.1, 0.1, 0), (2.9, 0.1, 22), (3.1, 0.0, 22)])
def test_one_that_the_mediator_hears_no_more_either_is_given_up_at_once(
    unheard: float, silent: float, standby_after: int
):
    head = leader(standby_in_sync=22, standby_syncs=1, silent_seconds=silent)
    assert change(IN_SYNC, head, ProcessView(standby().status, unheard_seconds=unheard)).standby == standby_after


def test_a_head_that_was_alone_starts_again_with_what_it_has():
    assert change(ALONE, waiting(12), waiting(22)) == HeadLeadership(4, 0, leads=12)
    assert change(ALONE, waiting(12), standby(sync=0)) == HeadLeadership(4, 0, leads=12)


def test_the_other_one_leads_instead_only_where_nothing_is_on_a_disk():
    gone = ProcessView(ended=frozenset({11}))
    assert change(ALONE, gone, waiting(22)) == HeadLeadership(4, 1, leads=22)
    assert change(ALONE, gone, waiting(22), has_disk=True) == ALONE
    assert change(ALONE, GONE, waiting(22)) == ALONE


def test_a_process_that_follows_without_right_to_lead_starts_over():
    assert commands(HeadLeadership(4, 1, leads=23), GONE, standby(incarnation=22)) == [(1, msg.Replaced(4))]


def test_a_head_that_is_to_have_no_standby_any_more_ends_with_the_first_process_alone():
    asked = {"wants": False}
    in_second = HeadLeadership(3, 1, standby=11, sync=1, leads=22)
    leaves = commands(in_second, standby(incarnation=11), leader(incarnation=22), hands_over="none is wanted", **asked)
    assert leaves == [(1, msg.Leave())]
    said = leader(standby_in_sync=22, standby_syncs=1)
    assert commands(IN_SYNC, said, standby(), **asked) == [], "the store says first that it is over"
    alone = change(IN_SYNC, said, standby(), **asked)
    assert alone == HeadLeadership(3, 0, ended=1, leads=11)
    assert commands(alone, said, standby(), **asked) == [(0, msg.GoOnAlone(3, 1)), (1, msg.Leave())]
    assert change(IN_SYNC, said, waiting(23), **asked).standby == 0
    assert commands(ALONE, leader(), waiting(23), **asked) == []
    assert change(ALONE, leader(standby_in_sync=22, standby_syncs=1), standby(), **asked) == ALONE


def test_one_that_is_removed_while_the_head_has_died_leads_instead_of_being_given_up():
    """Found in the exploration of `standby_switch`."""
    after = change(IN_SYNC, waiting(12), standby(), wants=False)
    assert after == HeadLeadership(4, 1, leads=22)
    gone = PairDecision(IN_SYNC, (leader(unheard=2.5), standby()), wants=False)
    assert gone.change() is None, "whether the head lives is not known yet"


def test_a_head_that_runs_without_a_standby_is_given_its_first_term_as_it_is():
    plain = leader(0)
    after = change(HeadLeadership(), plain, GONE)
    assert after == HeadLeadership(1, 0, leads=11)
    assert commands(after, plain, waiting(22)) == [(0, msg.Lead(1, 11))]
    assert commands(after, leader(1), waiting(22)) == [(1, msg.Follow(22))]
    assert change(after, leader(1), waiting(22)) == after


def test_and_so_is_one_that_has_started_again_since_it_had_a_standby_last():
    plain = leader(0, 12)
    assert commands(ALONE, plain, GONE) == [], "above all it is not told that it was replaced"
    assert change(ALONE, plain, waiting(22)) == HeadLeadership(4, 0, leads=12)
    assert change(ALONE, plain, GONE, wants=False) == ALONE
    assert change(ALONE, leader(), GONE) == ALONE, "one that has gone on since keeps its term"


def test_one_that_leads_untold_beside_a_standby_that_has_taken_over_ends():
    assert change(IN_SYNC, leader(0, 12), standby()) == HeadLeadership(4, 1, leads=22)
    assert (0, msg.Replaced(4)) in commands(HeadLeadership(4, 1, leads=22), leader(0, 12), leader(4, 22))


def test_a_head_whose_term_was_lost_with_the_status_leads_on():
    said = leader(7, standby_in_sync=22, standby_syncs=2)
    after = change(HeadLeadership(), said, standby(7, sync=2))
    assert after == HeadLeadership(7, 0, ended=2, leads=11)
    assert commands(after, said, standby(7, sync=2)) == [(0, msg.GoOnAlone(7, 2))]
    assert change(after, leader(7), standby(7, sync=3)) == HeadLeadership(7, 0, standby=22, sync=3, ended=2, leads=11)


def test_an_old_answer_says_nothing():
    stale = ProcessView(waiting(12).status, unheard_seconds=5)
    assert change(IN_SYNC, stale, standby()) == IN_SYNC
    assert commands(ALONE, stale, stale) == []
