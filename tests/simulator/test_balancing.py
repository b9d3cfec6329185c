"""A policy in virtual time: it evens out edges of unequal hardware, moves no subscriber back, and keeps every law."""

from __future__ import annotations

from collections import defaultdict

import pytest

from plimsoll.core.edge.machine import Edge
from plimsoll.core.session import Session
from plimsoll.simulator.mediators.session_mediator import TIME_FACTOR, SessionBackend, SimulatedPolicy
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS


def run(name: str, seed: int) -> SimulationRun:
    one = SimulationRun(SCENARIOS[name], seed)
    outcome = one.go()
    assert outcome.ok, (name, seed, outcome.verdict, outcome.error)
    return one


@pytest.fixture(scope="module")
def calm() -> list[SimulationRun]:
    return [run("sessions-balanced", seed) for seed in range(6)]


def sessions(one: SimulationRun) -> list[Session]:
    assert isinstance(one.mediators.backend, SessionBackend)
    return sorted(one.mediators.backend.sessions(), key=lambda session: session.requested_at)


def test_edges_trigger_sessions_and_those_end(calm: list[SimulationRun]):
    found = [session for one in calm for session in sessions(one)]
    assert found
    assert all(session.triggered and session.kind == "balance" for session in found)
    assert {session.phase for session in found} <= {"Succeeded", "Rejected"}
    assert all(sum(session.counts()["moved"] for session in sessions(one)) for one in calm)


def test_each_session_is_to_reduce_the_difference_between_two_edges(calm: list[SimulationRun]):
    for one in calm:
        moved = [session for session in sessions(one) if session.counts()["moved"]]
        for session in moved:
            assert session.plan is not None
            source, target = session.plan.forecasts
            assert source.before is not None
            assert source.after is not None
            assert target.before is not None
            assert target.after is not None
            before, after = source.before.input - target.before.input, source.after.input - target.after.input
            assert abs(after) < abs(before), (one.seed, session.name)


def test_no_subscriber_moves_back_to_an_edge_that_it_left(calm: list[SimulationRun]):
    for one in calm:
        edges: dict[str, list[str]] = defaultdict(list)
        for session in sessions(one):
            for pair in session.plan.pairs if session.plan is not None else []:
                for name in pair.members:
                    edges[name] = edges[name] or [pair.source]
                    assert pair.target not in edges[name], (one.seed, name, session.name)
                    edges[name].append(pair.target)


def test_no_edge_is_reserved_at_the_end(calm: list[SimulationRun]):
    for one in calm:
        for broker in one.fleet.edges():
            assert isinstance(broker.host.node, Edge)
            assert broker.host.node.balancing_agent is not None
            assert broker.host.node.balancing_agent.state in ("OK", "STABILIZING")
            assert not broker.host.node.balancing_agent.load_monitor.reservation.session


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in (2, 3))])
def test_laws_hold_under_faults(seed: int):
    one = run("sessions-balanced-faults", seed)
    assert all(session.is_over for session in sessions(one))


def test_without_a_policy_no_session_is_triggered():
    one = run("sessions-planned", 1)
    assert {session.name for session in sessions(one) if session.triggered} == set()
    assert all(broker.config.policy is None for broker in one.fleet.brokers.values())


def test_durations_of_a_policy_are_scaled_by_the_time_factor():
    policy = SimulatedPolicy(check_seconds=0.5, stabilize_seconds=1.0)
    assert policy.to_spec()["detection"]["interval"] == "500ms"
    assert policy.to_spec(TIME_FACTOR)["detection"]["stabilizeFor"] == "10000ms"
