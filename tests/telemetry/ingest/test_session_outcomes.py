"""Finished sessions wait for a collector's files: each once, and no more than a bound."""

from __future__ import annotations

from typing import Any

import pytest
from tests.telemetry.rows import NOW_US
from tests.telemetry.test_session_rows import session

from plimsoll.telemetry.ingest import session_outcomes
from plimsoll.telemetry.ingest.session_outcomes import SessionOutcomes


@pytest.mark.parametrize(
    "item",
    [session(phase="Draining"), session(endedAt=None), session(requestedAt="soon"), {"metadata": {"name": "s"}}, {}],
)
def test_other_things_are_refused(item: dict[str, Any]):
    taken = SessionOutcomes("f", "c0")
    with pytest.raises(ValueError, match=r"session s1 is|\$|missing required|Object"):
        taken.take_session(item, NOW_US)
    assert (taken.refused, taken.pending_rows) == (1, [])


def test_a_session_is_taken_once():
    taken = SessionOutcomes("f", "c0")
    assert taken.take_session(session("a"), NOW_US)
    assert not taken.take_session(session("a"), NOW_US + 1)
    assert not taken.remember("uid-a")
    assert taken.take_session(session("b"), NOW_US)
    assert (taken.counted, taken.duplicates, len(taken.pending_rows)) == (2, 1, 2)


def test_what_is_remembered_and_waits_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_outcomes, "REMEMBERED_AT_MOST", 2)
    monkeypatch.setattr(session_outcomes, "WAITING_AT_MOST", 2)
    taken = SessionOutcomes("f", "c0")
    for name in "abc":
        assert taken.take_session(session(name), NOW_US)
    assert len(taken.pending_rows) == 2
    assert taken.dropped == 1
    rows = taken.take_rows()
    assert taken.take_session(session("a"), NOW_US), "it has been forgotten"
    taken.return_rows(rows)
    assert len(taken.pending_rows) == 2
    assert taken.dropped == 2
