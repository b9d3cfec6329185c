"""Liveness and readiness, and their endpoint."""

import asyncio

import aiohttp
from tests.operator.faults import cancelled, eventually

from plimsoll.operator.health import STUCK_SECONDS, OperatorHealth, http_server, measure_lag
from plimsoll.operator.metrics import OperatorMetrics


def test_a_fleet_that_is_not_reconciled_is_stuck():
    health = OperatorHealth(stalled_seconds=90)
    health.last_reconciled["ns"] = 100.0
    assert health.trouble(100.0 + STUCK_SECONDS) == ""
    assert "ns" in health.trouble(101.0 + STUCK_SECONDS)
    health.forget("ns")
    assert health.trouble(1e9) == ""


def test_a_watch_that_has_not_told_of_what_is_there_is_deaf():
    stalled: dict[str, str] = {}
    health = OperatorHealth(stalled_seconds=90, stalled_watches=stalled)
    assert health.trouble(1.0) == ""
    stalled["Pod"] = "Pod ns/a"
    assert health.trouble(1.0) == "a watch is stalled: Pod ns/a exists and was not delivered"


def test_watches_that_do_not_hear_the_canary_are_deaf():
    health = OperatorHealth(stalled_seconds=90, canary_seen=100.0)
    assert health.trouble(1000.0) == ""  # nothing was written that they could have delivered
    health.canary_written = 130.0
    assert health.trouble(190.0) == ""
    assert "91 s" in health.trouble(191.0)
    health.canary_seen = 185.0
    assert health.trouble(191.0) == ""


def test_a_watch_that_does_not_tell_of_what_was_written_is_deaf():
    health = OperatorHealth(stalled_seconds=90, pending_write=lambda now: ("Pod", now - 10.0))
    assert health.trouble(100.0) == ""
    assert "Pod" in health.trouble(101.0)


def test_the_endpoint():
    async def ask() -> list[tuple[int, str]]:
        health, metrics = OperatorHealth(stalled_seconds=90), OperatorMetrics()
        metrics.requests_of({("get", "pods", 200): 3, ("get", "secrets", 200): 2})
        metrics.sessions_of(lambda: [{"kind": "LoadBalancingSession", "status": {"phase": "Cutting"}}])
        async with http_server(health, metrics, 0) as port, aiohttp.ClientSession() as client:
            said: list[tuple[int, str]] = []
            for path in ("livez", "readyz", "metrics"):
                async with client.get(f"http://127.0.0.1:{port}/{path}") as answer:
                    said.append((answer.status, await answer.text()))
            health.ready = True
            health.last_reconciled["ns"] = -1e9
            for path in ("livez", "readyz"):
                async with client.get(f"http://127.0.0.1:{port}/{path}") as answer:
                    said.append((answer.status, await answer.text()))
            return said

    livez, readyz, metrics, stuck, ready = asyncio.run(ask())
    assert (livez[0], readyz[0], stuck[0], ready[0]) == (200, 503, 503, 200)
    assert 'plimsoll_api_requests_total{code="200",resource="pods",verb="get"} 3.0' in metrics[1]
    assert 'plimsoll_sessions{phase="Cutting"} 1.0' in metrics[1]
    assert "plimsoll_watch_silence_seconds" in metrics[1]


def test_lag_is_measured():
    async def run() -> float:
        metrics = OperatorMetrics()
        task = asyncio.create_task(measure_lag(metrics))
        seen = await eventually(
            lambda: metrics.registry.get_sample_value("plimsoll_event_loop_lag_seconds"), "a measurement"
        )
        await cancelled(task)
        return float(seen)

    assert asyncio.run(run()) > 0
