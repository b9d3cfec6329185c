"""Times of objects."""

from datetime import UTC, datetime

from plimsoll.local.timestamps import rfc3339_now


def test_times_are_rfc_3339_in_utc():
    then = datetime.fromisoformat(rfc3339_now())
    assert then.tzinfo == UTC
    assert abs((datetime.now(UTC) - then).total_seconds()) < 60
    assert len(rfc3339_now()) == len("2026-01-01T00:00:00Z")
