"""Times of objects."""

from datetime import UTC, datetime

from plimsoll.local.times import now_text


def test_times_are_rfc_3339_in_utc():
    then = datetime.fromisoformat(now_text())
    assert then.tzinfo == UTC
    assert abs((datetime.now(UTC) - then).total_seconds()) < 60
    assert len(now_text()) == len("2026-01-01T00:00:00Z")
