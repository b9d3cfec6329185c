"""What a recorder is given and what it writes, as files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.feeds.publications import START_US, stock

from plimsoll.feeds.config import (
    RecorderConfig,
    RecorderConfigError,
    figures_of,
    read_config,
    read_figures,
    write_figures,
)
from plimsoll.feeds.dataset import FeedDataset
from plimsoll.feeds.schema import FeedColumn, FeedSchema


def test_a_configuration_is_read_as_it_was_written(tmp_path: Path) -> None:
    config = RecorderConfig("stocks", "s", "[a,=,1]", "/d", "/c", schema=FeedSchema((FeedColumn("a", "Integer"),)))
    file = tmp_path / "c.json"
    file.write_bytes(msgspec.json.encode(config))
    assert read_config(file) == config


def test_a_configuration_that_cannot_be_used_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(RecorderConfigError, match=r"cannot read .*none.json"):
        read_config(tmp_path / "none.json")
    (tmp_path / "half.json").write_text('{"feed": 1')
    with pytest.raises(RecorderConfigError, match=r"half.json is not a recorder's configuration"):
        read_config(tmp_path / "half.json")


def test_figures_of_a_dataset(tmp_path: Path) -> None:
    dataset = FeedDataset(tmp_path / "d", "[class,=,'STOCK']")
    file = tmp_path / "figures"
    assert read_figures(file) is None
    write_figures(file, figures_of(dataset, 7, START_US))
    assert (found := read_figures(file)) is not None
    assert (found.commits, found.rows, found.columns) == (0, 0, ())
    dataset.add(stock(1), START_US)
    dataset.commit(None, [], START_US)
    write_figures(file, figures_of(dataset, 7, START_US + 5))
    assert (found := read_figures(file)) is not None
    assert (found.commits, found.rows, found.files, found.pid) == (1, 1, 1, 7)
    assert found.columns == ("class", "price", "volume")
    assert found.size_bytes == sum(path.stat().st_size for path in tmp_path.glob("d/rows/**/*.parquet"))
    dataset.close()
