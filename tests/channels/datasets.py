"""A dataset of a feed, as a recorder leaves it, with a commit for each list of publications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.feeds.publications import HOUR_US, START_US, Publication

from plimsoll.core.protocol.wire import Scalar
from plimsoll.feeds.dataset import FeedDataset
from plimsoll.feeds.object_path import DatasetPath
from plimsoll.feeds.schema import FeedColumn, FeedSchema

REPORTS: Final = FeedSchema(
    (FeedColumn("kind", "String", required=True), FeedColumn("area", "Integer"), FeedColumn("severity", "Number"))
)


class RecordedFeed:
    """A feed under `root`, whose publications are numbered from 1."""

    def __init__(self, root: DatasetPath, schema: FeedSchema = REPORTS) -> None:
        self.root = root
        self.dataset = FeedDataset(root, "[class,=,'REPORT']", schema)
        self.number = 0
        self.now_us = START_US
        self.dataset.commit(("head", 1, 0), [], self.now_us)

    def record(self, rows: Sequence[dict[str, Scalar]]) -> None:
        """One commit with these."""
        for row in rows:
            self.number += 1
            self.dataset.add(Publication(self.number, row), self.now_us)
        self.dataset.commit(("head", 1, self.number), [], self.now_us)

    def next_hour(self) -> None:
        self.now_us += HOUR_US

    def close(self) -> None:
        self.dataset.close()
