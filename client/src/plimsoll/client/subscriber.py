"""A subscriber: an iterator over its deliveries and gaps, or a callback for each batch of them."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from plimsoll.client.connection import Connection
from plimsoll.client.errors import CallbackError, ClosedError, FailedError, SubscriptionRefusedError, WaitTimeoutError
from plimsoll.client.io_driver import Heads
from plimsoll.client.lateness import Lateness
from plimsoll.client.publisher import connection_for
from plimsoll.client.resume_position import (
    CONSUMED_BATCH,
    resume_token,
    resume_watermarks,
    stream_items,
    unprocessed_items,
)
from plimsoll.client.security import Security
from plimsoll.client.stay import Lease, Since, begin_at, lease_seconds
from plimsoll.client.subscriptions import Subscription, SubscriptionHandles
from plimsoll.core import client as core
from plimsoll.core.client.events import Item
from plimsoll.core.client.subscriber import UnitMark
from plimsoll.core.protocol.messages import Policy
from plimsoll.core.protocol.subscription_options import with_latency
from plimsoll.core.protocol.wire import Scalar, Token

log = logging.getLogger(__name__)

ITEMS = (core.Delivery, core.GapNotice)
OnBatch = Callable[[list[Item]], None]
OnState = Callable[[core.SubscriberEvent], None]
ACK_SECONDS = 10.0


class Subscriber:
    """Subscribes under a name of its own, unique in the fleet. Thread-safe.

    `at`: a connection to share, or where the heads are, for a connection of its own.
    `policy`: what happens at the edge when the application does not keep up.
    `token`, `watermarks`: of an earlier life, to go on behind the items that it has handled.
    `location`: where it is, as coordinates, for a fleet that places subscribers by distance.
    `lease`: for how long it may stay away and still get all that came meanwhile, as far as the log has it; the fleet's
    limits cap it, and `statistics()["lease_seconds"]` has what was granted. 0: for as long as any subscriber.
    `since`: where its first subscription begins, without a token: a time, a time before now, or a position, as far as
    the log goes back.
    `on_batch`: called on the I/O thread with the items of a round, instead of iterating; it must not block.
    `on_state`: called there when it is attached, detached, lapsed or failed, and for each acknowledgement.
    """

    def __init__(
        self,
        at: Connection | Heads,
        *,
        name: str = "",
        security: Security | None = None,
        policy: Policy | None = None,
        token: Token | None = None,
        watermarks: Iterable[Token | UnitMark] = (),
        prefer: str = "",
        location: tuple[float, float] | None = None,
        lease: Lease = 0.0,
        since: Since | None = None,
        on_batch: OnBatch | None = None,
        on_state: OnState | None = None,
    ) -> None:
        self._connection, self._owns = connection_for(at, security)
        self._on_batch, self._on_state = on_batch, on_state
        self._queue: deque[Item] = deque()
        self._batch: list[Item] = []
        self._states: list[core.SubscriberEvent] = []
        self._untold = 0
        self._subscriptions = SubscriptionHandles()
        self._callback_error: Exception | None = None
        self._closed = False
        with self._connection.lock:
            machine = self._connection.machine
            self._inner = machine.subscriber(
                name or self._connection.engine.own_name("s"),
                policy=policy, token=token, watermarks=watermarks, prefer=prefer, location=location,
                lease_seconds=lease_seconds(lease), since=begin_at(since),
                holds=on_batch is None,
            )  # fmt: skip
            self._lateness = Lateness(self._inner)
            self._connection.own(self._inner, self)
            self._connection.wake()

    @property
    def name(self) -> str:
        return self._inner.name

    # -- subscriptions

    def subscribe(
        self,
        text: str,
        *,
        wait: bool = True,
        timeout: float = ACK_SECONDS,
        options: Mapping[str, Scalar] | None = None,
        latency_seconds: float | None = None,
    ) -> Subscription:
        """Add a subscription such as `[class,=,'STOCK'],[high,>,25.0]`; it counts once it is acknowledged.

        `latency_seconds`: within which time of its publication it wants each message, above 0 and of a day at most. A
        fleet whose policy defends deadlines balances by it; what it misses is in `statistics()`.

        Raises:
            ValueError: `latency_seconds` is out of bounds.
            ParseError: naming the column, what was found there and what was expected.
            ListFullError: the subscriber has as many subscriptions as one message carries.
            SubscriptionRefusedError: a broker will not serve it.
            WaitTimeoutError: it is not acknowledged yet; it still may be.

        """
        with self._connection.lock:
            self._check()
            given = with_latency(options, latency_seconds)
            subscription = self._subscriptions.add(self._inner.subscribe(text, given), text)
            self._lateness.expect(given)
            self._connection.wake()
            if wait:
                self._wait(lambda: subscription.is_settled, timeout, f"acknowledged: {text}")
        if subscription.refused:
            raise SubscriptionRefusedError(f"{text}: {subscription.refused}")
        return subscription

    def unsubscribe(self, subscription: Subscription, *, wait: bool = False, timeout: float = ACK_SECONDS) -> None:
        """Withdraw a subscription. With `wait`, after the return only items already queued still match it.

        Raises:
            KeyError: it was withdrawn already, or refused.

        """
        with self._connection.lock:
            self._check()
            self._inner.unsubscribe(subscription.id)
            self._connection.wake()
            if wait:
                self._wait(lambda: subscription.is_withdrawn, timeout, f"withdrawn: {subscription.text}")

    def wait_acknowledged(self, timeout: float = ACK_SECONDS) -> None:
        """Wait until every change so far is acknowledged: many subscriptions made without `wait` in one go.

        Raises:
            WaitTimeoutError: some are not acknowledged yet.

        """
        with self._connection.lock:
            self._check()
            self._wait(lambda: self._inner.is_acknowledged, timeout, "all acknowledged")

    def _wait(self, what: Callable[[], object], timeout: float | None, expected: str) -> None:
        self._connection.wait_for(lambda: what() or self._inner.failed or self._closed, timeout, expected)
        if not what():
            self._check()

    # -- deliveries

    def receive(self, timeout: float | None = None) -> Item:
        """The next delivery or gap, in order.

        Raises:
            WaitTimeoutError: nothing has come within `timeout` seconds.
            FailedError, ClosedError, ConnectionFailedError: nothing will come any more.

        """
        while True:
            try:
                item = self._queue.popleft()
            except IndexError:
                self._wait_for_item(timeout)
                continue
            self._untold += 1
            if self._untold >= CONSUMED_BATCH or not self._queue:
                self._consume()
            return item

    def receive_many(self, most: int = 1000, timeout: float | None = None) -> list[Item]:
        """The next items, at least one and at most `most`; waits like `receive` for the first."""
        items = [self.receive(timeout)]
        while self._queue and len(items) < most:
            items.append(self.receive(0.0))
        return items

    def __iter__(self) -> Iterator[Item]:
        """Deliveries and gaps, in order, until the subscriber is closed. Raises FailedError if it has failed."""
        while True:
            try:
                yield self.receive()
            except ClosedError:
                return  # the end of the iteration

    def deliveries(self, on_gap: Callable[[core.GapNotice], None]) -> Iterator[core.Delivery]:
        """Deliveries alone; gaps go to `on_gap`, each in its place between them."""
        for item in self:
            if isinstance(item, core.GapNotice):
                on_gap(item)
            else:
                yield item

    def pause(self) -> None:
        """Take nothing until `resume`; meanwhile the edge applies the subscriber's policy."""
        with self._connection.lock:
            self._check()
            self._inner.pause()
            self._connection.wake()

    def resume(self) -> None:
        """Go on after `pause`."""
        with self._connection.lock:
            self._check()
            self._inner.resume()
            self._connection.wake()

    # -- position

    @property
    def token(self) -> Token | None:
        """The token for a later life, behind all items that `receive` has returned or `on_batch` has handled."""
        with self._connection.lock:
            return resume_token(self._inner, unprocessed_items(self._inner, self._queue or self._batch))

    @property
    def watermarks(self) -> list[Token | UnitMark]:
        """(head, head epoch, offset): the last one received of each origin; they belong to the token.

        In a cluster with topics each unit has its own, with the hash of its topics as a fourth item.
        """
        with self._connection.lock:
            return resume_watermarks(self._inner, unprocessed_items(self._inner, self._queue or self._batch))

    def statistics(self) -> dict[str, Any]:
        """Counters since the start, and the position."""
        with self._connection.lock:
            return {**self._inner.statistics(), **self._lateness.statistics()}

    def close(self, *, withdraw: bool = True) -> None:
        """Detach: for good, or, without `withdraw`, to come back with token and watermarks within the lease."""
        connection = self._connection
        with connection.lock:
            if not self._closed:
                self._closed = True
                self._inner.close(withdraw=withdraw)
                connection.disown(self._inner)
                connection.changed.notify_all()
                if not connection.is_closed:
                    connection.wake()
        if self._owns:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- for the connection

    def take(self, events: list[core.SubscriberEvent]) -> bool:
        items = stream_items(events)
        self._lateness.note(items)
        states = [] if len(items) == len(events) else [event for event in events if type(event) not in ITEMS]
        for state in states:
            self._subscriptions.take(state)
        if self._on_batch is None:
            self._queue.extend(items)
        else:
            self._batch += items
        if self._on_state is not None:
            self._states += states
        return bool(self._batch or self._states)

    def call(self) -> None:
        states, self._states = self._states, []
        try:
            if self._on_state is not None:
                for state in states:
                    self._on_state(state)
            if self._batch and self._on_batch is not None:
                self._on_batch(self._batch)
        except Exception as error:
            log.exception("the callback of subscriber %s has raised; it is closed", self.name)
            self._callback_error = error
            self.close(withdraw=False)
        else:
            self._batch = []

    def _consume(self) -> None:
        with self._connection.lock:
            was_held = self._inner.stream.queue.is_held
            self._inner.consumed(self._untold)
            self._untold = 0
            if was_held and not self._inner.stream.queue.is_held and not self._connection.is_closed:
                self._connection.wake()

    def _wait_for_item(self, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._connection.lock:
            while not self._queue:
                self._check()
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise WaitTimeoutError(f"subscriber {self.name!r}: nothing was delivered within {timeout:g} s")
                self._connection.changed.wait(left)

    def _check(self) -> None:
        if self._callback_error is not None:
            raise CallbackError(f"the callback of {self.name!r} has raised") from self._callback_error
        if (failed := self._inner.failed) is not None:
            raise FailedError(failed.code, failed.text)
        if self._closed and not self._connection.has_failed:
            raise ClosedError(f"subscriber {self.name!r} is closed")
        self._connection.check()
