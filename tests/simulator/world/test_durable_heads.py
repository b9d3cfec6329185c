"""Heads with logs on simulated disks: the laws hold without the exception for heads, and something was at stake."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.log import LogEntry
from plimsoll.core.head.machine import Head
from plimsoll.simulator.fault_injection.random_faults import FaultRates
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.world.durable_heads import DurableHeads, HeadDisk


def disks(run: SimulationRun) -> list[HeadDisk]:
    return [broker.disk for broker in run.fleet.brokers.values() if broker.disk is not None]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("scenario", "seeds"),
    [
        ("durable-head", (0, 1, 2)),
        ("durable-tree", (0, 1, 3)),
        ("durable-small", (0, 1)),
        ("durable-interval", (9, 11)),
        ("durable-apart", (0, 4)),
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


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(1005, id="a head dies twice, the second time with relays that wait for the report of an edge"),
        pytest.param(1010, id="a head logs in one round more than its memory takes, and nothing for long after that"),
        pytest.param(2008, id="a machine stops with an end that is torn and a segment behind it that has only begun"),
    ],
)
def test_seeds_that_have_failed_once(seed: int):
    outcome = SimulationRun(SCENARIOS["durable-small"], seed).go()
    assert outcome.ok, outcome.verdict


@pytest.mark.parametrize(
    "scenario",
    [
        "sessions-durable-head",
        "sessions-durable-head-across",
        "sessions-durable-away",
        "sessions-durable-away-across",
    ],
)
def test_hand_overs_outlast_heads_that_recover(scenario: str):
    for seed in range(2):
        outcome = SimulationRun(SCENARIOS[scenario], seed).go()
        assert outcome.ok, f"seed {seed}:\n{outcome.verdict}"


SHORT_SEGMENTS = replace(
    SCENARIOS["durable-interval"],
    name="short-segments",
    about="heads whose segments are short and seldom synced lose their machines often",
    fault_rates=FaultRates(reconnect=0.3, crash_head=2.0, seconds=(0.05, 0.3)),
    durable=DurableHeads(always=False, interval_seconds=1.0, segment_bytes=4_096),
)


def test_the_end_of_a_segment_is_safe_before_there_is_a_newer_one(monkeypatch: pytest.MonkeyPatch):
    """In this run a machine stops when its system has written the newer segment back, and not the older one."""
    outcome = SimulationRun(SHORT_SEGMENTS, 13).go()
    assert outcome.ok, outcome.verdict
    monkeypatch.setattr(LogStore, "settle", lambda store: None)
    with pytest.raises(AssertionError, match="is damaged"):
        SimulationRun(SHORT_SEGMENTS, 13).go()


def test_subscribers_that_are_behind_are_served_from_the_disk(monkeypatch: pytest.MonkeyPatch):
    reads: list[int] = []
    read = LogStore.read

    def watched(store: LogStore, position: int, most_bytes: int) -> list[tuple[int, LogEntry]]:
        reads.append(position)
        return read(store, position, most_bytes)

    monkeypatch.setattr(LogStore, "read", watched)
    assert SimulationRun(SCENARIOS["durable-small"], 1).go().ok
    assert reads


def test_a_full_disk_refuses_publications_and_loses_none():
    run = SimulationRun(SCENARIOS["durable-small"], 2)
    for disk in disks(run):
        run.schedule.at(run.end * 0.3, setattr, disk.disk, "is_full", True)
        run.schedule.at(run.end * 0.6, setattr, disk.disk, "is_full", False)
    outcome = run.go()
    assert outcome.ok, outcome.verdict
    heads = [broker.node for broker in run.fleet.heads() if isinstance(broker.node, Head)]
    assert sum(head.counters["publications_refused_by_disk"] for head in heads) > 0
