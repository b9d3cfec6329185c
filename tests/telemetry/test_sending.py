"""Sessions arrive at a collector once, however often they are offered and whenever it comes up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.telemetry.rows import NOW_US
from tests.telemetry.test_collector import started
from tests.telemetry.test_main import wait_for
from tests.telemetry.test_outcomes import session

from plimsoll.telemetry import sending
from plimsoll.telemetry.sending import Sender, post
from plimsoll.telemetry.service import Service

TOKEN = "known-to-few"  # noqa: S105


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "token").write_text(TOKEN)
    service = Service(started(tmp_path, token_file=str(tmp_path / "token")), lambda: 0.0, lambda: NOW_US)
    service.start()
    yield service
    service.stop()


def test_sessions_arrive_once(service: Service):
    sender = Sender(lambda: ("127.0.0.1", service.port), TOKEN)
    try:
        for name in ("a", "b", "a"):
            sender.offer(session(name))
        sender.offer(session("c", phase="Draining"))
        wait_for(lambda: not sender.waiting)
    finally:
        sender.stop()
    taken = service.collector.outcomes
    assert (taken.counted, taken.refused, sender.refused) == (2, 1, 1)
    assert sender.fault == ""


def test_sessions_wait_until_a_collector_serves(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sending, "AGAIN_SECONDS", 0.02)
    places: list[tuple[str, int] | None] = [None, ("127.0.0.1", 1)]
    sender = Sender(lambda: places.pop(0) if places else ("127.0.0.1", service.port), TOKEN)
    try:
        sender.offer(session("a"))
        wait_for(lambda: sender.arrived == 1)
    finally:
        sender.stop()
    assert places == []


def test_a_wrong_token_is_said(service: Service):
    with pytest.raises(ValueError, match="401 Unauthorized"):
        post(("127.0.0.1", service.port), [session("a")], "wrong")


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sending, "WAITING_AT_MOST", 2)
    sender = Sender(lambda: None, "")
    try:
        for name in "abc":
            sender.offer(session(name))
        assert (sender.waiting, sender.refused) == (2, 1)
        wait_for(lambda: sender.fault == "no collector serves yet")
    finally:
        sender.stop()
