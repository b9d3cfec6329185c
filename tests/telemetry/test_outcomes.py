"""Sessions that are over become rows with what was promised and measured; each once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.telemetry.rows import NOW_US

from plimsoll.core.session.record import Forecast, Loads, Plan, Session
from plimsoll.core.session.status import status as written
from plimsoll.telemetry import outcomes
from plimsoll.telemetry.outcomes import Outcomes, is_over, row
from plimsoll.telemetry.schema import OUTCOMES


def session(name: str = "s1", **status: Any) -> dict[str, Any]:
    loads = {"inputPercent": 25, "outputPercent": 50, "matchMicroseconds": 1500}
    found = {
        "phase": "Succeeded", "reason": "Moved", "requestedAt": "2026-01-01T00:00:00Z",
        "endedAt": "2026-01-01T00:00:09Z", "source": "e1", "target": "e2", "attempt": 2,
        "plan": {"handover": "replay", "policy": "Padres", "metric": "output", "subscribers": 5},
        "predicted": {"drainMilliseconds": 500, "edges": [
            {"name": "e1", "utilizationBeforePercent": 90, "utilizationAfterPercent": 50, "after": loads},
            {"name": "e2", "utilizationBeforePercent": 10, "utilizationAfterPercent": 40},
        ]},
        "measured": {"drainMillisecondsMax": 750, "edges": [{"name": "e1", "utilizationPercent": 55, "after": loads}]},
        "progress": {"planned": 5, "moved": 4, "stayed": 1, "percent": 100},
    }  # fmt: skip
    return {
        "kind": "LoadBalancingSession", "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"scope": "Local", "mode": "Execute"}, "status": found | status,
    }  # fmt: skip


def test_a_session_becomes_a_row():
    found = row(session(), "f", "c0", NOW_US)
    assert tuple(found) == OUTCOMES.names
    assert (found["uid"], found["phase"], found["policy"], found["handover"]) == (
        "uid-s1", "Succeeded", "Padres", "replay",
    )  # fmt: skip
    assert found["ended_us"] - found["requested_us"] == 9_000_000
    assert found["requested_us"] == 1_767_225_600_000_000
    assert (found["planned"], found["moved"], found["stayed"], found["returned"]) == (5, 4, 1, 0)
    first, second = found["edges"]
    assert (first["utilization_predicted"], first["utilization_measured"], first["output_predicted"]) == (
        0.5,
        0.55,
        0.5,
    )
    assert (first["match_predicted_seconds"], first["utilization_before"]) == (0.0015, 0.9)
    assert (found["drain_predicted_seconds"], found["drain_measured_seconds"]) == (0.5, 0.75)
    assert (second["broker"], second["utilization_measured"], second["input_predicted"]) == ("e2", None, None)


def test_the_status_that_mediators_write_can_be_read():
    """Field for field: what a session's status is called is decided elsewhere."""
    loads = Loads(input=0.25, output=0.5, match_seconds=0.0015)
    forecast = Forecast(
        edge="e1", utilization_before=0.9, utilization_after=0.5, subscribers_before=9, subscribers_after=5,
        before=loads, after=loads, measured=loads, utilization_measured=0.55, subscribers_measured=5,
    )  # fmt: skip
    plan = _plan(forecast)
    assert set(plan["predicted"]["edges"][0]) >= {
        "name",
        "utilizationBeforePercent",
        "utilizationAfterPercent",
        "after",
    }
    found = row(session(**plan), "f", "c0", NOW_US)
    assert found["edges"][0] == {
        "broker": "e1", "utilization_before": 0.9, "utilization_predicted": 0.5, "utilization_measured": 0.55,
        "input_predicted": 0.25, "input_measured": 0.25, "output_predicted": 0.5, "output_measured": 0.5,
        "match_predicted_seconds": 0.0015, "match_measured_seconds": 0.0015,
    }  # fmt: skip
    assert found["drain_predicted_seconds"] == 0.25


def _plan(forecast: Forecast) -> dict[str, Any]:
    plan = Plan(hash="x", pairs=[], made_at=0.0, forecasts=[forecast], drain_seconds=0.25)
    made = Session(
        uid="u", name="s", requested_at=0.0, queued_at=0.0, deadline_at=1.0, phase="Succeeded", phase_at=0.0, plan=plan,
    )  # fmt: skip
    status = written(made, 1.0)
    return {name: status[name] for name in ("plan", "predicted", "measured")}


def test_a_session_that_ended_early_has_no_plan():
    bare = {"phase": "Rejected", "requestedAt": "2026-01-01T00:00:00Z", "endedAt": "2026-01-01T00:00:00Z"}
    found = row({"metadata": {"name": "s"}, "spec": {}, "status": bare}, "f", "c0", NOW_US)
    assert (found["uid"], found["handover"], found["edges"]) == ("s", "", [])


@pytest.mark.parametrize(
    "item",
    [session(phase="Draining"), session(endedAt=None), session(requestedAt="soon"), {"metadata": {"name": "s"}}, {}],
)
def test_other_things_are_refused(item: dict[str, Any]):
    taken = Outcomes("f", "c0")
    with pytest.raises(ValueError, match=r"session s1 is|\$|missing required|Object"):
        taken.take(item, NOW_US)
    assert (taken.refused, taken.waiting) == (1, [])


def test_is_over_looks_at_the_end():
    assert is_over(session())
    assert is_over(session(phase="Planned"))
    assert not is_over(session(phase="Draining"))
    waiting = session(phase="Planned")
    del waiting["status"]["endedAt"]
    assert not is_over(waiting), "a plan that waits for its approval"
    assert not is_over({"metadata": {}})


def test_a_session_is_taken_once():
    taken = Outcomes("f", "c0")
    assert taken.take(session("a"), NOW_US)
    assert not taken.take(session("a"), NOW_US + 1)
    assert not taken.remember("uid-a")
    assert taken.take(session("b"), NOW_US)
    assert (taken.counted, taken.duplicates, len(taken.waiting)) == (2, 1, 2)


def test_what_is_remembered_and_waits_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outcomes, "KNOWN_AT_MOST", 2)
    monkeypatch.setattr(outcomes, "WAITING_AT_MOST", 2)
    taken = Outcomes("f", "c0")
    for name in "abc":
        assert taken.take(session(name), NOW_US)
    assert len(taken.waiting) == 2
    assert taken.dropped == 1
    rows = taken.take_rows()
    assert taken.take(session("a"), NOW_US), "it has been forgotten"
    taken.back(rows)
    assert len(taken.waiting) == 2
    assert taken.dropped == 2


def test_what_is_sent_is_all_that_a_row_needs():
    whole = session(record={"large": True}, moves=["many"])
    told = outcomes.brief(whole)
    assert row(told, "f", "c0", NOW_US) == row(whole, "f", "c0", NOW_US)
    assert "record" not in told["status"]
