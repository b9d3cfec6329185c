"""The metrics of the operator, and that labels are bounded."""

import pytest

from plimsoll.operator.metrics import SESSION_PHASES, OperatorMetrics


def value(metrics: OperatorMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_requests_are_those_of_the_client_at_the_time_of_asking():
    metrics, counted = OperatorMetrics(), {("get", "pods", 200): 1}
    metrics.requests_of(counted)
    counted["get", "pods", 200] = 5
    assert value(metrics, "plimsoll_api_requests_total", verb="get", resource="pods", code="200") == 5


def test_sessions_by_phase():
    metrics = OperatorMetrics()
    one = {"kind": "LoadBalancingSession", "status": {"phase": "Draining"}}
    metrics.sessions_of(lambda: [one, one, {"kind": "LoadBalancingSession"}, {"kind": "Pod"}])
    found = {phase: value(metrics, "plimsoll_sessions", phase=phase) for phase in SESSION_PHASES}
    assert {phase: count for phase, count in found.items() if count} == {"Draining": 2, "Requested": 1}


def test_looks_and_silence():
    metrics = OperatorMetrics()
    metrics.reconciles.labels("fleet", "success").inc()
    metrics.reconcile_seconds.labels("fleet").observe(0.2)
    assert value(metrics, "plimsoll_reconcile_total", controller="fleet", result="success") == 1
    assert value(metrics, "plimsoll_reconcile_duration_seconds_count", controller="fleet") == 1
    silence = value(metrics, "plimsoll_watch_silence_seconds")
    assert silence is not None
    assert 0 <= silence < 60


def test_the_process_says_what_it_uses():
    used = value(OperatorMetrics(), "process_resident_memory_bytes")
    assert used is not None
    assert used > 1e6


@pytest.mark.parametrize(
    ("status", "is_late"),
    [
        ({}, False),
        ({"deadlineAt": "2026-01-01T00:00:00Z"}, True),
        ({"deadlineAt": "2026-01-01T00:00:00Z", "endedAt": "2026-01-01T00:05:00Z"}, False),
        ({"deadlineAt": "2999-01-01T00:00:00Z"}, False),
    ],
)
def test_a_session_is_overdue_whether_or_not_a_mediator_runs_it(status: dict[str, str], is_late: bool):
    metrics = OperatorMetrics()
    metrics.sessions_of(lambda: [{"kind": "LoadBalancingSession", "status": status}, {"kind": "BrokerFleet"}])
    assert value(metrics, "plimsoll_sessions_overdue") == is_late
