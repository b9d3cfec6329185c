"""The answers to probes, and their source."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from tests.broker.monitoring.test_metrics import snapshot

from plimsoll.broker.monitoring import health
from plimsoll.broker.monitoring.health import BrokerHealth
from plimsoll.broker.monitoring.process_probes import STUCK_SECONDS
from plimsoll.telemetry.http_server import HttpRequest


class World:
    def __init__(self) -> None:
        self.now, self.is_leaving = 100.0, False
        self.health = BrokerHealth(lambda: self.is_leaving, lambda: self.now)

    def told(self, path: str) -> tuple[int, str]:
        answer = self.health.answer(HttpRequest("GET", path))
        return answer.status.value, answer.body.decode().strip()


@pytest.fixture
def world() -> World:
    return World()


def test_a_broker_that_has_just_started_is_alive_and_not_ready(world: World):
    assert world.told("/livez") == (200, "ok")
    assert world.told("/readyz") == (503, "starting")
    assert world.told("/metrics") == (503, "starting")


def test_a_broker_that_serves_is_alive_and_ready(world: World):
    world.health.update(snapshot(at=100.0))
    assert world.told("/livez") == world.told("/readyz") == (200, "ok")


def test_the_machine_says_why_it_is_not_ready(world: World):
    world.health.update(snapshot(at=100.0, unready="waiting for e1 to report"))
    assert world.told("/livez") == (200, "ok")
    assert world.told("/readyz") == (503, "waiting for e1 to report")


def test_a_loop_that_does_not_come_round_is_stuck(world: World):
    world.health.update(snapshot(at=100.0))
    world.now += STUCK_SECONDS
    assert world.told("/livez") == (200, "ok")
    world.now += 1
    stuck = (503, "the loop has completed no round for 16 seconds")
    assert world.told("/livez") == world.told("/readyz") == stuck
    world.health.update(snapshot(at=world.now))
    assert world.told("/livez") == world.told("/readyz") == (200, "ok")


def test_a_broker_that_never_gets_to_its_loop_is_stuck(world: World):
    world.now += STUCK_SECONDS + 1
    assert world.told("/livez")[0] == 503


def test_who_is_asked_to_leave_is_unready_at_once_and_still_alive(world: World):
    world.health.update(snapshot(at=100.0))
    world.is_leaving = True
    assert world.told("/readyz") == (503, "leaving")
    assert world.told("/livez") == (200, "ok")


def test_metrics_are_written_once_per_snapshot(world: World, monkeypatch: pytest.MonkeyPatch):
    written: list[object] = []

    def render(shown: object) -> bytes:
        written.append(shown)
        return b"text"

    monkeypatch.setattr(health, "render_metrics", render)
    first, second = snapshot(at=100.0), snapshot(at=101.0)
    for shown in (first, first, second, second):
        world.health.update(shown)
        assert world.told("/metrics") == (200, "text")
    assert written == [first, second]
    assert world.health.answer(HttpRequest("GET", "/metrics")).content_type.startswith("text/plain; version=0.0.4")


def test_other_paths_have_no_answer(world: World):
    assert world.health.answer(HttpRequest("GET", "/")).status == 404


def test_metrics_are_answered_as_text(world: World):
    world.health.update(snapshot(at=100.0))
    answer = world.health.answer(HttpRequest("GET", "/metrics"))
    assert answer.status is HTTPStatus.OK
    assert b"# HELP plimsoll_broker_ready " in answer.body
