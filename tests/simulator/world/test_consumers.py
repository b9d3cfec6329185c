"""Consumers come and go as planned and keep journals; one that is killed finishes nothing more."""

from __future__ import annotations

import random

from plimsoll.core.verify import observations as seen
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.world.consumers import GROUP, GroupLoad, draw_consumer_changes


def test_the_first_consumer_stays_and_each_leaves_once():
    for seed in range(50):
        changes = draw_consumer_changes(GroupLoad(changes=9), random.Random(seed), 1.0, 5.0)
        assert [each.at for each in changes] == sorted(each.at for each in changes)
        left = [each.consumer for each in changes if not each.joins]
        assert "g0" not in left
        assert len(set(left)) == len(left)
        assert len({each.consumer for each in changes if each.joins}) == len(changes) - len(left)


def started(seconds: float) -> SimulationRun:
    one = SimulationRun(SCENARIOS["groups"], 1)
    one.draw_plan()
    one.schedule.run(seconds)
    return one


def test_consumers_note_each_item_with_its_end_and_who_serves_each_slice():
    one = started(6.0)
    items = [each for each in one.journal.all if isinstance(each, seen.SliceItemObserved)]
    assert {each.group for each in items} == {GROUP}
    assert all(each.until is not None and each.until >= each.at for each in items)
    assert {each.slice for each in items} == set(range(5))
    attached = {each.subscriber for each in one.journal.all if isinstance(each, seen.AttachmentObserved)}
    assert attached >= {f"{GROUP}@@{number}" for number in range(5)}


def test_what_a_killed_consumer_has_in_hand_is_never_finished_and_it_comes_back():
    one = started(2.0)
    name = next(name for name, each in one.apps.consumers.items() if each.member is not None and each.member.slices)
    consumer = one.apps.consumers[name]
    while not consumer.hand:
        one.schedule.run(one.schedule.now + 0.01)
    had = [handed.item.identity for handed, _ in consumer.hand]  # type: ignore[union-attr]  # a calm run has no gaps
    one.apps.crash(name)
    last = [each for each in one.journal.all if isinstance(each, seen.SliceItemObserved)][-len(had) :]
    assert [each.publication for each in last] == had
    assert all(each.until is None for each in last)
    one.apps.restart(name)
    one.schedule.run(one.schedule.now + 4.0)
    assert consumer.life == 2
    assert consumer.member is not None
    assert consumer.member.is_member


def test_one_that_leaves_ends_its_process_and_does_not_come_back():
    one = started(2.0)
    one.apps.leave("g1")
    one.schedule.run(one.schedule.now + 3.0)
    assert one.apps.consumers["g1"].has_left
    assert "g1" not in one.apps.processes
    one.apps.restart("g1")
    assert "g1" not in one.apps.names()


def test_one_that_is_down_when_it_is_to_leave_does_not_come_back():
    one = started(2.0)
    one.apps.crash("g1")
    one.apps.leave("g1")
    one.apps.restart("g1")
    assert "g1" not in one.apps.names()
