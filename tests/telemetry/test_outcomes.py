"""Sessions that are over become rows with what was promised and measured; each once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.telemetry.rows import NOW_US

from plimsoll.telemetry import outcomes
from plimsoll.telemetry.outcomes import Outcomes, is_over, row
from plimsoll.telemetry.schema import OUTCOMES


def session(name: str = "s1", **status: Any) -> dict[str, Any]:
    loads = {"input": 0.25, "output": 0.5, "matchSeconds": 0.001}
    found = {
        "phase": "Succeeded", "reason": "Moved", "requestedAt": "2026-01-01T00:00:00Z",
        "endedAt": "2026-01-01T00:00:09Z", "source": "e1", "target": "e2", "attempt": 2,
        "plan": {"handover": "replay", "policy": "Padres", "metric": "output", "subscribers": 5},
        "predicted": {"drainSeconds": 0.5, "edges": [
            {"name": "e1", "utilizationBefore": 0.9, "utilizationAfter": 0.5, "after": loads},
            {"name": "e2", "utilizationBefore": 0.1, "utilizationAfter": 0.4},
        ]},
        "measured": {"drainSecondsMax": 0.75, "edges": [{"name": "e1", "utilization": 0.55, "after": loads}]},
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
    assert (second["broker"], second["utilization_measured"], second["input_predicted"]) == ("e2", None, None)


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
