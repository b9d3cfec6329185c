"""A run: publications at fixed times, each with the time at which it is due, and what came of them."""

from __future__ import annotations

import secrets
import struct
import threading
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from plimsoll.client import Connection, Delivery, GapNotice, Publisher, Subscriber
from plimsoll.core.client.events import Item

ATTRIBUTE: Final = "plimsoll.bench"
_DUE = struct.Struct("<d")
SUBSCRIBED_SECONDS, ANSWERED_SECONDS, LAST_DELIVERY_SECONDS = 30.0, 30.0, 10.0


@dataclass(frozen=True)
class BenchSettings:
    """`rate`: publications per second of all publishers together. `size`: bytes of each payload."""

    publishers: int
    subscribers: int
    rate: int
    size: int
    seconds: float

    @property
    def total(self) -> int:
        """Publications of the run."""
        return max(1, round(self.rate * self.seconds))


@dataclass(frozen=True)
class BenchResult:
    """`spent_seconds`: from the first publication due to the last one handed over. `delays_seconds`: sorted.

    `late_seconds`: how much behind its time a publication was handed over, at most. `cpu_share`: of one core, that this
    process used meanwhile.
    """

    accepted: int
    not_accepted: int
    delivered: int
    expected: int
    gaps: int
    spent_seconds: float
    late_seconds: float
    cpu_share: float
    delays_seconds: Sequence[float] = field(repr=False)

    @property
    def is_complete(self) -> bool:
        """Whether everything was accepted and delivered."""
        return not self.not_accepted and self.delivered == self.expected


class DeliveryLog:
    """Counts what one subscriber receives; called on the connection's thread."""

    def __init__(self) -> None:
        self.delays_seconds = array("d")
        self.gaps = 0

    def take(self, items: list[Item]) -> None:
        for item in items:
            if isinstance(item, Delivery):
                self.delays_seconds.append(item.received - _DUE.unpack_from(item.payload)[0])
            elif isinstance(item, GapNotice):
                self.gaps += 1


def measure(settings: BenchSettings, published: Connection, subscribed: Connection) -> BenchResult:
    """Run it over two connections; both must be open."""
    run = secrets.token_hex(8)
    logs = [DeliveryLog() for _ in range(settings.subscribers)]
    subscribers = [Subscriber(subscribed, on_batch=log.take) for log in logs]
    for subscriber in subscribers:
        subscriber.subscribe(f"[{ATTRIBUTE},=,'{run}']", wait=False)
    for subscriber in subscribers:
        subscriber.wait_acknowledged(SUBSCRIBED_SECONDS)
    publishers = [Publisher(published) for _ in range(settings.publishers)]
    cpu, began = time.process_time(), time.monotonic()
    late = _publish(settings, publishers, run, began)
    spent = time.monotonic() - began
    summaries = [publisher.flush(ANSWERED_SECONDS) for publisher in publishers]
    cpu_share = (time.process_time() - cpu) / (time.monotonic() - began)
    accepted = sum(each.accepted + each.unconfirmed for each in summaries)
    expected = accepted * settings.subscribers
    _await_deliveries(logs, expected)
    for publisher in publishers:
        publisher.close()
    for subscriber in subscribers:
        subscriber.close()
    delays = sorted(chain.from_iterable(log.delays_seconds for log in logs))
    gaps = sum(log.gaps for log in logs)
    return BenchResult(accepted, settings.total - accepted, len(delays), expected, gaps, spent, late, cpu_share, delays)


def _publish(settings: BenchSettings, publishers: Sequence[Publisher], run: str, began: float) -> float:
    """Publish each publication when it is due, the publishers in turn; by how much the latest one was late.

    The times are fixed beforehand: a fleet that stalls does not slow the clock down by which it is measured.
    """
    pause, late = threading.Event(), 0.0
    padding = bytes(max(0, settings.size - _DUE.size))
    attributes = {ATTRIBUTE: run}
    for number in range(settings.total):
        due = began + number / settings.rate
        now = time.monotonic()
        if now < due:
            pause.wait(due - now)
        late = max(late, time.monotonic() - due)
        publishers[number % len(publishers)].publish(attributes, _DUE.pack(due) + padding)
    return late


def _await_deliveries(logs: Sequence[DeliveryLog], expected: int) -> None:
    """Wait until all have come, or none has come for a while."""
    pause, count, changed = threading.Event(), -1, time.monotonic()
    while True:
        now, found = time.monotonic(), sum(len(log.delays_seconds) for log in logs)
        if found != count:
            count, changed = found, now
        if found >= expected or now - changed > LAST_DELIVERY_SECONDS:
            return
        pause.wait(0.05)
