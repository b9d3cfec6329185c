"""Those who read a head's log: edges fetch one bounded slice each, while the stream goes on, and mediators list it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from plimsoll.core import predicates
from plimsoll.core.head.log import Log
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publication_listing import publication_page
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.predicates import Attributes, Subscription
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.link import Peer

FETCH_SLICE_BYTES = 256 * 1024
"""Bytes of the log sent for one FETCH; the cursor asks again for more."""

FETCH_SLICE_ENTRIES = 4096


@lru_cache(maxsize=4096)
def _filter(text: str) -> predicates.Subscription:
    try:
        return predicates.parse(text)
    except ValueError as error:
        raise WireError("filter", f"subscription {text!r}: {error}") from error


class LogContext(Protocol):
    """The log of a head, and the ways to those that read it."""

    name: str
    epoch: int
    log: Log
    outboxes: Outboxes
    routes: RoutingTable

    def say_control(self, peer: Peer, *said: msg.PublicationPage) -> None: ...


class LogReader(HeadPart):
    """Answers to FETCH of edges, and to LIST_PUBLICATIONS of mediators."""

    def __init__(self, host: LogContext) -> None:
        self.host = host

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.Fetch, self.on_fetch)
        handlers.of_mediators.add(msg.ListPublications, self.on_list)

    def on_fetch(self, outbox: Outbox, fetch: msg.Fetch) -> None:
        host = self.host
        answer_fetch(fetch, outbox, host.log, host.outboxes, host.routes.match)

    def on_list(self, peer: Peer, request: msg.ListPublications) -> None:
        host = self.host
        host.say_control(peer, publication_page(request, host.name, host.epoch, host.log))


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
