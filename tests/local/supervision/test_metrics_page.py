"""The page of a fleet of this machine; tests/local/supervision/test_channel_process.py asks that of a running one."""

from __future__ import annotations

from http.client import HTTPConnection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from plimsoll.channels.config import ChannelFigures
from plimsoll.feeds.config import RecorderFigures
from plimsoll.local.supervision.broker_reconciler import FleetStartError
from plimsoll.local.supervision.metrics_page import MetricsPage

FIGURES = RecorderFigures("/d", 7, 1, 3, 2_000_000, 12, 10, 2, 5, 1, 4, 900, ("a",), 6, 250_000)


def test_all_feeds_and_channels_are_on_one_page_and_its_address_is_its_own() -> None:
    page = MetricsPage("tcp://127.0.0.1:*")
    try:
        page.update({"a": FIGURES, "b": FIGURES}, {"c": ChannelFigures("ChannelRunning", "m", results=5)})
        connection = HTTPConnection("127.0.0.1", page.port, timeout=120)
        connection.request("GET", "/metrics")
        families = list(text_string_to_metric_families(connection.getresponse().read().decode()))
        connection.close()
        names = [each.name for each in families]
        assert len(set(names)) == len(names), "a family comes once, with all of its feeds"
        found = {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}
        assert [found["plimsoll_feed_gaps_total", feed] for feed in ("a", "b")] == [1, 1]
        assert found["plimsoll_channel_committed_results_total", "c"] == 5
        with pytest.raises(FleetStartError, match="choose another one with --metrics"):
            MetricsPage(f"tcp://127.0.0.1:{page.port}")
    finally:
        page.close()
