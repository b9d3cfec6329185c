"""From which row or time on a feed is read. Connections: `commands/test_fetch.py` and `commands/test_replay.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from plimsoll.cli.recorder_connection import first_wanted


@pytest.mark.parametrize(
    ("since", "wanted"),
    [
        (None, (1, 0)),
        (31, (31, 0)),
        (datetime(1970, 1, 1, 0, 1, tzinfo=UTC), (1, 60_000_000)),
        (datetime(1960, 1, 1, tzinfo=UTC), (1, 0)),
        (timedelta(seconds=40), (1, 60_000_000)),
        (timedelta(days=1), (1, 0)),
    ],
)
def test_a_row_or_a_time(since, wanted, monkeypatch):
    monkeypatch.setattr("plimsoll.cli.recorder_connection.time.time_ns", lambda: 100_000_000_000)
    assert first_wanted(since) == wanted
