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
    read_config,
    read_figures,
    write_figures,
)
from plimsoll.core.config import PeerBroker


def test_a_configuration_is_read_as_it_was_written(tmp_path: Path):
    feeds = (FeedView("r", "reports", "/d"), FeedView("past", "reports", "/d", is_new=False, within_seconds=5))
    channel = ChannelDefinition("c", (ChannelParameter("kind", "String"),), feeds, "SELECT 1", every_seconds=2)
    config = DriverConfig("n", "/f", "/c", "/g", (PeerBroker(name="e", data="d", control="c"),), (channel,))
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
