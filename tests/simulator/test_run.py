"""Runs of every scenario keep the laws, and a seed gives the same run in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from plimsoll.core.verify import observations as seen
from plimsoll.simulator.run import SimulationRun, run_seed
from plimsoll.simulator.scenarios.catalogue import SCENARIOS

SEEDS = {name: 100 if name.startswith("sessions-") else 40 for name in SCENARIOS} | {
    "calm": 24,
    "cluster": 48,
    "chain": 32,
    "far-apart": 24,
    "star": 32,
    "tree": 24,
    "small-log": 24,
    "edge-restart": 60,
    "head-restart": 60,
    "clients": 48,
    "everything": 60,
    "slow-edge": 12,
    "frozen-subscriber": 20,
    "flooding-publisher": 8,
    "sessions-planned": 40,
    "sessions-planned-restarts": 40,
    "sessions-publishers-links": 40,
    "sessions-publishers-across": 40,
    "sessions-publishers-replaced": 40,
    "sessions-balanced": 20,
    "sessions-balanced-faults": 20,
    "sessions-shuffled": 20,
    "sessions-shuffled-faults": 20,
    "sessions-shuffled-restarts": 20,
    "sessions-deadlines-clusters": 16,
    "sessions-deadlines-heads": 40,
    "sessions-deadlines-heads-faults": 40,
}
"""About 2,200 runs in total. A run with a policy takes ten times as long as another, so these have fewer seeds."""

PARTS = 2
FIRST = 1_000
"""The default run has the first seed of each scenario; a sweep has the others."""


def keep_the_laws(scenario: str, seeds: range) -> None:
    delivered = 0
    for seed in seeds:
        outcome = run_seed(scenario, seed)
        details = f"{outcome.error or outcome.verdict}\n{outcome.faults}"
        assert outcome.ok, f"python -m plimsoll.simulator --scenario {scenario} --seed {seed} --trace\n{details}"
        delivered += outcome.verdict.delivered
    assert delivered > 4 * len(seeds), "runs in which nothing is delivered prove nothing"


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_laws_hold(scenario: str):
    keep_the_laws(scenario, range(FIRST, FIRST + 1))


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # many runs in one test, also on a slow machine
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_laws_hold_for_all_seeds(scenario: str, part: int):
    keep_the_laws(scenario, range(FIRST + 1 + part, FIRST + SEEDS[scenario], PARTS))


@pytest.mark.sweep
def test_each_scenario_does_what_it_is_for():
    assert run_seed("calm", 1).verdict.uncertain == 0
    assert sum(run_seed("small-log", seed).verdict.gaps for seed in range(90, 100)) > 0
    assert sum(run_seed("edge-restart", seed).faults.get("crash_edge", 0) for seed in range(5)) > 3
    assert sum(run_seed("head-restart", seed).verdict.gaps for seed in range(5)) > 0
    assert run_seed("storm", 1).faults["storm"] > 3
    assert sum(run_seed("frozen-subscriber", seed).verdict.excused for seed in range(5)) > 0
    assert sum(run_seed("slow-edge", seed).verdict.excused for seed in range(5)) > 0
    for name in ("slow-edge", "frozen-subscriber", "flooding-publisher"):
        assert sum(run_seed(name, seed).verdict.undisturbed for seed in range(3)) > 20, name


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_hand_overs_of_every_kind_happen_and_end():
    ended: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for name in SCENARIOS:
        if name.startswith("sessions-"):
            for seed in range(6):
                outcome = run_seed(name, seed)
                ended.update(outcome.handovers)
                faults.update(outcome.faults)
    assert min(ended[state] for state in ("done", "aborted", "moved", "stayed")) > 20
    assert sum(count for kind, count in faults.items() if kind.startswith("aimed")) > 20
    assert run_seed("sessions-calm", 1).handovers["moved"] > 0


@pytest.mark.parametrize("scenario", ["everything", "sessions-everything"])
def test_a_seed_gives_the_same_run_again(scenario: str):
    one, other = run_seed(scenario, 3), run_seed(scenario, 3)
    assert one == other
    assert one.digest != run_seed(scenario, 4).digest


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scenario", ["everything", "sessions-everything"])
def test_a_seed_gives_the_same_run_in_another_process(scenario: str):
    script = f"from plimsoll.simulator.run import run_seed; print(run_seed('{scenario}', 5).digest)"
    digests = [
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": salt}, capture_output=True, check=True
        ).stdout
        for salt in ("1", "2")
    ]
    assert digests[0] == digests[1]
    assert int(digests[0]) == run_seed(scenario, 5).digest


def test_a_trace_is_complete_and_does_not_change_the_run():
    lines: list[str] = []
    traced = run_seed("head-restart", 2, lines.append)
    assert traced == run_seed("head-restart", 2)
    text = "\n".join(lines)
    for word in ("is killed", "Hello(", "Pub[", "DeliveryObserved(", "GapObserved("):
        assert word in text


def test_the_journal_of_a_run_has_all_kinds_of_observations():
    one = SimulationRun(SCENARIOS["edge-restart"], 1)
    one.go()
    kinds = {type(each) for each in one.journal.all}
    assert kinds >= {
        seen.HeadTreeObserved,
        seen.PublicationObserved,
        seen.AnswerObserved,
        seen.LogEntryObserved,
        seen.SubscriptionObserved,
        seen.AcknowledgementObserved,
        seen.DeliveryObserved,
        seen.OwnerObserved,
        seen.CounterObserved,
    }
    assert seen.ResidueObserved not in kinds, "nothing is left over"
