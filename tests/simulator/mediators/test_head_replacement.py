"""Heads are drained and replaced, and no answer is unknown; a head that is ended with its publishers is found."""

from __future__ import annotations

import pytest

from plimsoll.core.spec.kinds import LoadBalancingSessionSpec
from plimsoll.simulator.mediators.head_replacement import HeadReplacement
from plimsoll.simulator.mediators.session_mediator import SessionBackend
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS

SCENARIO = SCENARIOS["sessions-publishers-replaced"]


def replacement_of(run: SimulationRun) -> HeadReplacement:
    backend = run.mediators.backend
    assert isinstance(backend, SessionBackend)
    assert backend.replacement is not None
    return backend.replacement


def test_drained_heads_are_replaced_and_every_answer_is_known():
    replaced = 0
    for seed in range(6):
        run = SimulationRun(SCENARIO, seed)
        outcome = run.go()
        assert outcome.ok, outcome.verdict.violations[:3]
        replaced += len(replacement_of(run).replaced)
    assert replaced >= 6


def test_heads_that_end_with_their_publishers_leave_unknown_answers(monkeypatch: pytest.MonkeyPatch):
    def end_at_once(self: HeadReplacement, spec: LoadBalancingSessionSpec) -> None:
        if spec.action == "MovePublishers" and spec.source is not None:
            self._fleet.crash(spec.source.name)
            self._fleet.schedule.after(0.2, self._fleet.start, spec.source.name)

    monkeypatch.setattr(HeadReplacement, "requested", end_at_once)
    broken = [outcome for seed in range(6) if not (outcome := SimulationRun(SCENARIO, seed).go()).ok]
    assert broken
    assert any("answers are unknown" in str(each) for outcome in broken for each in outcome.verdict.violations)
