"""Sessions of the store as rows of a report: predictions, measurements, and accuracies."""

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.core.session import Session, encode
from plimsoll.core.session.batch import Batch
from plimsoll.core.session.session_plan import Forecast, LoadFigures, SessionPlan
from plimsoll.demo.analysis import session_outcomes
from plimsoll.demo.analysis.convergence import StabilityStop


def forecast(edge: str, **values: tuple[float, float, float]) -> Forecast:
    loads: Any = {name: LoadFigures(input=of[0], output=of[1], match_seconds=of[2]) for name, of in values.items()}
    return Forecast(
        edge=edge, subscribers_before=9, subscribers_after=9, utilization_before=0.0, utilization_after=0.0, **loads
    )


def stored(name="balance-1", asked=105.0, metric="input", stopped="Balanced: input differs by +0.001", **more):
    batch = Batch(
        id="1.1", head="h", head_epoch=1, source="b1", target="b2", target_head="h", replay=True, prepare_seconds=1.0,
        drain_seconds=1.0, begun_at=asked, ended_at=asked + 2, members={f"s{number}": "moved" for number in range(40)},
    )  # fmt: skip
    forecasts = [
        forecast("b1", before=(1.2, 0.5, 0.01), after=(0.5, 0.2, 0.004), measured=(0.4, 0.2, 0.005)),
        forecast("b2", before=(0.0, 0.0, 0.0), after=(0.4, 0.3, 0.002), measured=(0.4, 0.0, 0.002)),
    ]
    plan = SessionPlan(
        hash="x", pairs=[], made_at=asked, policy="Padres", metric=metric, stop=stopped, forecasts=forecasts
    )
    fields = {
        "uid": f"uid-{name}", "name": name, "phase": "Succeeded", "reason": "Moved", "message": "40 moved",
        "sources": ["b1"], "targets": ["b2"], "requested_at": asked, "queued_at": asked, "phase_at": asked,
        "deadline_at": asked + 300, "started_at": asked + 1.0, "ended_at": asked + 4.5, "plan": plan,
        "batches": [batch], **more,
    }  # fmt: skip
    record = encode(Session(**fields))
    return {"metadata": {"name": name}, "spec": {"mode": "Execute"}, "status": {"record": record}}


def test_a_session_is_a_row():
    [row] = session_outcomes.reported_sessions([stored()], began_at=100.0)
    assert (row.uid, row.source, row.target, row.action, row.mode) == (
        "uid-balance-1", "b1", "b2", "Rebalance", "Execute",
    )  # fmt: skip
    assert (row.subscribers, row.state, row.at_seconds, row.duration_seconds) == (40, "Succeeded", 5.0, 3.5)
    assert row.predicted["b2"] == {"input_utilization": 0.4, "output_utilization": 0.3, "match_delay_seconds": 0.002}
    assert row.measured["b1"]["input_utilization"] == 0.4
    assert row.before["b1"]["input_utilization"] == 1.2
    assert row.plain()["metric"] == "input"


def test_one_that_is_under_way_or_has_no_plan_has_a_row_too():
    item = stored(started_at=None, ended_at=None, plan=None)
    [row] = session_outcomes.reported_sessions([item, {"metadata": {}, "spec": {}}], began_at=100.0)
    assert (row.duration_seconds, row.policy, row.predicted, row.measured) == (None, "", {}, {})


def test_rows_are_in_the_order_of_asking():
    found = session_outcomes.reported_sessions(
        [stored("b", 110.0), stored("a", 120.0), stored("c", 105.0)], began_at=100.0
    )
    assert [row.name for row in found] == ["c", "b", "a"]


def test_only_output_stops_by_the_stability_rule():
    """PADRES 2006, 5.3."""
    found = session_outcomes.reported_sessions(
        [stored(), stored("o", 110.0, "output", "Stability: stability rule of Phase-II"),
         stored("i", 120.0, "input", "Stability: no"), stored("n", 130.0, "output", "NoBetter: none")],
        began_at=100.0,
    )  # fmt: skip
    assert session_outcomes.stopped_by_stability(found) == [StabilityStop("b1", "b2", 13.5)]


def test_accuracy_is_the_mean_over_edges_of_sessions():
    """b1: |0.5 - 0.4| / 0.4 = 0.25; b2: none. Without a measurement there is no accuracy."""
    found = session_outcomes.prediction_accuracy(session_outcomes.reported_sessions([stored()], began_at=100.0))
    assert found["sessions"] == 1
    assert found["input_utilization"] == pytest.approx((0.75 + 1.0) / 2)
    assert found["output_utilization"] == pytest.approx(1.0)
    assert found["match_delay_seconds"] == pytest.approx((0.8 + 1.0) / 2)
    assert found["median"]["input_utilization"] == pytest.approx((0.75 + 1.0) / 2)
    nothing = session_outcomes.prediction_accuracy([])
    assert (nothing["input_utilization"], nothing["median"]["input_utilization"]) == (None, None)


def test_one_session_that_was_wrong_does_not_move_the_median():
    rows = session_outcomes.reported_sessions([stored("a"), stored("b"), stored("c")], began_at=100.0)
    wrong = replace(rows[0], predicted={edge: dict.fromkeys(loads, 9.0) for edge, loads in rows[0].predicted.items()})
    found = session_outcomes.prediction_accuracy([wrong, *rows[1:]])
    right = session_outcomes.prediction_accuracy(rows)
    assert found["median"] == right["median"]
    assert found["input_utilization"] < right["input_utilization"]
