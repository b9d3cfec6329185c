from datetime import UTC, datetime, timedelta

import pytest

from plimsoll.cli.tables import COLUMNS, columns, duration_text, row
from plimsoll.core.spec import KINDS

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"), (0, "0s"), (119.9, "119s"), (120, "2m"), (192, "3m12s"), (599, "9m59s"), (630, "10m"),
        (3599, "59m"),
        (3600, "1h"), (7199, "1h59m"), (7200, "2h"), (9000, "2h30m"), (40_000, "11h"),
        (172_799, "47h"), (172_800, "2d"),
        (864_000, "10d"),
    ],
)  # fmt: skip
def test_ages_have_two_units_while_the_second_matters(seconds, text):
    assert duration_text(seconds) == text


def test_every_kind_has_columns_and_an_object_without_status_has_a_line():
    assert list(COLUMNS) == list(KINDS)
    for kind in KINDS:
        shown = columns(kind, wide=True)
        made = (NOW - timedelta(minutes=3)).isoformat()
        cells = row(shown, {"kind": kind, "metadata": {"name": "x", "creationTimestamp": made}, "spec": {}}, NOW)
        assert cells[0] == "x"
        assert "3m" in cells
        assert all(cells)
        assert len(columns(kind)) <= len(shown)


def test_counts_and_conditions():
    status = {
        "edges": {"ready": 1, "desired": 2},
        "conditions": [{"type": "Ready", "status": "False", "reason": "Starting"}],
    }
    shown = columns("BrokerCluster")
    cells = dict(
        zip(
            [c.title for c in shown],
            row(shown, {"metadata": {"name": "x"}, "spec": {}, "status": status}, NOW),
            strict=True,
        )
    )
    assert (cells["READY"], cells["REASON"], cells["EDGES"], cells["LOAD-DATA"]) == (
        "False",
        "Starting",
        "1/2",
        "Unknown",
    )


def test_balance_of_a_cluster_and_what_was_measured_of_a_profile():
    status = {
        "imbalancePercent": 31, "lastSession": {"reason": "Moved"},
        "conditions": [{"type": "Balanced", "status": "False", "reason": "OutsideWindow"}],
    }  # fmt: skip
    shown = columns("BrokerCluster", wide=True)
    cells = dict(zip([c.title for c in shown], row(shown, made(status), NOW), strict=True))
    assert [cells[title] for title in ("BALANCED", "WHY", "IMBALANCE%", "LAST-SESSION")] == [
        "False", "OutsideWindow", "31", "Moved",
    ]  # fmt: skip
    measured = {"brokers": 3, "calibrated": {"publicationNanoseconds": 900, "matchNanoseconds": 40, "errorPercent": 7}}
    shown = columns("HardwareProfile", wide=True)
    cells = dict(zip([c.title for c in shown], row(shown, made(measured), NOW), strict=True))
    assert [cells[title] for title in ("BROKERS", "PUBLICATION-NS", "MATCH-NS", "ERR%")] == ["3", "900", "40", "7"]


def made(status: dict) -> dict:
    return {"metadata": {"name": "x"}, "spec": {}, "status": status}
