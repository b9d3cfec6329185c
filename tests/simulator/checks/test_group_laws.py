"""The laws of a group: a settled fleet keeps them, and each way to break one is reported."""

from __future__ import annotations

import pytest

from plimsoll.core.client.group_items import GroupItems
from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.machine import Head
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.checks.group_laws import GroupLaws
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.world.consumers import GROUP


@pytest.fixture
def over() -> SimulationRun:
    one = SimulationRun(SCENARIOS["groups"], 1)
    outcome = one.go()
    assert outcome.ok, outcome.verdict
    assert outcome.verdict.processed_once > 50
    assert outcome.slices["slices_moved"] > 0
    return one


def laws_of(over: SimulationRun) -> GroupLaws:
    assert over.laws.group is not None
    return over.laws.group


def group_of(over: SimulationRun) -> ConsumerGroup:
    head = over.fleet.heads()[0].host.node
    assert isinstance(head, Head)
    return head.groups.by_name[GROUP]


def left(over: SimulationRun) -> list[str]:
    return [each.what for each in laws_of(over).leftovers(0.0)]


def test_a_settled_group_keeps_them(over: SimulationRun):
    assert left(over) == []


def test_items_that_wait_are_reported(over: SimulationRun, monkeypatch: pytest.MonkeyPatch):
    consumer, _ = next(laws_of(over)._members())
    monkeypatch.setattr(GroupItems, "has_any", True)
    assert f"items wait at {consumer.name}" in left(over)


def test_a_slice_without_its_consumer_is_reported(over: SimulationRun):
    each = group_of(over).slices[0]
    each.holder = ""
    assert left(over) == ["slice 0 is assigned to '', which does not have it"]
    each.holder, each.is_revoked = "g0", True
    assert left(over) == ["slice 0 is on its way to ''"]


def test_members_that_the_head_does_not_know_are_reported(over: SimulationRun):
    group = group_of(over)
    del group.members[next(iter(group.members))]
    assert any("the head has members" in what for what in left(over))


def test_an_idle_consumer_is_reported_unless_there_are_too_few_slices(over: SimulationRun):
    group = group_of(over)
    idle = next(consumer for consumer, _ in laws_of(over)._members())
    assert idle.member is not None
    for number in list(idle.member.slices):
        other = next(each for each in group.slices if each.holder != idle.name)
        group.slices[number].holder = other.holder
    idle.member.slices.clear()
    assert any("consumers without a slice" in what for what in left(over))


def test_two_consumers_of_one_assignment_are_reported(over: SimulationRun):
    members = [member for _, member in laws_of(over)._members()]
    owned = next(iter(members[0].slices.values()))
    members[1].slices[owned.slice] = owned
    laws_of(over).measure(9.0)
    assert any(isinstance(one, seen.ResidueObserved) and "is had by" in one.what for one in over.journal.all)


def test_a_head_that_does_not_know_the_group_is_reported(over: SimulationRun):
    head = over.fleet.heads()[0].host.node
    assert isinstance(head, Head)
    head.groups.by_name.clear()
    assert left(over) == ["its head does not know it"]
