"""Shuffles in virtual time: they lower the highest load of unequal edges, and keep every law under faults."""

from __future__ import annotations

import pytest
from tests.simulator.test_balancing import run, sessions

from plimsoll.core.session import Session
from plimsoll.simulator.run import SimulationRun


def shuffles(one: SimulationRun) -> list[Session]:
    return [session for session in sessions(one) if session.kind == "shuffle"]


@pytest.fixture(scope="module")
def calm() -> list[SimulationRun]:
    return [run("sessions-shuffled", seed) for seed in range(3)]


def test_shuffles_succeed_and_move_all_that_they_plan(calm: list[SimulationRun]):
    found = [session for one in calm for session in shuffles(one)]
    assert {session.phase for session in found} == {"Succeeded"}
    assert {session.reason for session in found} <= {"Moved", "NothingToMove"}
    assert all(session.counts()["moved"] == session.planned for session in found)
    assert sum(session.planned for session in found) > 5


def test_a_shuffle_is_to_lower_the_highest_load(calm: list[SimulationRun]):
    for one in calm:
        for session in shuffles(one):
            if session.planned and session.plan is not None:
                before = max(forecast.utilization_before for forecast in session.plan.forecasts)
                assert max(forecast.utilization_after for forecast in session.plan.forecasts) < before, one.seed
                assert all(forecast.measured is not None for forecast in session.plan.forecasts), one.seed


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["sessions-shuffled-faults", "sessions-shuffled-restarts"])
@pytest.mark.parametrize("seed", range(2))
def test_laws_hold_under_faults(name: str, seed: int):
    one = run(name, seed)
    assert all(session.is_over for session in sessions(one))
    assert shuffles(one)
