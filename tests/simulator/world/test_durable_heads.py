"""Heads with logs on simulated disks: the laws hold without the exception for heads, and something was at stake."""

from __future__ import annotations

import pytest

from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.world.durable_heads import HeadDisk


def disks(run: SimulationRun) -> list[HeadDisk]:
    return [broker.disk for broker in run.fleet.brokers.values() if broker.disk is not None]


@pytest.mark.parametrize(
    ("scenario", "seeds"),
    [
        ("durable-head", (0, 1, 2)),
        ("durable-tree", (0, 1, 3)),
        ("durable-small", (0, 1)),
        ("durable-interval", (9, 11)),
    ],
)
def test_heads_that_lose_their_machine_keep_the_laws(scenario: str, seeds: tuple[int, ...]):
    recovered = lost = 0
    for seed in seeds:
        run = SimulationRun(SCENARIOS[scenario], seed)
        outcome = run.go()
        assert outcome.ok, f"seed {seed}:\n{outcome.verdict}"
        recovered += sum(len(disk.recoveries) - 1 for disk in disks(run))
        lost += sum(disk.disk.lost for disk in disks(run))
    assert recovered > 1
    assert lost > 0 or scenario != "durable-interval", "a world in which nothing unsynced is lost tests little"


@pytest.mark.parametrize("scenario", ["sessions-durable-head", "sessions-durable-head-across"])
def test_hand_overs_outlast_heads_that_recover(scenario: str):
    for seed in range(2):
        outcome = SimulationRun(SCENARIOS[scenario], seed).go()
        assert outcome.ok, f"seed {seed}:\n{outcome.verdict}"


def test_subscribers_that_are_behind_are_served_from_the_disk():
    run = SimulationRun(SCENARIOS["durable-small"], 1)
    reads = []
    for disk in disks(run):
        recover = disk.recover

        def watched(disk: HeadDisk = disk, recover=recover):  # type: ignore[no-untyped-def]  # of the same type
            found = recover()
            read = disk._store.read
            disk._store.read = lambda *asked: reads.append(asked) or read(*asked)  # type: ignore[method-assign, func-returns-value]  # counts
            return found

        disk.recover = watched  # type: ignore[method-assign]  # counts
    assert run.go().ok
    assert reads


def test_a_full_disk_refuses_publications_and_loses_none():
    run = SimulationRun(SCENARIOS["durable-small"], 2)
    for disk in disks(run):
        run.schedule.at(run.end * 0.3, setattr, disk.disk, "is_full", True)
        run.schedule.at(run.end * 0.6, setattr, disk.disk, "is_full", False)
    outcome = run.go()
    assert outcome.ok, outcome.verdict
    refused = sum(
        broker.node.counters["publications_refused_by_disk"] for broker in run.fleet.heads() if broker.node is not None
    )
    assert refused > 0
