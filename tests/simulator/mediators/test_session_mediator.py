"""The session engine in virtual time: requested sessions are planned, moved, stored, and continued after a restart."""

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


def test_sessions_of_every_kind_are_drawn_and_are_valid():
    plan = drawn()
    assert plan == drawn() != drawn(2)
    specs = [specification(planned.fields) for planned in plan]
    assert {spec.scope for spec in specs} == {"Local", "Global"}
    assert {spec.action for spec in specs} == {"Rebalance", "Drain"}
    assert {spec.handover for spec in specs} == {"Auto", "Drain", "Replay"}
    assert any(planned.stop_at < float("inf") for planned in plan)
    for spec in specs:
        if spec.source is not None and spec.target is not None:
            assert (spec.source.name[:2] == spec.target.name[:2]) == (spec.scope == "Local")


def test_fields_that_are_not_a_specification_are_refused():
    with pytest.raises(ValueError, match="not a session specification"):
        specification({"scope": "Elsewhere"})


@pytest.fixture(scope="module")
def runs() -> list[SimulationRun]:
    """Some runs that have ended."""
    some = [SimulationRun(SCENARIOS["sessions-planned-restarts"], seed) for seed in range(8)]
    for one in some:
        outcome = one.go()
        assert outcome.ok, (one.seed, outcome.verdict)
    return some


def backend(one: SimulationRun) -> SessionBackend:
    assert isinstance(one.mediators.backend, SessionBackend)
    return one.mediators.backend


def test_sessions_end_and_move_subscribers(runs: list[SimulationRun]):
    counts = [backend(one).counts() for one in runs]
    assert sum(count.get("succeeded", 0) for count in counts) > 5
    assert sum(count.get("moved", 0) for count in counts) > 5
    assert all(backend(one).is_settled() for one in runs)


def test_a_new_mediator_continues_the_sessions(runs: list[SimulationRun]):
    assert max(backend(one).epoch for one in runs) > 2
    epochs = {session.partition(".")[0] for one in runs for session in backend(one).handovers}
    assert len(epochs) > 1


def test_a_deposed_mediator_stores_nothing(runs: list[SimulationRun]):
    one = SimulationRun(SCENARIOS["sessions-planned"], 1)
    older: OverlayNode = backend(one).mediator("m0", random.Random(1))
    backend(one).mediator("m1", random.Random(2))
    for at in range(1, 60):
        older.poll(at / 10)
        older.control_to_send()
    assert backend(one).objects
    assert backend(one).sessions() == []
