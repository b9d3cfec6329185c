"""How far a streaming query of a channel has read: its offset, which Spark keeps as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from plimsoll.channels.batch import RowCounts


class StreamOffset(Struct, frozen=True):
    """The places in the feeds, and what became of the rows in front of them since the query began.

    Of the batch up to here: `period`, the number of its period, 0 without periods; `begun_us`, when it was decided;
    `oldest_sent_us`, when its oldest row was sent, 0 if it has none; and `is_cut`: it was full, and there are more rows
    behind it. `datasets`: the names of the datasets that the places are in. Times are in microseconds since 1970.
    """

    places: dict[str, int]
    period: int = 0
    counts: RowCounts = RowCounts()
    begun_us: int = 0
    oldest_sent_us: int = 0
    datasets: dict[str, str] = {}
    is_cut: bool = False

    def places_in(self, datasets: Mapping[str, str]) -> dict[str, int]:
        """The places in these datasets; 0 for a feed that was deleted and recorded again."""
        return {
            feed: 0 if self.datasets.get(feed, "") not in ("", datasets.get(feed, "")) else place
            for feed, place in self.places.items()
        }

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> StreamOffset:
        """The offset that Spark gives back."""
        return msgspec.convert(found, cls)

    def as_json(self) -> dict[str, Any]:
        """As Spark takes it."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        return made
