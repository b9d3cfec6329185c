"""Runs of every scenario keep the laws, and a seed gives the same run wherever it is replayed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from plimsoll.core.verify import observations as seen
from plimsoll.simulator.run import Run, run
from plimsoll.simulator.scenarios import SCENARIOS

SEEDS = {name: 250 if name.startswith("sessions-") else 100 for name in SCENARIOS} | {
    "calm": 60,
    "cluster": 120,
    "chain": 80,
    "far-apart": 60,
    "star": 80,
    "tree": 60,
    "small-log": 60,
    "edge-restart": 150,
    "head-restart": 150,
    "clients": 120,
    "everything": 150,
    "slow-edge": 30,
    "frozen-subscriber": 50,
    "flooding-publisher": 20,
    "sessions-planned": 100,
    "sessions-planned-restarts": 100,
    "sessions-balanced": 50,
    "sessions-balanced-faults": 50,
    "sessions-shuffled": 50,
    "sessions-shuffled-faults": 50,
    "sessions-shuffled-restarts": 50,
}
"""Some 5,400 runs; one of those in which a policy balances costs ten times as much as another."""

PARTS = 4
FIRST = 1_000


@pytest.mark.slow
@pytest.mark.timeout(300)  # many runs in one test, on whatever machine this is
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_laws_hold(scenario: str, part: int):
    delivered = 0
    for seed in range(FIRST + part, FIRST + SEEDS[scenario], PARTS):
        outcome = run(scenario, seed)
        told = f"{outcome.error or outcome.verdict}\n{outcome.faults}"
        assert outcome.ok, f"python -m plimsoll.simulator --scenario {scenario} --seed {seed} --trace\n{told}"
        delivered += outcome.verdict.delivered
    assert delivered > SEEDS[scenario], "a run in which nothing is said proves nothing"


def test_each_scenario_does_what_it_is_for():
    assert run("calm", 1).verdict.uncertain == 0
    assert sum(run("small-log", seed).verdict.gaps for seed in range(90, 100)) > 0
    assert sum(run("edge-restart", seed).faults.get("crash_edge", 0) for seed in range(5)) > 3
    assert sum(run("head-restart", seed).verdict.gaps for seed in range(5)) > 0
    assert run("storm", 1).faults["storm"] > 3
    assert sum(run("frozen-subscriber", seed).verdict.excused for seed in range(5)) > 0
    assert sum(run("slow-edge", seed).verdict.excused for seed in range(5)) > 0
    for name in ("slow-edge", "frozen-subscriber", "flooding-publisher"):
        assert sum(run(name, seed).verdict.undisturbed for seed in range(3)) > 20, name


def test_hand_overs_of_every_kind_happen_and_end():
    ended: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for name in SCENARIOS:
        if name.startswith("sessions-"):
            for seed in range(6):
                outcome = run(name, seed)
                ended.update(outcome.handovers)
                faults.update(outcome.faults)
    assert min(ended[state] for state in ("done", "aborted", "moved", "stayed")) > 20
    assert sum(count for kind, count in faults.items() if kind.startswith("aimed")) > 20
    assert run("sessions-calm", 1).handovers["moved"] > 0


@pytest.mark.parametrize("scenario", ["everything", "sessions-everything"])
def test_a_seed_gives_the_same_run_again(scenario: str):
    one, other = run(scenario, 3), run(scenario, 3)
    assert one == other
    assert one.digest != run(scenario, 4).digest


@pytest.mark.parametrize("scenario", ["everything", "sessions-everything"])
def test_a_seed_gives_the_same_run_in_another_process(scenario: str):
    script = f"from plimsoll.simulator.run import run; print(run('{scenario}', 5).digest)"
    told = [
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": salt}, capture_output=True, check=True
        ).stdout
        for salt in ("1", "2")
    ]
    assert told[0] == told[1]
    assert int(told[0]) == run(scenario, 5).digest


def test_a_trace_tells_the_story_and_changes_nothing():
    lines: list[str] = []
    traced = run("head-restart", 2, lines.append)
    assert traced == run("head-restart", 2)
    text = "\n".join(lines)
    for word in ("is killed", "Hello(", "Pub[", "Delivered(", "GapTold("):
        assert word in text


def test_the_journal_of_a_run_holds_what_the_laws_need():
    one = Run(SCENARIOS["edge-restart"], 1)
    one.go()
    kinds = {type(each) for each in one.journal.all}
    assert kinds >= {
        seen.Fleet, seen.Published, seen.Answered, seen.Logged, seen.Subscribed, seen.Acknowledged, seen.Delivered,
        seen.Owned, seen.Counter,
    }  # fmt: skip
    assert seen.Residue not in kinds, "nothing is left over"
