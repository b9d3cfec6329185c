"""An API server drops fields that a schema does not know: no field that is written into a status may be lost."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

import pytest
from tests.core.session.balanced import Balanced
from tests.core.session.model import Faults, World
from tests.crds.corpus import FULL, changed, documents
from tests.crds.structural import faults, pruned, schema_of
from tests.operator.world import World as Kubernetes

from plimsoll.core.session import Session, status
from plimsoll.core.session.state import PHASES
from plimsoll.core.spec import SourceDocument, parse
from plimsoll.core.spec.field_info import described_fields
from plimsoll.core.spec.schemas.crd import STATUSES
from plimsoll.mediator import resource_status
from plimsoll.mediator.balance import cluster_summary, session_outline
from plimsoll.mediator.calibration import profile_status
from plimsoll.mediator.plan_storage import split_session
from plimsoll.operator import status as operator_status
from plimsoll.operator.mediator.broker_poller import BrokerReading
from plimsoll.operator.reconcile.retries import Fault

NUMBERS = {
    "input_utilization": 0.5, "output_utilization": 0.25, "match_delay_seconds": 0.001, "input_rate": 20.0,
    "output_rate": 40.0, "output_bytes_per_second": 1e4, "input_queue_delay_seconds": 0.1,
    "output_queue_delay_seconds": 0.2, "input_queue_messages": 3, "output_queue_messages": 4,
    "output_queue_bytes": 500, "cpu_ratio": 0.3, "memory_ratio": 0.2, "subscriptions": 9, "subscribers": 4,
    "state": "OK",
}  # fmt: skip
SEEN = resource_status.ObservedBroker(
    "e", "edge", "c", "small", "tcp://d", "tcp://c", "key", pid=7, answer_age=0.5, serving=True, report_age=0.5,
    report=NUMBERS, last_end="exited with code 3", restarts=2,
)  # fmt: skip
NOW = "2026-11-21T10:00:00Z"


def check(kind: str, written: dict[str, Any]) -> None:
    """The status is kept whole, and is valid."""
    schema = schema_of(kind)["properties"]["status"]
    stored = json.loads(json.dumps(written))
    assert pruned(schema, stored) == stored
    assert list(faults(schema, stored)) == []


def item(kind: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "x", "generation": 3}, "spec": {}, "status": {}}


@pytest.mark.parametrize("answers", [None, 0.5, 9.0])
def test_what_is_said_of_brokers_is_kept(answers):
    seen = resource_status.ObservedBroker(**{**SEEN.__dict__, "answer_age": answers})
    check("EdgeBroker", resource_status.edge_status(item("EdgeBroker"), seen, 1.0, NOW))
    check("BrokerCluster", resource_status.cluster_status(item("BrokerCluster"), seen, [seen, seen], 1.0, NOW))


def test_what_is_said_of_a_fleet_is_kept():
    fleet = {**item("BrokerFleet"), "status": {"mediatorEpoch": 4, "draining": ["e"]}}
    mediator = {"restarts": 1, "pid": 8, "lastEnd": "exited with code 1"}
    for plain in (True, False):
        check(
            "BrokerFleet",
            resource_status.fleet_status(
                fleet, [SEEN], plain=plain, pid=6, mediator=mediator, interval_seconds=1.0, time=NOW
            ),
        )  # fmt: skip


def test_what_is_said_of_profiles_and_of_clusters_in_brief_is_kept():
    measured = {**NUMBERS, "match_base_seconds": 1e-6, "match_seconds_per_match": 1e-7}
    seen = resource_status.ObservedBroker(**{**SEEN.__dict__, "report": measured})
    check(
        "HardwareProfile", profile_status({**item("HardwareProfile"), "metadata": {"name": "small"}}, [seen], 1.0, NOW)
    )
    windows = [{"name": "n", "schedule": "0 2 * * *", "duration": "1h"}]
    east = changed(FULL["BrokerCluster"], ("spec", "maintenanceWindows"), windows)
    resources = parse([SourceDocument(content) for content in documents(east)])
    ended = {"phase": "Succeeded", "reason": "Moved", "progress": {"moved": 3}, "endedAt": NOW}
    session = {"metadata": {"name": "s"}, "spec": {"source": {"name": "e"}}, "status": ended}
    found = cluster_summary(resources, "east", [seen, seen], [session_outline(session)], 0.0)
    assert found.keys() == {"replicas", "load", "imbalancePercent", "lastSession", "nextWindow"}
    check("BrokerCluster", found)


def test_what_the_operator_says_is_kept():
    world = Kubernetes()
    world.settle()
    heard = {name: BrokerReading({"ready": True}, 0.1, NUMBERS, 0.5) for name in world.of("StatefulSet")}
    facts = operator_status.StatusInputs(
        desired=world.desired(), observed=world.observed(), readings=heard, time=NOW, mediator={"pod": "operator-0"},
        faults={("Service", "edge-2"): Fault("NameTaken", "another owner has created it")},
    )  # fmt: skip
    kinds = set()
    for of, status_ in operator_status.fleet_statuses(facts):
        kinds.add(of["kind"])
        check(of["kind"], status_)
    assert kinds == {"BrokerFleet", "BrokerCluster", "EdgeBroker", "HardwareProfile"}


def check_session(session: Session, now: float) -> None:
    record, _ = split_session(session)
    stored = {"record": record, "planObjects": ["s-plan-0"], "planKey": "plan", "mediatorEpoch": 3}
    check("LoadBalancingSession", {**status(session, now), **stored})


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_sessions_is_kept(seed):
    """Moved, drained by children, failed and tried again: as stored at each step."""
    world = World(seed=seed, faults=Faults(loss=0.1, leaves=0.1, head_restarts=0.02, speed=0.3))
    world.fill("a", 20)
    world.fill("b", 5)
    one = world.ask("s", source="b", target="c", select={"count": 4}, retries=2, exclusions={"subscribers": ["b0"]})
    world.until_over(one, seconds=900)
    world.until_over(world.ask("d", source="a", action="Drain", retries=1), seconds=900)
    assert {session.phase for _, session in world.saves} >= {"Requested", "Preparing"}
    for at, session in world.saves:
        check_session(session, at)


def test_what_is_said_of_sessions_that_a_policy_plans_is_kept():
    world = Balanced(seed=1)
    world.fill("a", 40)
    world.run(60)
    sessions = [(at, session) for at, session in world.saves if session.kind == "balance"]
    assert any(session.plan is not None and session.plan.moves for _, session in sessions)
    for at, session in sessions:
        check_session(session, at)


def test_the_phases_are_named():
    text = next(each.about.text for each in described_fields(STATUSES["LoadBalancingSession"]) if each.key == "phase")
    assert [phase for phase in PHASES if phase not in text] == []


def test_statuses_have_no_fields_without_a_type():
    for kind in STATUSES.values():
        assert get_type_hints(kind).keys() == {each.name for each in described_fields(kind)}
