"""The mediator of the product works in virtual time: what is asked for is planned, moved, stored and gone on with."""

from __future__ import annotations

import random

import pytest

from plimsoll.core.transport.overlay_node import OverlayNode
from plimsoll.simulator.mediators.session_mediator import (
    PlannedSession,
    PlannedSessionMix,
    SessionBackend,
    draw_sessions,
    specification,
)
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS
from plimsoll.simulator.world.brokers import FleetShape


def drawn(seed: int = 1) -> list[PlannedSession]:
    return draw_sessions(PlannedSessionMix(60), FleetShape(2, 3), random.Random(seed), 1.0, 2.0)


def test_sessions_of_every_kind_are_asked_for_and_make_sense():
    plan = drawn()
    assert plan == drawn() != drawn(2)
    specs = [specification(ask.fields) for ask in plan]
    assert {spec.scope for spec in specs} == {"Local", "Global"}
    assert {spec.action for spec in specs} == {"Rebalance", "Drain"}
    assert {spec.handover for spec in specs} == {"Auto", "Drain", "Replay"}
    assert any(ask.stop_at < float("inf") for ask in plan)
    for spec in specs:
        if spec.source is not None and spec.target is not None:
            assert (spec.source.name[:2] == spec.target.name[:2]) == (spec.scope == "Local")


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="no specification of a session"):
        specification({"scope": "Elsewhere"})


@pytest.fixture(scope="module")
def runs() -> list[SimulationRun]:
    """Some runs that have ended, each with its office."""
    some = [SimulationRun(SCENARIOS["sessions-planned-restarts"], seed) for seed in range(8)]
    for one in some:
        outcome = one.go()
        assert outcome.ok, (one.seed, outcome.verdict)
    return some


def office(one: SimulationRun) -> SessionBackend:
    assert isinstance(one.mediators.office, SessionBackend)
    return one.mediators.office


def test_sessions_end_and_move_somebody(runs: list[SimulationRun]):
    counts = [office(one).counts() for one in runs]
    assert sum(count.get("succeeded", 0) for count in counts) > 5
    assert sum(count.get("moved", 0) for count in counts) > 5
    assert all(office(one).is_settled() for one in runs)


def test_mediators_die_and_others_go_on(runs: list[SimulationRun]):
    assert max(office(one).epoch for one in runs) > 2
    epochs = {session.partition(".")[0] for one in runs for session in office(one).handovers}
    assert len(epochs) > 1


def test_the_older_of_two_stores_nothing(runs: list[SimulationRun]):
    one = SimulationRun(SCENARIOS["sessions-planned"], 1)
    older: OverlayNode = office(one).mediator("m0", random.Random(1))
    office(one).mediator("m1", random.Random(2))
    for at in range(1, 60):
        older.poll(at / 10)
        older.control_to_send()
    assert office(one).objects
    assert office(one).sessions() == []
