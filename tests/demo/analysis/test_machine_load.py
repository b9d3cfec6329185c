"""The use of the machine by other processes, and when it is too high to judge figures."""

from __future__ import annotations

import pytest

from plimsoll.demo.analysis.machine_load import MachineLoad, MachineLoadMeter, ProcessorTimes


def load(*looks: tuple[float, float, dict[int, float]], processors: int = 2) -> MachineLoad:
    meter = MachineLoadMeter(processors)
    for at, busy, own in looks:
        meter.take(ProcessorTimes(at, busy, own))
    return meter.load()


def test_others_are_what_is_busy_and_not_our_own():
    found = load((0.0, 100.0, {1: 5.0}), (10.0, 116.0, {1: 9.0, 2: 2.0}))
    assert [found.own, found.others, found.seconds] == pytest.approx([0.6, 1.0, 10.0])
    assert found.is_too_busy
    assert found.text() == "other processes used 1.00 and the demo 0.60 of 2 processors on average"


def test_a_quiet_machine_may_be_judged():
    found = load((0.0, 0.0, {1: 0.0}), (10.0, 13.0, {1: 12.0}))
    assert found.others == pytest.approx(0.1)
    assert not found.is_too_busy


def test_a_fleet_that_takes_all_processors_itself_is_too_much_for_the_machine():
    assert load((0.0, 0.0, {1: 0.0}), (10.0, 19.9, {1: 19.9})).is_too_busy
    assert not load((0.0, 0.0, {1: 0.0}), (10.0, 18.0, {1: 18.0})).is_too_busy


def test_a_process_that_has_ended_takes_nothing_back():
    found = load((0.0, 0.0, {1: 1.0, 2: 8.0}), (1.0, 1.0, {1: 1.5, 2: 8.5}), (2.0, 1.5, {1: 2.0}))
    assert found.own == pytest.approx(0.75)
    assert found.others == 0.0


def test_where_nothing_is_known_nothing_is_said():
    found = load((0.0, 5.0, {1: 1.0}))
    assert not found.is_known
    assert not found.is_too_busy
    assert found.plain()["other_processors"] is None
    assert "does not report" in found.text()
