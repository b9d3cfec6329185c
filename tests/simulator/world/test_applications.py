"""Applications record their requests and answers, also across crashes and restarts."""

from __future__ import annotations

from plimsoll.core.verify import observations as seen
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.world.workload import PlannedPublication


def test_a_killed_process_ends_its_incarnations_and_restarts_with_new_ones():
    one = SimulationRun(SCENARIOS["calm"], 1)
    for name in one.fleet.brokers:
        one.fleet.start(name)
    for name in one.apps.processes:
        one.apps.start(name)
    one.schedule.run(1.0)
    process = one.apps.process_of["p0"]
    one.apps.publish(PlannedPublication(1.0, "p0", {"k": 1, "v": 1}, False))
    one.apps.crash(process.name)
    ended = {(one.name, one.incarnation) for one in one.journal.all if isinstance(one, seen.IncarnationEndObserved)}
    assert ended == {("p0", 1000), *((name, 1000) for name in process.subscribers)}
    assert [each.seq for each in one.journal.all if isinstance(each, seen.PublicationObserved)] == [1], (
        "published, not answered"
    )
    one.apps.publish(PlannedPublication(1.0, "p0", {"k": 1, "v": 1}, False))
    one.apps.withdraw("s0")
    one.apps.restart(process.name)
    one.schedule.run(2.0)
    assert process.incarnation == 2000
    again = [
        each for each in one.journal.all if isinstance(each, seen.AcknowledgementObserved) and each.incarnation == 2000
    ]
    assert {each.subscriber for each in again} == set(process.subscribers)


def test_the_last_subscription_is_never_withdrawn():
    one = SimulationRun(SCENARIOS["calm"], 1)
    for name in one.fleet.brokers:
        one.fleet.start(name)
    for name in one.apps.processes:
        one.apps.start(name)
    one.schedule.run(1.0)
    for _ in range(5):
        one.apps.withdraw("s0")
    client = one.apps.process_of["s0"].client
    assert client is not None
    assert len(client.subscribers["s0"].subscriptions) == 1
    withdrawals = sum(isinstance(each, seen.WithdrawalObserved) for each in one.journal.all)
    assert withdrawals == len(one.apps.process_of["s0"].subscribers["s0"]) - 1
