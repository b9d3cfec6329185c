"""Brokers' messages are taken whole or not at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.mediator import reply_checks
from plimsoll.mediator.fleet_view import FleetReadings, HeadAnswer, build_view
from plimsoll.mediator.resource_status import ObservedBroker, edge_status, load_summary

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**64), 2**64), st.floats(), st.text(max_size=5), st.binary(max_size=3)
)
VALUES = st.one_of(SCALARS, st.lists(st.text(max_size=3), max_size=3), st.dictionaries(st.text(max_size=3), SCALARS))
EDGE: dict[str, Any] = {
    "kind": "EdgeBroker", "metadata": {"name": "e"}, "spec": {"clusterRef": {"name": "east"}, "profile": "small"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"epoch": "7"}, "epoch"), ({"epoch": -1}, "epoch"), ({"epoch": True}, "epoch"), ({"epoch": 7.5}, "epoch"),
        ({"ready": "yes"}, "ready"), ({"edges": "a"}, "edges"), ({"edges": [1]}, "edges"),
        ({"waiting_for": {}}, "waiting_for"),
    ],
)  # fmt: skip
def test_a_status_that_cannot_be_names_the_field(status: dict[str, Any], field: str):
    fault = reply_checks.status_fault({"ready": True, **status})
    assert fault is not None
    assert fault[0] == field
    assert repr(status[field]) in fault[1]


@pytest.mark.parametrize(
    ("report", "field"),
    [
        ({"subscribers": "many"}, "subscribers"), ({"seq": None}, "seq"), ({"state": "FINE"}, "state"),
        ({"input_rate": float("nan")}, "input_rate"), ({"cpu_ratio": float("inf")}, "cpu_ratio"),
        ({"match_delay_seconds": 1e305}, "match_delay_seconds"),
        ({"balanced_set": "e"}, "balanced_set"), ({"neighbors_down": [1]}, "neighbors_down"),
        ({"cluster_load": {"edges": "x"}}, "cluster_load"),
        ({"broker": ""}, "broker"),
    ],
)  # fmt: skip
def test_a_report_that_cannot_be_names_the_field(report: dict[str, Any], field: str):
    fault = reply_checks.report_fault({"broker": "e", **report})
    assert fault is not None
    assert fault[0] == field


def test_a_report_has_to_name_its_broker_unless_it_is_part_of_something():
    assert reply_checks.report_fault({}) == ("broker", "is missing")
    assert reply_checks.report_fault({}, named=False) is None


def test_unread_fields_may_hold_anything():
    assert reply_checks.status_fault({"epoch": 1, "added_later": {"x": 1}}) is None
    assert reply_checks.report_fault({"broker": "e", "added_later": "x"}) is None


def test_what_is_long_is_cut():
    fault = reply_checks.status_fault({"epoch": "x" * 1000})
    assert fault is not None
    assert len(fault[1]) < 120


@given(
    st.dictionaries(st.sampled_from([*reply_checks.STATUS_CHECKS, "other"]), VALUES),
    st.dictionaries(st.sampled_from([*reply_checks.REPORT_CHECKS, "match_base_seconds"]), VALUES),
)
def test_what_is_let_through_can_be_worked_with(status: dict[str, Any], report: dict[str, Any]):
    """Every reply that passes is turned into views and status without an error."""
    report = {"broker": "e", **report}
    if reply_checks.status_fault(status) is None:
        assert HeadAnswer.of(status, 0.0).epoch >= 0
    if reply_checks.report_fault(report) is None:
        known = FleetReadings()
        known.note_report("e", report, 0.0)
        assert build_view([EDGE], known, 0.0).edges["e"].subscribers >= 0
        load_summary(report)
        seen = ObservedBroker("e", "edge", "east", "small", "", "", "", report=report)
        edge_status(EDGE, seen, 1.0, "2026-01-01T00:00:00Z")
