"""Events run in a total order, also those that are scheduled while others run."""

from __future__ import annotations

from plimsoll.simulator.engine.event_queue import EventQueue


def test_time_orders_events_and_the_order_of_scheduling_breaks_ties():
    schedule = EventQueue()
    seen: list[object] = []
    schedule.at(2.0, seen.append, "c")
    schedule.at(1.0, seen.append, "a")
    schedule.at(1.0, seen.append, "b")
    schedule.run(1.5)
    assert seen == ["a", "b"]
    assert schedule.now == 1.5
    schedule.run(2.0)
    assert seen == ["a", "b", "c"]
    assert schedule.events == 3


def test_an_event_may_schedule_others():
    schedule = EventQueue()
    seen: list[object] = []

    def first() -> None:
        schedule.after(0.0, seen.append, schedule.now)
        schedule.at(0.0, seen.append, "the past is now")

    schedule.at(1.0, first)
    schedule.run(5.0)
    assert seen == [1.0, "the past is now"]
    assert schedule.events == 3
