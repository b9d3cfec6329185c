"""The audit of moved slices: what members have counted, against what the log has; and each fault that it is to see."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.group_mediator import GroupMediator
from tests.core.head.groups.test_slice_moves import play_with

from plimsoll.core.client.assigned_slices import AssignedSlices
from plimsoll.core.client.slice_subscriber import SliceSubscriber
from plimsoll.core.client.slice_tally import SliceTally
from plimsoll.core.head.groups.slice_audit import FAULTS_AT_MOST, SliceCase
from plimsoll.core.protocol import messages as msg


def audit_after_a_move(rate: float = 100.0) -> dict[str, Any]:
    """Of all slices of `a`, under load."""
    play, mediator = play_with("a", "b")
    mediator.run(2.0, rate=rate)
    mediator.ask("move", giver="a", taker="b")
    assert mediator.finish("move", rate=rate).counts()["moved"] == 3
    mediator.run(8.0, rate=rate)
    assert isinstance(mediator, GroupMediator)
    assert not play.gaps
    found = mediator.status("move")["audit"]
    assert isinstance(found, dict)
    return found


def test_nothing_is_lost_repeated_or_reordered():
    assert audit_after_a_move() == {"subscribers": 3, "lost": 0, "duplicated": 0, "reordered": 0, "suppressed": 0}


def test_a_slice_without_traffic_is_audited_as_well():
    assert audit_after_a_move(rate=0.0)["subscribers"] == 3


def test_an_item_that_an_application_never_had_is_lost(monkeypatch: pytest.MonkeyPatch):
    plain, dropped = SliceSubscriber.hand, set[int]()

    def hand(self: Any, most: int, now: float) -> Any:
        if self.assignment not in dropped and self.events and self.slice == 0:
            dropped.add(self.assignment)
            del self.events[0]
        return plain(self, most, now)

    monkeypatch.setattr(SliceSubscriber, "hand", hand)
    assert audit_after_a_move()["lost"] >= 1


def test_an_item_that_both_had_is_duplicated(monkeypatch: pytest.MonkeyPatch):
    plain = AssignedSlices._release

    def release(self: Any, owned: Any) -> None:
        whole = owned.place

        def early(**how: bool) -> msg.SlicePlace:
            place = whole(**how)
            head, epoch, position = place.token
            marks = [(name, life, offset - 40) for name, life, offset in place.marks]
            return msg.SlicePlace(
                place.number, place.epoch, (head, epoch, position - 40), marks, place.is_released, place.was_cut_off,
                place.counted,
            )  # fmt: skip

        owned_place, type(owned).place = type(owned).place, lambda _, **how: early(**how)
        try:
            plain(self, owned)
        finally:
            type(owned).place = owned_place

    monkeypatch.setattr(AssignedSlices, "_release", release)
    assert audit_after_a_move()["duplicated"] >= 1


def test_what_members_claim_beyond_all_measure_can_still_be_told():
    def faults(items: int, again: int, reordered: int) -> tuple[int, int, int]:
        return SliceCase(
            "1.1", "x", (1, 0), "h", "", 0, 9, {}, [], due={("h", 1): [9, 5]},
            items=items, duplicated=again, reordered=reordered,
        ).faults()  # fmt: skip

    huge = 2**64
    for counted in ((-huge, -3, huge), (huge, huge, -1)):
        assert all(0 <= each <= FAULTS_AT_MOST for each in faults(*counted))
    assert faults(4, 1, 2) == (1, 1, 2)


def test_members_that_do_not_count_are_not_audited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SliceTally, "count", lambda self: None)
    assert audit_after_a_move() == {"subscribers": 0}
