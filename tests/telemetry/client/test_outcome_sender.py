"""Sessions arrive at a collector once, however often they are offered and whenever it comes up."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from tests.telemetry.rows import NOW_US
from tests.telemetry.test_collector import started
from tests.telemetry.test_main import wait_for
from tests.telemetry.test_session_rows import session

from plimsoll.telemetry.api.http_service import CollectorService
from plimsoll.telemetry.client import outcome_sender
from plimsoll.telemetry.client.outcome_sender import OutcomeSender, post_sessions
from plimsoll.telemetry.http_server import HttpResponse, HttpServer

TOKEN = "known-to-few"  # noqa: S105  # of this test alone


@pytest.fixture
def service(tmp_path: Path) -> Iterator[CollectorService]:
    (tmp_path / "token").write_text(TOKEN)
    service = CollectorService(started(tmp_path, token_file=str(tmp_path / "token")), lambda: 0.0, lambda: NOW_US)
    service.start()
    yield service
    service.stop()


def test_sessions_arrive_once(service: CollectorService):
    sender = OutcomeSender(lambda: ("127.0.0.1", service.port), TOKEN)
    try:
        for name in ("a", "b", "a"):
            sender.enqueue(session(name))
        sender.enqueue(session("c", phase="Draining"))
        wait_for(lambda: not sender.waiting)
    finally:
        sender.stop()
    taken = service.collector.outcomes
    assert (taken.counted, taken.refused, sender.refused) == (2, 1, 1)
    assert sender.fault == ""


def test_sessions_wait_until_a_collector_serves(service: CollectorService, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outcome_sender, "RETRY_SECONDS", 0.02)
    places: list[tuple[str, int] | None] = [None, ("127.0.0.1", 1)]
    sender = OutcomeSender(lambda: places.pop(0) if places else ("127.0.0.1", service.port), TOKEN)
    try:
        sender.enqueue(session("a"))
        wait_for(lambda: sender.arrived == 1)
    finally:
        sender.stop()
    assert places == []


def test_a_wrong_token_is_said(service: CollectorService):
    with pytest.raises(ValueError, match="401 Unauthorized"):
        post_sessions(("127.0.0.1", service.port), [session("a")], "wrong")


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"invalid": 1e400}', b'{"invalid": -1}', b"[" * 10_000, b"<html>"])
@pytest.mark.parametrize("status", [HTTPStatus.OK, HTTPStatus.BAD_GATEWAY])
def test_an_answer_that_is_none_is_a_fault_and_is_asked_for_again(body: bytes, status: HTTPStatus):
    server = HttpServer(
        ("127.0.0.1", 0), lambda request: HttpResponse(status, body), methods=("POST",), body_bytes=10_000
    )
    server.start()
    try:
        with pytest.raises(ValueError):  # any is a fault that is told
            post_sessions(("127.0.0.1", server.port), [], "token")
    finally:
        server.close()


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outcome_sender, "WAITING_AT_MOST", 2)
    sender = OutcomeSender(lambda: None, "")
    try:
        for name in "abc":
            sender.enqueue(session(name))
        assert (sender.waiting, sender.refused) == (2, 1)
        wait_for(lambda: sender.fault == "no collector serves yet")
    finally:
        sender.stop()
