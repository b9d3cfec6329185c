"""The metrics of a recorder are those of its figures."""

from __future__ import annotations

from plimsoll.feeds.config import REQUEST_OUTCOMES, RecorderFigures, ServedFigures
from plimsoll.feeds.metrics import recorder_metrics
from plimsoll.feeds.serving.open_connections import END_REASONS

FIGURES = RecorderFigures("/d", 7, 1, 3, 2_000_000, 12, 10, 2, 5, 1, 4, 900, ("a",), 6, 250_000, "",
                          ServedFigures(70, {"answered": 5, "role": 2}, 3, {"identity": 4}))  # fmt: skip


def test_each_figure_has_its_metric() -> None:
    found = {
        (sample.name, sample.labels.get("outcome", sample.labels.get("reason", ""))): sample.value
        for family in recorder_metrics({"stocks": FIGURES})
        for sample in family.samples
    }
    outcomes = [found["plimsoll_feed_publications_total", each] for each in ("recorded", "dead_letter")]
    assert sum(outcomes) == FIGURES.received
    assert found["plimsoll_feed_gaps_total", ""] == 1
    assert found["plimsoll_feed_expired_rows_total", ""] == 5
    assert found["plimsoll_feed_committed_timestamp_seconds", ""] == 2.0
    assert found["plimsoll_feed_served_bytes_total", ""] == 70
    requests = [found["plimsoll_feed_read_requests_total", each] for each in REQUEST_OUTCOMES]
    assert requests == [5, 2, 0, 0, 0, 0, 0]
    assert found["plimsoll_feed_read_connections", ""] == 3
    assert [found["plimsoll_feed_ended_connections_total", each] for each in END_REASONS] == [4, 0, 0, 0]
