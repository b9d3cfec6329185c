"""Leases and beginnings as applications write them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from plimsoll.client.stay import begin_at, lease_seconds


def test_a_lease_is_seconds_or_a_span():
    assert lease_seconds(90) == 90.0
    assert lease_seconds(timedelta(days=2)) == 2 * 86_400.0


def test_a_beginning_is_a_moment_a_span_before_now_or_a_position():
    assert begin_at(None) is None
    assert begin_at(("h", 11, 41)) == ("h", 11, 41)
    assert begin_at(1_700_000_000) == 1_700_000_000.0
    assert begin_at(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    before = time.time()
    found = begin_at(timedelta(minutes=10))
    assert isinstance(found, float)
    assert before - 600.0 <= found <= time.time() - 600.0


def test_a_moment_without_a_time_zone_is_refused():
    with pytest.raises(ValueError, match=r"astimezone\(\)"):
        begin_at(datetime(2026, 1, 1))  # noqa: DTZ001  # the case that is refused
