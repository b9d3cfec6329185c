"""Each rule of the hand-over of slices, broken in the machines of the product: the run that notices it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.core.head.groups import test_consumer_group as runs

from plimsoll.core.client.assigned_slices import AssignedSlices
from plimsoll.core.client.group_beats import GroupBeats
from plimsoll.core.client.slice_subscriber import SliceSubscriber
from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.groups.group_memory import GroupMemory
from plimsoll.core.head.groups.slice_attachments import SliceAttachments
from plimsoll.core.protocol import messages as msg


def assigned_before_it_is_released(patch: pytest.MonkeyPatch) -> None:
    original = ConsumerGroup.revoke  # the rule that is broken

    def revoke(self: Any, each: Any, taker: str) -> None:
        original(self, each, taker)
        self.assign(each, self.members[taker])

    patch.setattr(ConsumerGroup, "revoke", revoke)


def released_with_items_in_hand(patch: pytest.MonkeyPatch) -> None:
    def on_revoked(self: Any, revoked: msg.SliceRevoked) -> None:
        owned = self._slices.get(revoked.number)
        if owned is not None and owned.assignment == revoked.epoch:
            self._release(owned)

    patch.setattr(AssignedSlices, "on_revoked", on_revoked)


def from_what_has_come_instead_of_what_is_acknowledged(patch: pytest.MonkeyPatch) -> None:
    def place(self: Any, *, is_released: bool = False) -> msg.SlicePlace:
        return msg.SlicePlace(self.slice, self.assignment, self.stream.token, self.stream.marks(), is_released)

    patch.setattr(SliceSubscriber, "place", place)


def nothing_is_marked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SliceSubscriber, "_may_have_been_given", lambda self, item: False)


def a_member_without_answers_goes_on(patch: pytest.MonkeyPatch) -> None:
    original = GroupBeats.begin

    def begin(self: Any, joined: msg.GroupJoined) -> None:
        original(self, msgspec.structs.replace(joined, lease_seconds=1e9))

    patch.setattr(GroupBeats, "begin", begin)


def a_restarted_head_does_not_wait(patch: pytest.MonkeyPatch) -> None:
    original = ConsumerGroup.__init__

    def init(self: Any, host: Any, name: str, definition: Any, times: Any, hold_until: float) -> None:
        original(self, host, name, definition, times, 0.0)

    patch.setattr(ConsumerGroup, "__init__", init)
    patch.setattr(GroupMemory, "hold", lambda self, until: None)


def anyone_may_attach_a_slice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SliceAttachments, "refusal", lambda self, resume: None)


def a_slice_is_covered_by_its_own_place_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SliceAttachments, "covered_since", lambda self, subscriber: None)


def moved_a_hundred_times() -> None:
    runs.test_a_slice_that_moves_a_hundred_times_under_load_is_processed_once(2)


def without_a_member_beside_another_cluster() -> None:
    runs.test_a_slice_without_a_member_loses_nothing_when_its_edge_dies(True)


def a_slow_giver() -> None:
    runs.test_other_slices_go_on_while_one_moves_whose_giver_is_slow()


RULES: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], None]]] = [
    (assigned_before_it_is_released, moved_a_hundred_times),
    (released_with_items_in_hand, a_slow_giver),
    (
        from_what_has_come_instead_of_what_is_acknowledged,
        runs.test_a_giver_with_500_items_unprocessed_gives_them_all_to_the_taker,
    ),
    (nothing_is_marked, runs.test_a_dead_consumers_slices_go_on_within_ten_seconds_and_what_it_had_is_marked),
    (a_member_without_answers_goes_on, runs.test_one_that_is_cut_off_stops_by_itself_before_another_goes_on),
    (a_restarted_head_does_not_wait, runs.test_a_restarted_head_asks_who_has_what_and_moves_nothing),
    (anyone_may_attach_a_slice, runs.test_a_client_that_was_not_assigned_a_slice_may_not_attach_it),
    (a_slice_is_covered_by_its_own_place_alone, without_a_member_beside_another_cluster),
]


@pytest.mark.parametrize(("rule", "run"), RULES, ids=lambda each: each.__name__)
def test_each_broken_rule_is_noticed(
    rule: Callable[[pytest.MonkeyPatch], None], run: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rule(monkeypatch)
    with pytest.raises(AssertionError):
        run()
