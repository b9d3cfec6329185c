"""The files between a driver and its supervisor."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from plimsoll.channels.config import (
    ChannelDefinition,
    ChannelFigures,
    ChannelParameter,
    DriverConfig,
    DriverConfigError,
    DriverFigures,
    FeedView,
    channel_definition,
    read_config,
    read_figures,
    write_figures,
)
from plimsoll.core.config import PeerBroker
from plimsoll.core.spec import SourceDocument, parse


def test_a_configuration_is_read_as_it_was_written(tmp_path: Path):
    feeds = (FeedView("r", "reports", "/d"), FeedView("past", "reports", "/d", is_new=False, within_seconds=5))
    channel = ChannelDefinition("c", (ChannelParameter("kind", "String"),), feeds, "SELECT 1", every_seconds=2)
    config = DriverConfig(
        "n", "/f", "/s", "/c", (PeerBroker(name="e", data="d", control="c"),), (channel,), figures="/g"
    )
    file = tmp_path / "config"
    file.write_bytes(msgspec.json.encode(config))
    assert read_config(file) == config
    assert channel.new_feeds == {"reports": feeds[0]}


def test_one_that_cannot_be_used_is_named(tmp_path: Path):
    with pytest.raises(DriverConfigError, match=r"cannot read .*nothing"):
        read_config(tmp_path / "nothing")
    (tmp_path / "wrong").write_text("{}")
    with pytest.raises(DriverConfigError, match="wrong is not the configuration of a driver"):
        read_config(tmp_path / "wrong")


def test_figures_are_whole_or_not_there(tmp_path: Path):
    figures = DriverFigures(7, 1, {"c": ChannelFigures("ChannelRunning", "", results=3)})
    assert read_figures(tmp_path / "figures") is None
    write_figures(tmp_path / "figures", figures)
    assert read_figures(tmp_path / "figures") == figures
    (tmp_path / "figures").write_text("{")
    assert read_figures(tmp_path / "figures") is None


def test_a_definition_has_the_places_of_feeds_and_tables(tmp_path: Path):
    def document(kind: str, name: str, **spec: object) -> SourceDocument:
        content = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        return SourceDocument(content)

    channel = document(
        "Channel", "more", query="SELECT 1", parameters=[{"name": "kind", "type": "String"}], mode="Repetitive",
        feeds=[{"name": "r", "feed": "reports", "rows": "All", "within": "1m"}], every="10s", unkeyedJoins="Allow",
        tables=[{"name": "t", "path": "t.csv", "format": "Csv"}, {"name": "u", "path": "/u"}],
    )  # fmt: skip
    resources = parse([document("Feed", "reports", subscription="[class,=,'REPORT']"), channel])
    found = channel_definition(resources.channels["more"], resources.feeds, tmp_path)
    assert [(each.path, each.is_new, each.within_seconds) for each in found.feeds] == [
        (str(tmp_path / "feeds" / "reports"), False, 60)
    ]
    assert [each.path for each in found.tables] == [str(tmp_path / "t.csv"), "/u"]
    assert (found.every_seconds, found.allows_unkeyed) == (10, True)
