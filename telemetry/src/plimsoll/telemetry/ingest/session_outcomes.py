"""The queue of finished sessions between a collector's HTTP service and its Parquet files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from plimsoll.telemetry.schema import OUTCOMES, TableRow
from plimsoll.telemetry.session_rows import session_row

REMEMBERED_AT_MOST: Final = 20_000
WAITING_AT_MOST: Final = 10_000


class SessionOutcomes:
    """Rows of finished sessions that are not written yet.

    Ids are remembered, since a sender repeats a session until it is answered.
    """

    def __init__(self, fleet: str, collector: str) -> None:
        self.fleet, self.collector = fleet, collector
        self.counted = self.duplicates = self.refused = self.dropped = 0
        self.pending_rows: list[TableRow] = []
        self._known: OrderedDict[str, None] = OrderedDict()

    def take_session(self, item: Mapping[str, Any], received_us: int) -> bool:
        """Take a finished session; whether it is new.

        Raises:
            ValueError: it is not a finished session; says why.

        """
        try:
            found = session_row(item, self.fleet, self.collector, received_us)
        except ValueError:
            self.refused += 1
            raise
        if not self.remember(found["uid"]):
            self.duplicates += 1
            return False
        self.counted += 1
        self.pending_rows.append(tuple(found[name] for name in OUTCOMES.names))
        self.return_rows([])
        return True

    def take_rows(self) -> list[TableRow]:
        """The pending rows; a caller that cannot write them returns them with `return_rows`."""
        rows, self.pending_rows = self.pending_rows, []
        return rows

    def return_rows(self, rows: list[TableRow]) -> None:
        """Queue rows again that could not be written. Beyond the limit the oldest are dropped."""
        self.pending_rows = [*rows, *self.pending_rows]
        self.dropped += max(0, len(self.pending_rows) - WAITING_AT_MOST)
        self.pending_rows = self.pending_rows[-WAITING_AT_MOST:]

    def remember(self, uid: str) -> bool:
        """Remember a session; whether it is new."""
        if uid in self._known:
            self._known.move_to_end(uid)
            return False
        self._known[uid] = None
        if len(self._known) > REMEMBERED_AT_MOST:
            self._known.popitem(last=False)
        return True
