"""Audits that claim what has not happened are found."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session import made
from tests.core.session.alone import batch_of

from plimsoll.core.session.batch import AuditTotals
from plimsoll.core.verify import audit_journal
from plimsoll.simulator.checks.audit_laws import disagreements
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS

QUIET = audit_journal([])
GOOD = AuditTotals(subscribers=2, publishers=1, asked=3, before=4, after=5)


def found(audit: AuditTotals | None, **happened: Any) -> list[str]:
    session = made.session("s", batches=[batch_of(audit=audit)])
    return list(disagreements([session], dataclasses.replace(QUIET, **happened)))


@pytest.mark.parametrize("audit", [None, GOOD, AuditTotals(subscribers=5)])
def test_audits_without_faults_agree_with_any_run(audit: AuditTotals | None):
    assert found(audit) == []
    assert found(audit, lost=3, duplicated=2, reordered=1) == []


@pytest.mark.parametrize("count", ["lost", "duplicated", "reordered"])
def test_no_more_faults_are_counted_than_happened(count: str):
    audit = replace(GOOD, **{count: 2})
    assert found(audit, **{count: 2}) == []
    assert found(audit, **{count: 1}) == [f"s, batch 4.1: counts 2 deliveries as {count}, of 1 in the run"]


def test_a_gap_excuses_a_loss_that_an_audit_counts():
    assert found(replace(GOOD, lost=2), excused=2) == []


def test_no_more_answer_than_were_asked_and_no_more_is_lost_than_was_due():
    assert found(replace(GOOD, subscribers=4)) == ["s, batch 4.1: 4 subscribers have answered, and 3 were asked"]
    assert found(replace(GOOD, lost=10), lost=10) == ["s, batch 4.1: 10 deliveries are lost, of 9 that were due"]


def test_a_run_in_which_they_disagree_has_broken_a_law(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.simulator.run.disagreements", lambda *_: ["s, batch 4.1: counts too much"])
    outcome = SimulationRun(SCENARIOS["sessions-publishers"], 0).go()
    assert not outcome.ok
    assert "counts too much" in str(outcome.verdict)
