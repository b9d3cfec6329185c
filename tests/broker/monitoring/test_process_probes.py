"""Probes before there is a broker: alive as long as the loop makes rounds, ready once the process may be promoted."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from plimsoll.broker.monitoring.process_probes import STUCK_SECONDS, ProcessProbes
from plimsoll.telemetry.http_server import HttpRequest, HttpResponse


class Clock:
    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ask(probes: ProcessProbes, path: str) -> tuple[int, str]:
    found = probes.answer(HttpRequest("GET", path))
    return int(found.status), found.body.decode().strip()


def test_a_process_that_waits_is_alive_and_not_ready(clock: Clock):
    probes = ProcessProbes(clock)
    assert ask(probes, "/readyz") == (503, "starting")
    probes.note("it waits")
    assert (ask(probes, "/livez"), ask(probes, "/readyz")) == ((200, "ok"), (503, "it waits"))
    probes.note("")
    assert (ask(probes, "/readyz"), ask(probes, "/metrics")) == ((200, "ok"), (200, ""))
    assert ask(probes, "/other")[0] == 404


def test_one_whose_loop_is_stuck_is_neither(clock: Clock):
    probes = ProcessProbes(clock)
    probes.note("")
    clock.now += STUCK_SECONDS + 1
    assert [ask(probes, path)[0] for path in ("/livez", "/readyz")] == [503, 503]


def test_a_broker_answers_for_itself(clock: Clock):
    probes = ProcessProbes(clock)
    probes.answer_by(lambda request: HttpResponse(HTTPStatus.OK, request.path.encode()))
    assert ask(probes, "/readyz") == (200, "/readyz")
