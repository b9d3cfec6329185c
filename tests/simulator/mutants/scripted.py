"""Mutants that no run of a world has found so far, each with a scripted test that finds it.

Most of them show only when two rare events coincide. The test brings real machines, or the one that keeps the rule,
into that situation; with the rule broken, and its partners intact, the test has to fail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import MappingProxyType
from typing import Any, Final

from tests.conformance import test_scenarios as scenarios
from tests.core.client import test_assigned_slices as assigned_slices
from tests.core.client import test_caching_slices as caching_slices
from tests.core.edge import test_attachment as attachments
from tests.core.edge import test_bundle_meter as bundle_meter
from tests.core.edge import test_pending_subacks as pending_subacks
from tests.core.edge import test_queues as queues
from tests.core.edge.handover import test_source_answers as source_answers
from tests.core.edge.handover import test_source_behind as source_behind
from tests.core.edge.handover import test_standby_list as standby_list
from tests.core.head import test_bundles as bundles
from tests.core.head import test_held_places as held_places
from tests.core.head import test_log as log
from tests.core.head import test_membership as membership
from tests.core.head import test_outbox as outbox
from tests.core.head import test_publisher_moves as publisher_moves
from tests.core.head.durability import test_continuation as continuation
from tests.core.head.durability.conftest import MemoryFiles
from tests.core.head.groups import test_cache_sessions as cache_sessions
from tests.core.head.groups import test_group_links as group_links
from tests.core.head.groups import test_restart as group_restart
from tests.core.head.groups import test_slice_moves as slice_moves
from tests.core.head.groups import test_slices as slices
from tests.core.head.handover import test_between_guards as between
from tests.core.head.handover import test_commands as commands
from tests.core.head.handover import test_coordinator as coordinator
from tests.core.head.handover import test_cut_decision as cut_decision
from tests.core.head.handover import test_dispatch as handovers
from tests.core.head.handover import test_dispatch_between as handovers_between
from tests.core.head.handover import test_remote_members as remote_members
from tests.core.head.standby import test_log_copy as log_copy
from tests.core.head.standby import test_log_feed as log_feed
from tests.core.head.standby.conftest import Pair
from tests.core.policies.delay_sensitive import test_head_fleet as head_fleet
from tests.core.policies.delay_sensitive import test_head_relief as head_relief
from tests.core.session.triggers import test_bundle_tables as bundle_tables
from tests.core.session.triggers import test_head_overload as head_overload
from tests.simulator import test_head_kills as head_kills

Test = tuple[Callable[..., None], tuple[Any, ...]]
"""A test, and its arguments."""


def _moving(test: Callable[[publisher_moves.Moving], None]) -> Test:
    """A test of the moves of publishers at heads, with a scripted client of its own for each run."""

    @wraps(test)
    def run() -> None:
        test(publisher_moves.Moving())

    return run, ()


def _recovered(test: Callable[[Any], None]) -> Test:
    """A test of a head that recovers, with files of its own for each run."""

    @wraps(test)
    def run() -> None:
        test(MemoryFiles())

    return run, ()


def _paired(test: Callable[[Any], None]) -> Test:
    """A test of a head's feed and a standby's follower, with a pair of its own for each run."""

    @wraps(test)
    def run() -> None:
        test(Pair())

    return run, ()


def _conformance(scenario: str) -> Test:
    """A scenario of the conformance peer, which our own client has to keep to."""
    return scenarios.test_our_own_client_keeps_to_it, (scenarios.BY_NAME[scenario],)


SCRIPTED: Final = MappingProxyType(
    {
        "lost-answer-is-passed-over": (
            group_links.test_an_answer_that_is_lost_on_the_way_makes_the_member_join_again,
            (),
        ),
        "lost-word-is-passed-over": (
            group_links.test_what_a_member_says_and_is_lost_on_the_way_makes_it_join_again,
            (),
        ),
        "silent-head-is-waited-for": (group_links.test_a_member_whose_question_is_lost_asks_again, ()),
        "answer-of-another-head-is-believed": (
            group_links.test_an_answer_that_is_not_for_this_way_is_passed_over,
            ("x", 7),
        ),
        "answer-to-an-earlier-life-is-believed": (
            group_links.test_an_answer_that_is_not_for_this_way_is_passed_over,
            ("h", 6),
        ),
        "gone-elsewhere-is-called-stayed": (
            slice_moves.test_what_was_on_its_way_to_a_taker_that_dies_has_not_stayed_but_gone_to_another,
            (),
        ),
        "told-giver-is-decided-early": (
            slice_moves.test_what_was_on_its_way_to_a_taker_that_dies_has_not_stayed_but_gone_to_another,
            (),
        ),
        "stopped-drain-stays-drained": (
            slice_moves.test_a_drain_that_is_stopped_before_it_begins_leaves_its_consumer_as_it_was,
            (),
        ),
        "late-command-is-carried-out": (slice_moves.test_a_command_that_comes_after_its_stop_moves_nothing, ()),
        "quiet-group-is-announced": (slice_moves.test_a_group_with_next_to_no_work_is_left_as_it_is, (0.02, False)),
        "whole-restart-is-not-learned": (
            group_restart.test_one_that_comes_before_those_who_had_the_slices_begins_them_again_behind_the_gap,
            (),
        ),
        "earlier-member-counts-as-the-last": (
            group_restart.test_what_one_may_have_had_that_died_before_it_could_say_so_is_marked,
            (),
        ),
        "older-claim-is-kept": (
            group_restart.test_of_two_that_claim_a_slice_the_one_with_the_newer_epoch_has_it,
            (),
        ),
        "cover-begins-with-the-attachment": (
            group_restart.test_what_a_head_accepts_while_it_waits_for_members_is_given_to_them,
            (),
        ),
        "publisher-leaves-for-nothing": (head_relief.test_those_that_bring_no_relief_stay_and_say_why, ()),
        "what-comes-back-is-not-counted": (
            head_fleet.test_subscribers_at_the_source_get_everything_back_over_the_way,
            (),
        ),
        "target-would-shed-next": (head_relief.test_a_target_stays_below_its_lower_threshold, ()),
        "heads-on-the-way-are-not-asked": (head_relief.test_nor_does_a_head_on_the_way_get_too_much, ()),
        "publishers-of-a-topic-part": (head_relief.test_every_publisher_goes_or_has_a_reason, (75,)),
        "one-report-is-enough": (head_overload.test_one_report_is_not_enough_and_by_the_letter_it_is, ()),
        "heads-are-relieved-at-once": (head_overload.test_heads_are_relieved_one_after_another, ()),
        "head-that-takes-some-is-asked": (
            head_overload.test_a_head_that_takes_publishers_of_another_session_is_no_target,
            (),
        ),
        "who-stayed-is-asked-again": (head_overload.test_clients_that_do_not_move_are_left_alone_and_others_go, ()),
        "no-pause-after-nothing": (
            head_overload.test_where_no_head_is_low_it_ends_with_that_reason_and_asks_again_later_and_later,
            (),
        ),
        "merged-cache-is-not-seen": (
            caching_slices.test_nothing_is_given_before_the_givers_cache_is_there_and_then_both_in_order,
            (),
        ),
        "taker-goes-on-behind-its-own-place": (
            caching_slices.test_nothing_is_given_before_the_givers_cache_is_there_and_then_both_in_order,
            (),
        ),
        "taker-keeps-a-session-that-is-over": (
            cache_sessions.test_a_taker_forgets_what_it_has_cached_when_the_session_is_over,
            (),
        ),
        "second-death-forgets-the-first": (
            slices.test_an_end_says_who_was_to_get_it_and_keeps_what_may_have_been_given,
            (),
        ),
        "older-assignment-is-believed": (slices.test_only_its_holder_under_its_epoch_is_believed, ()),
        "cut-off-member-forgets-its-places": (
            assigned_slices.test_a_member_that_has_stopped_by_itself_says_so_with_how_far_it_had_got,
            (),
        ),
        "release-is-said-once": (assigned_slices.test_what_a_member_has_released_is_part_of_its_next_join, ()),
        "go-waits-for-no-answer": _conformance("publisher-moves"),
        "standby-publishes": _conformance("publisher-moves"),
        "return-leaves-the-standby": _conformance("publisher-stays"),
        "waits-for-ever": _conformance("publisher-returns"),
        "returns-once": _conformance("publisher-returns"),
        "cut-before-the-edges-confirm": _moving(publisher_moves.test_go_waits_for_confirmations_of_edges),
        "cut-without-a-marker": _moving(publisher_moves.test_a_move_record_by_record),
        "arrives-before-its-marker": _moving(publisher_moves.test_a_move_record_by_record),
        "arrival-is-not-reported": _moving(publisher_moves.test_a_move_record_by_record),
        "late-go-is-obeyed": _moving(
            publisher_moves.test_go_of_a_publisher_that_is_decided_cuts_nothing_while_others_are_under_way
        ),
        "lost-link-decides-nothing": _moving(
            publisher_moves.test_go_of_a_publisher_that_is_decided_cuts_nothing_while_others_are_under_way
        ),
        "stays-behind-the-cut": _moving(publisher_moves.test_behind_its_cut_a_publisher_does_not_stay),
        "older-move-opens-it": _moving(publisher_moves.test_a_standby_of_another_move_does_not_take_the_marker),
        "standby-outlives-the-way": _moving(publisher_moves.test_a_standby_ends_with_the_way_to_the_head_that_decides),
        "standby-outlives-its-link": _moving(publisher_moves.test_a_standby_ends_with_close_with_its_link_or_in_time),
        "holes-are-taken": _moving(publisher_moves.test_a_number_above_the_next_is_not_taken),
        "who-has-left-is-opened-again": _moving(
            publisher_moves.test_a_publisher_that_has_left_is_sent_its_last_number_and_may_return
        ),
        "deposed-mediator-moves-publishers": _moving(
            publisher_moves.test_a_command_is_obeyed_once_and_by_the_newest_mediator_only
        ),
        "list-is-cut-before-it-is-whole": (standby_list.test_install_does_not_take_a_list_that_is_not_whole, ()),
        "deposed-mediator-is-obeyed": (commands.test_every_command_of_a_lower_mediator_epoch_is_refused, ()),
        "other-head-epoch-is-obeyed": (commands.test_another_epoch_of_the_head_is_refused_but_may_be_asked, ()),
        "serves-whom-it-has-closed": (source_answers.test_the_answer_says_that_a_closed_member_is_away, ()),
        "asks-for-ever": (
            coordinator.test_a_source_that_does_not_answer_in_time_leaves_the_outcome_unknown,
            (),
        ),
        "cut-request-early": (between.test_the_cut_does_not_pass_a_list_that_waits, ()),
        "marker-without-compare": (cut_decision.test_the_marker_cuts_the_named_members_that_the_source_still_owns, ()),
        "remote-members-are-not-busy": (handovers_between.test_a_guest_is_busy_here, ()),
        "drains-beyond-the-cut": (queues.test_a_blocked_one_fetches_what_is_before_its_cut_and_then_ends, (0,)),
        "cuts-unattached-members": (coordinator.test_at_the_cut_those_that_are_not_attached_stay, ()),
        "gone-epoch-is-forgotten": (
            membership.test_an_older_resume_is_released_even_behind_an_owner_that_has_gone,
            (),
        ),
        "remote-member-outlives-resume": (
            remote_members.test_a_resume_that_names_no_session_ends_the_remote_member_and_undoes_it_before_its_cut,
            (),
        ),
        "older-resume-is-not-released": (
            membership.test_an_older_resume_is_released_even_behind_an_owner_that_has_gone,
            (),
        ),
        "suback-before-resumed": (
            pending_subacks.test_nothing_is_promised_before_there_is_a_place_or_after_the_end,
            (),
        ),
        "one-bad-member-is-all": (
            handovers.test_a_failed_compare_and_swap_aborts_that_member_at_the_target_only,
            (),
        ),
        "revoked-without-compare": (
            cut_decision.test_by_replay_who_has_another_owner_by_now_is_not_revoked,
            (),
        ),
        "gap-with-offsets-of-its-last": (
            log.test_what_is_lost_between_two_places_has_the_highest_offset_of_each_origin,
            (),
        ),
        "gaps-cross-messages": (outbox.test_holes_are_split_at_in_band_messages_and_those_are_never_lost, ()),
        "expires-any-owner": (
            between.test_the_end_of_a_lease_that_comes_late_does_not_end_what_has_begun_elsewhere,
            (),
        ),
        "restart-report-comes-last": (
            between.test_what_was_said_to_a_head_that_has_gone_is_not_said_to_the_next,
            (),
        ),
        "any-owner-is-adopted": (
            between.test_of_two_edges_that_serve_a_subscriber_when_the_head_restarts_one_is_left,
            (),
        ),
        "loser-is-not-released": (
            between.test_of_two_edges_that_serve_a_subscriber_when_the_head_restarts_one_is_left,
            (),
        ),
        "neighbour-restart-is-silent": (between.test_what_a_neighbour_had_for_us_and_took_with_it_is_told, ()),
        "mediator-is-forgotten": (
            handovers.test_a_mediator_epoch_reaches_all_edges_and_neighbors_and_outlives_the_head,
            (),
        ),
        "acknowledges-while-starting": (
            between.test_nothing_is_acknowledged_while_it_is_not_known_who_else_there_is,
            (),
        ),
        "orphans-stay": (handovers_between.test_when_who_decides_is_lost_the_guests_are_orphans, ()),
        "fetched-gap-reaches-beyond-the-cut": (
            source_behind.test_a_gap_of_the_log_that_reaches_behind_the_cut_says_nothing_of_the_rest,
            (),
        ),
        "edge-takes-older-ranges": (bundle_meter.test_ranges_are_those_of_the_newest_table, ()),
        "owner-that-is-gone-stays": (
            bundles.test_an_owner_that_takes_no_newcomers_loses_the_bundle_at_the_next_lookup,
            ("cordoned",),
        ),
        "releases-repeat": (bundles.test_a_bundle_is_released_once_for_each_number, ()),
        "drawn-edge-is-no-owner": (
            bundles.test_the_first_unit_of_a_bundle_gives_it_an_owner_and_the_others_follow,
            (),
        ),
        "units-outstay-a-release": (bundle_meter.test_a_release_counts_once, ()),
        "edge-releases-repeat": (bundle_meter.test_a_release_counts_once, ()),
        "releases-are-not-reported": (
            bundles.test_a_release_that_edges_have_seen_is_not_carried_out_by_the_next_life_of_the_head,
            (),
        ),
        "late-attachment-owns-nothing": (
            bundles.test_a_unit_that_attaches_by_an_older_answer_gives_its_bundle_an_owner,
            (),
        ),
        "vacant-bundle-stays-vacant": (
            bundles.test_a_bundle_whose_release_is_not_repeated_is_its_units_again,
            (),
        ),
        "bundle-is-not-assigned": (
            bundle_tables.test_the_new_owner_is_told_of_until_loads_have_settled_since_moves_may_be_over_before_a_table_arrives,
            (),
        ),
        "evicted-is-not-missed": _recovered(
            continuation.test_a_neighbour_that_was_away_for_longer_than_the_log_goes_back_gets_a_gap
        ),
        "copy-forgets-who-sent-it": (
            log_copy.test_who_sent_what_is_known_so_that_nothing_goes_back_to_a_neighbour,
            (),
        ),
        "copied-log-is-acknowledged-early": (
            log_copy.test_it_ends_only_when_all_that_neighbours_were_told_is_here_has_been_dealt_with,
            (),
        ),
        "term-is-given-twice": _paired(
            log_feed.test_a_head_that_has_no_term_yet_admits_no_standby_and_takes_the_first_that_it_is_given
        ),
        "admits-against-its-file": _paired(log_feed.test_a_standby_is_admitted_only_while_the_heads_own_file_names_one),
        "sources-let-go-at-the-cut": (
            held_places.test_a_cut_leaves_the_place_at_the_source_until_the_member_is_there,
            (),
        ),
        "ending-places-go-with-their-head": (
            head_kills.test_there_is_no_gap_in_a_tree_for_members_that_sleep_behind_their_cut,
            (head_kills.ASLEEP[0],),
        ),
        "places-are-released-at-once": (held_places.test_a_place_is_released_once_another_edge_has_taken_it, ()),
        "resumes-take-over-nothing": (
            attachments.test_a_resume_takes_over_the_place_of_the_attachment_before,
            ({}, True),
        ),
        "resumes-do-not-wait-for-edges": _recovered(
            continuation.test_a_resume_waits_until_all_edges_have_reported_to_a_head_of_a_tree
        ),
        "older-resumes-are-released-at-once": (
            held_places.test_an_older_resume_of_an_edge_that_keeps_the_place_waits_as_well,
            (),
        ),
        "gap-behind-the-cut": (source_behind.test_a_block_that_lasts_ends_with_a_gap_up_to_the_cut_at_most, ()),
    }
)


def place(name: str) -> str:
    """The path and name of the test that finds a mutant."""
    test, _ = SCRIPTED[name]
    path = test.__code__.co_filename
    return f"{path[path.rindex('tests/') :]}::{test.__name__}"
