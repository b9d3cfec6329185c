"""Ended sessions become rows with predictions and measurements."""

from __future__ import annotations

from typing import Any

from tests.telemetry.rows import NOW_US

from plimsoll.core.session.session_plan import Forecast, LoadFigures, SessionPlan
from plimsoll.core.session.state import Session
from plimsoll.core.session.status import status as written
from plimsoll.telemetry.schema import OUTCOMES
from plimsoll.telemetry.session_rows import is_over, session_brief, session_row


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
        "progress": {"planned": 9, "moved": 4, "stayed": 1, "away": 2, "gone": 2, "percent": 100},
    }  # fmt: skip
    return {
        "kind": "LoadBalancingSession", "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"scope": "Local", "mode": "Execute"}, "status": found | status,
    }  # fmt: skip


def test_a_session_becomes_a_row():
    found = session_row(session(), "f", "c0", NOW_US)
    assert tuple(found) == OUTCOMES.names
    assert (found["uid"], found["phase"], found["policy"], found["handover"]) == (
        "uid-s1", "Succeeded", "Padres", "replay",
    )  # fmt: skip
    assert found["ended_us"] - found["requested_us"] == 9_000_000
    assert found["requested_us"] == 1_767_225_600_000_000
    assert (found["planned"], found["moved"], found["stayed"], found["returned"]) == (9, 4, 1, 0)
    assert (found["away"], found["gone"]) == (2, 2)
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
    """Field for field: the names of a session's status are decided elsewhere."""
    loads = LoadFigures(input=0.25, output=0.5, match_seconds=0.0015)
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
    found = session_row(session(**plan), "f", "c0", NOW_US)
    assert found["edges"][0] == {
        "broker": "e1", "utilization_before": 0.9, "utilization_predicted": 0.5, "utilization_measured": 0.55,
        "input_predicted": 0.25, "input_measured": 0.25, "output_predicted": 0.5, "output_measured": 0.5,
        "match_predicted_seconds": 0.0015, "match_measured_seconds": 0.0015,
    }  # fmt: skip
    assert found["drain_predicted_seconds"] == 0.25


def _plan(forecast: Forecast) -> dict[str, Any]:
    plan = SessionPlan(hash="x", pairs=[], made_at=0.0, forecasts=[forecast], drain_seconds=0.25)
    made = Session(
        uid="u", name="s", requested_at=0.0, queued_at=0.0, deadline_at=1.0, phase="Succeeded", phase_at=0.0, plan=plan,
    )  # fmt: skip
    status = written(made, 1.0)
    return {name: status[name] for name in ("plan", "predicted", "measured")}


def test_a_session_that_ended_early_has_no_plan():
    bare = {"phase": "Rejected", "requestedAt": "2026-01-01T00:00:00Z", "endedAt": "2026-01-01T00:00:00Z"}
    found = session_row({"metadata": {"name": "s"}, "spec": {}, "status": bare}, "f", "c0", NOW_US)
    assert (found["uid"], found["handover"], found["edges"]) == ("s", "", [])


def test_is_over_looks_at_the_end():
    assert is_over(session())
    assert is_over(session(phase="Planned"))
    assert not is_over(session(phase="Draining"))
    waiting = session(phase="Planned")
    del waiting["status"]["endedAt"]
    assert not is_over(waiting), "a plan that waits for its approval"
    assert not is_over({"metadata": {}})


def test_what_is_sent_is_all_that_a_row_needs():
    whole = session(record={"large": True}, moves=["many"])
    told = session_brief(whole)
    assert session_row(told, "f", "c0", NOW_US) == session_row(whole, "f", "c0", NOW_US)
    assert "record" not in told["status"]
