"""What a source knows of a member is compared with what its head says of it, in whole runs."""

from __future__ import annotations

from collections import Counter

import pytest

from plimsoll.core.edge.handover import source
from plimsoll.core.edge.handover.source import HandoverSource
from plimsoll.core.head.handover import table
from plimsoll.core.protocol.departures import Departure, departure
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS

SEEDS = range(12)


def told() -> tuple[Counter[str], set[str]]:
    """Outcomes without a cut in some runs with clients that are killed, and the laws that were broken."""
    outcomes: Counter[str] = Counter()
    broken: set[str] = set()
    for seed in SEEDS:
        run = SimulationRun(SCENARIOS["sessions-clients"], seed)
        broken |= run.go().broken
        outcomes.update(one.outcome for one in run.journal.all if isinstance(one, seen.UncutMemberObserved))
    return outcomes, broken


def test_each_outcome_comes_up_and_is_true():
    outcomes, broken = told()
    assert set(outcomes) == {"stayed", "away", "gone"}
    assert broken == set()


def test_a_source_that_reports_no_closed_member_is_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(HandoverSource, "report_closed", lambda self: None)
    monkeypatch.setattr(source, "NOT_CONNECTED", "its client is not connected to the source")
    assert "I8" in told()[1]


def test_a_head_that_takes_every_reason_for_a_departure_is_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(table, "departure", lambda reason: Departure("away", departure(reason).text))
    assert "I8" in told()[1]
