"""How far a streaming query of a channel has read: its offset, which Spark keeps as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from plimsoll.channels.batch import RowCounts


class StreamOffset(Struct, frozen=True):
    """The places in the feeds, and what became of the rows in front of them since the query began.

    Of the batch up to here: `period`, the number of its period, 0 without periods; `begun_us`, when it was decided; and
    `oldest_sent_us`, when its oldest row was sent, 0 if it has none. Times are in microseconds since 1970.
    """

    places: dict[str, int]
    period: int = 0
    counts: RowCounts = RowCounts()
    begun_us: int = 0
    oldest_sent_us: int = 0

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> StreamOffset:
        """The offset that Spark gives back."""
        return msgspec.convert(found, cls)

    def as_json(self) -> dict[str, Any]:
        """As Spark takes it."""
        made: dict[str, Any] = msgspec.to_builtins(self)
        return made
