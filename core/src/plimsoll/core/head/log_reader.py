"""Answers to FETCH: one bounded slice of the log each, while the stream goes on behind it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from plimsoll.core import predicates
from plimsoll.core.head.log import Log
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.predicates import Attributes, Subscription
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError

FETCH_SLICE_BYTES = 256 * 1024
"""Bytes of the log sent for one FETCH; the cursor asks again for more."""

FETCH_SLICE_ENTRIES = 4096


@lru_cache(maxsize=4096)
def _filter(text: str) -> predicates.Subscription:
    try:
        return predicates.parse(text)
    except ValueError as error:
        raise WireError("filter", f"subscription {text!r}: {error}") from error


def answer_fetch(
    fetch: msg.Fetch, outbox: Outbox, log: Log, outboxes: Outboxes, needed_by: Callable[[Attributes], set[str]]
) -> None:
    """Answer a FETCH: a REPLAY for each entry that is wanted, then FETCHED. `needed_by`: links by attributes.

    Raises:
        WireError: `filter`, before anything is sent.

    """
    prefix = msg.replay_prefix(fetch.cursor)
    wanted = [_filter(text) for text in fetch.filters]
    at, size = fetch.after, 0
    if at + 1 < log.first:
        outboxes.send(outbox, msg.Replay(fetch.cursor, outboxes.gap(at + 1, log.first - 1)))
        at = log.first - 1
    end = min(log.last, at + FETCH_SLICE_ENTRIES)
    for position, entry in log.after(at):
        if size >= FETCH_SLICE_BYTES or position > end:
            break
        at = position
        record, is_gap = entry.record, entry.is_gap
        if is_gap or _wanted(record, wanted, outbox.key, needed_by):
            outboxes.node.counters["said_Replay"] += 1
            outboxes.send_encoded(outbox, prefix + record)
            size += len(record)
    outboxes.send(outbox, msg.Fetched(fetch.cursor, at, at >= log.last))


def _wanted(record: bytes, wanted: list[Subscription], key: str, needed_by: Callable[[Attributes], set[str]]) -> bool:
    attributes = msg.to_edge.decode(record).body.attributes
    if wanted:
        return any(subscription.matches(attributes) for subscription in wanted)
    return key in needed_by(attributes)
