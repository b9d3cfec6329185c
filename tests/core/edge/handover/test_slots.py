"""Slots: one per subscriber, freed only by their own session, and expired at their time."""

from __future__ import annotations

from plimsoll.core.edge.handover.slots import ReservedSlot, SlotTable


def table() -> SlotTable:
    return SlotTable(x=ReservedSlot("1.1", 10.0, False), y=ReservedSlot("1.2", 20.0, True))


def test_only_its_own_session_frees_a_slot():
    slots = table()
    slots.free("x", "1.2")
    slots.free("z", "1.1")
    assert set(slots) == {"x", "y"}
    slots.free("x", "1.1")
    assert set(slots) == {"y"}


def test_a_resume_takes_a_slot_by_replay_of_the_session_that_it_names():
    slots = table()
    assert slots.is_for_replay("y", "1.2")
    assert not slots.is_for_replay("y", "1.1")
    assert not slots.is_for_replay("y", None)
    assert not slots.is_for_replay("x", "1.1"), "by drain it is ATTACH that takes it"
    assert not slots.is_for_replay("z", "1.2")


def test_slots_expire_at_their_time():
    slots = table()
    assert slots.pop_expired(9.9) == []
    assert slots.pop_expired(10.0) == [("x", ReservedSlot("1.1", 10.0, False))]
    assert set(slots) == {"y"}
