"""Reading a head's log for an edge: one bounded slice for each FETCH, with the stream going on behind it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from plimsoll.core import predicates
from plimsoll.core import records as r
from plimsoll.core.log import Log
from plimsoll.core.outlet import Outlet
from plimsoll.core.predicates import Attributes
from plimsoll.core.streams import Streams
from plimsoll.core.wire import WireError

FETCH_SLICE_BYTES = 256 * 1024
"""So much of the log is read for one FETCH; the cursor asks again for more."""

FETCH_SLICE_ENTRIES = 4096


@lru_cache(maxsize=4096)
def _filter(text: str) -> predicates.Subscription:
    try:
        return predicates.parse(text)
    except ValueError as error:
        raise WireError("filter", f"subscription {text!r}: {error}") from error


def read(
    fetch: r.Fetch, outlet: Outlet, log: Log, streams: Streams, needed_by: Callable[[Attributes], set[str]]
) -> None:
    """Answer a FETCH: a REPLAY for each entry that is wanted, then FETCHED. `needed_by`: links by attributes.

    Raises:
        WireError: `filter`, before anything is said.

    """
    wanted = [_filter(text) for text in fetch.filters]
    at, size = fetch.after, 0
    if at + 1 < log.first:
        streams.tell(outlet, r.Replay(fetch.cursor, streams.gap(at + 1, log.first - 1)))
        at = log.first - 1
    end = min(log.last, at + FETCH_SLICE_ENTRIES)
    for position, entry in log.after(at):
        if size >= FETCH_SLICE_BYTES or position > end:
            break
        at = position
        record, is_gap = entry.record, entry.is_gap
        if is_gap or _wanted(record, wanted, outlet.key, needed_by):
            streams.node.counters["said_Replay"] += 1
            streams.tell_raw(outlet, b"\x93\x38\xce" + fetch.cursor.to_bytes(4, "big") + record)
            size += len(record)
    streams.tell(outlet, r.Fetched(fetch.cursor, at, at >= log.last))


def _wanted(record: bytes, wanted: list[Any], key: str, needed_by: Callable[[Attributes], set[str]]) -> bool:
    attributes = r.to_edge.decode(record).body.attributes
    if wanted:
        return any(subscription.matches(attributes) for subscription in wanted)
    return key in needed_by(attributes)
