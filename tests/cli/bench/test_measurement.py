"""A run against real brokers; and what becomes of publications that are missing."""

from __future__ import annotations

import threading
import time
import types
from typing import Any

import pytest
from tests.cli.conftest import Run

from plimsoll.cli.bench import measurement
from plimsoll.cli.bench.measurement import BenchSettings, DeliveryLog, measure
from plimsoll.cli.contexts.fleet_choice import LocalChoice
from plimsoll.cli.fleet_connection import local_settings
from plimsoll.client import Connection, Delivery, GapNotice


def test_everything_comes_and_its_delay_is_known(run: Run, shared_fleet: None):
    settings = BenchSettings(publishers=3, subscribers=2, rate=200, size=50, seconds=0.5)
    where = local_settings(LocalChoice(), None, None)
    with (
        Connection(where.heads, security=where.security) as published,
        Connection(where.heads, security=where.security) as subscribed,
    ):
        found = measure(settings, published, subscribed)
    assert (found.accepted, found.not_accepted, found.delivered, found.expected, found.gaps) == (100, 0, 200, 200, 0)
    assert found.is_complete
    assert len(found.delays_seconds) == 200
    assert 0.0 < found.delays_seconds[0] <= found.delays_seconds[-1]
    assert found.spent_seconds >= 0.495  # the last of 100 is due then


def test_a_delay_is_counted_from_when_the_publication_was_due():
    log = DeliveryLog()
    due = measurement._DUE.pack(100.0)
    pub = types.SimpleNamespace(body=types.SimpleNamespace(payload=due + b"padding"))
    found: list[Any] = [Delivery(pub, ("h", 1), 100.25), GapNotice(None, 100.0)]  # type: ignore[arg-type]  # stand-ins
    log.take(found)
    assert (list(log.delays_seconds), log.gaps) == ([0.25], 1)


def test_what_never_comes_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch):
    times = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(times)))
    monkeypatch.setattr(threading.Event, "wait", lambda self, seconds: None)
    log = DeliveryLog()
    log.delays_seconds.append(0.1)
    measurement._await_deliveries([log], expected=2)
    assert next(times) < 20
