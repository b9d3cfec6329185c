"""Copies of a feed that changes while it is read: each row once and in order, or a word of which are gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.feeds.reading.feed_world import FeedWorld, rows_of_copy

from plimsoll.feeds.commit_log import TABLES

STEPS = 150


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(6, 60))])
def test_each_reader_has_what_the_feed_kept_for_it(tmp_path: Path, seed: int) -> None:
    world = FeedWorld(tmp_path, seed)
    try:
        for _ in range(STEPS):
            world.step()
        world.settle()
        for reader in world.readers:
            if not reader.rights.read_refusal("stocks"):
                world.check(reader)
        barred = world.readers[3]
        assert barred.refusals
        assert not any(rows_of_copy(barred, table) for table in TABLES)
    finally:
        world.close()
