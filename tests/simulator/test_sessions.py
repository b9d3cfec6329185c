"""Worlds in which subscribers are moved: together they have every fault, and each claims no more than it can keep."""

from __future__ import annotations

from dataclasses import fields

import pytest

from plimsoll.simulator.faults import Chances
from plimsoll.simulator.run import run
from plimsoll.simulator.scenario import Scenario
from plimsoll.simulator.scenarios import SCENARIOS
from plimsoll.simulator.sessions import ALL, QUICK

each = pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)


@each
def test_somebody_is_moved(scenario: Scenario):
    assert scenario.moves
    assert scenario.name.startswith("sessions-")
    assert SCENARIOS[scenario.name] is scenario
    assert any(run(scenario.name, seed).handovers.get("moved", 0) for seed in range(12))


@each
def test_a_steady_world_claims_nothing_that_its_faults_take_away(scenario: Scenario):
    """Who is told of no gap meets no bound: no head is killed, and logs and queues last for the whole run."""
    if not scenario.is_steady:
        return
    assert not {"head", "target-head"} & set(scenario.moving.mortal)
    assert (scenario.chances.crash_head, scenario.chances.crash_client) == (0.0, 0.0)
    largest = 400 + scenario.load.payload_bytes
    published = scenario.load.publications * largest
    assert published < min(scenario.limits().log_bytes, 2**30)
    assert scenario.load.holds == 0, "who holds back for long meets the bound of its queue"


@each
def test_everything_comes_to_its_end_before_the_run_does(scenario: Scenario):
    assert scenario.settle_seconds > 2 * QUICK.lease_seconds + QUICK.dead_seconds


def test_together_they_have_every_fault():
    for field in fields(Chances):
        if field.name not in ("seconds", "storm"):
            assert any(getattr(one.chances, field.name) for one in ALL), field.name
    assert any(one.moving.replay == 1.0 for one in ALL)
    assert any(one.moving.across for one in ALL)
    assert any(one.moving.tight for one in ALL)
    assert any(one.moving.stale for one in ALL)
    assert any(one.moving.batch >= 10 for one in ALL)
    assert any(one.slow is not None for one in ALL)
    mortal = {name for one in ALL for name in one.moving.mortal}
    assert mortal >= {"subscriber", "source", "target", "head", "target-head"}
    assert any(one.asking.sessions and one.chances.crash_head for one in ALL)


def test_each_is_about_something_else():
    assert len({one.about for one in ALL}) == len({one.name for one in ALL}) == len(ALL)
