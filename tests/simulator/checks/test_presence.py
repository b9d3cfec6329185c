"""What a source knows of a member is compared with what its head says of it, in whole runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.core.fleet import one_cluster, resume
from tests.core.head.handover.script import attach

from plimsoll.core.edge.attachment import AttachmentState
from plimsoll.core.edge.handover import source
from plimsoll.core.edge.handover.source import HandoverSource
from plimsoll.core.head.handover import table
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.departures import Departure, departure
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.checks.presence import SourcePresence
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


@pytest.mark.parametrize("is_told", [True, False])
def test_a_place_that_a_head_has_ended_is_judged_once_its_edge_has_heard(is_told, monkeypatch: pytest.MonkeyPatch):
    fleet = one_cluster()
    head, found = fleet.head(), list[Any]()
    presence = SourcePresence(fleet.nodes.get, lambda: fleet.now, found.append)
    presence.watch_head(head)
    presence.watch_edge(fleet.edge("e1"))
    client = fleet.client("x", "e1")
    client.tell("e1", resume(1, "x"))
    fleet.run(0.5)
    plan = msg.HandoverPlan("e1", "e2", "h", ["x"], False, 5.0, 5.0)
    fleet.mediator("h").say_control("h", msg.Command(1, head.epoch, "1.1", "prepare", plan))
    fleet.run(0.1)
    if not is_told:
        monkeypatch.setattr(head.membership, "release", lambda *_: None)
    head.end_place("x")
    presence.measure()
    assert (found, len(presence.unheard)) == ([], 1)
    fleet.run(1.0)
    presence.measure()
    assert (found[0].outcome, found[0].missed_at == fleet.now) == ("gone", is_told)
    assert not presence.unheard


def test_what_was_on_standby_when_its_head_said_that_it_is_elsewhere_was_not_served():
    """Another hand-over brings it there afterwards, before the outcome is judged."""
    fleet = one_cluster()
    head, found = fleet.head(), list[Any]()
    presence = SourcePresence(fleet.nodes.get, lambda: fleet.now, found.append)
    presence.watch_head(head)
    presence.watch_edge(fleet.edge("e2"))
    client, mediator = fleet.client("x", "e1", "e2"), fleet.mediator("h")
    client.tell("e1", resume(1, "x"))
    fleet.run(0.5)
    for session, leaves, arrives in (("1.1", "e1", "e2"), ("1.2", "e2", "e1")):
        plan = msg.HandoverPlan(leaves, arrives, "h", ["x"], False, 5.0, 5.0)
        mediator.say_control("h", msg.Command(1, head.epoch, session, "prepare", plan))
        fleet.run(0.1)
        if session == "1.1":
            client.tell("e2", attach(2, "x", n=2, session=session))
            fleet.run(0.1)
    mediator.say_control("h", msg.Command(1, head.epoch, "1.1", "cut"))
    fleet.run(0.1)
    assert fleet.edge("e2").attachments.by_subscriber["x"].state is AttachmentState.BUFFERING
    assert (found, len(presence.unheard)) == ([], 1)
    presence.measure()
    assert [(one.session, one.outcome, one.missed_at) for one in found] == [("1.2", "gone", fleet.now)]
