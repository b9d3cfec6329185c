"""A subscriber for asyncio: an asynchronous iterator over its deliveries and gaps."""

# ruff: noqa: ASYNC109  # the parameters are those of the synchronous twins

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from plimsoll.client.aio.connection import AsyncConnection
from plimsoll.client.aio.publisher import connection_for
from plimsoll.client.errors import CallbackError, ClosedError, FailedError, SubscriptionRefusedError, WaitTimeoutError
from plimsoll.client.io_driver import Heads
from plimsoll.client.lateness import Lateness
from plimsoll.client.resume_position import (
    CONSUMED_BATCH,
    resume_token,
    resume_watermarks,
    stream_items,
    unprocessed_items,
)
from plimsoll.client.security import Security
from plimsoll.client.stay import Lease, Since, begin_at, lease_seconds
from plimsoll.client.subscriber import ACK_SECONDS, ITEMS, OnBatch, OnState
from plimsoll.client.subscriptions import Subscription, SubscriptionHandles
from plimsoll.core import client as core
from plimsoll.core.client.events import Item
from plimsoll.core.client.subscriber import UnitMark
from plimsoll.core.protocol.messages import Policy
from plimsoll.core.protocol.subscription_options import with_latency
from plimsoll.core.protocol.wire import Scalar, Token

log = logging.getLogger(__name__)


class AsyncSubscriber:
    """Subscribes under a name of its own, unique in the fleet. Parameters are those of `plimsoll.client.Subscriber`.

    `on_batch` and `on_state` are called by the event loop and must not block it. One task at a time may receive.
    """

    def __init__(
        self,
        at: AsyncConnection | Heads,
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
        self._untold = 0
        self._arrived = asyncio.Event()
        self._subscriptions = SubscriptionHandles()
        self._callback_error: Exception | None = None
        self._closed = False
        self._inner = self._connection.machine.subscriber(
            name or self._connection.engine.own_name("s"),
            policy=policy, token=token, watermarks=watermarks, prefer=prefer, location=location,
            lease_seconds=lease_seconds(lease), since=begin_at(since), holds=on_batch is None,
        )  # fmt: skip
        self._lateness = Lateness(self._inner)
        self._connection.own(self._inner, self)
        self._connection.wake()

    @property
    def name(self) -> str:
        return self._inner.name

    # -- subscriptions

    async def subscribe(
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
        self._check()
        given = with_latency(options, latency_seconds)
        subscription = self._subscriptions.add(self._inner.subscribe(text, given), text)
        self._lateness.expect(given)
        self._connection.wake()
        if wait:
            await self._wait(lambda: subscription.is_settled, timeout, f"acknowledged: {text}")
        if subscription.refused:
            raise SubscriptionRefusedError(f"{text}: {subscription.refused}")
        return subscription

    async def unsubscribe(
        self, subscription: Subscription, *, wait: bool = False, timeout: float = ACK_SECONDS
    ) -> None:
        """Withdraw a subscription. With `wait`, after the return only items already queued still match it.

        Raises:
            KeyError: it was withdrawn already, or refused.

        """
        self._check()
        self._inner.unsubscribe(subscription.id)
        self._connection.wake()
        if wait:
            await self._wait(lambda: subscription.is_withdrawn, timeout, f"withdrawn: {subscription.text}")

    async def wait_acknowledged(self, timeout: float = ACK_SECONDS) -> None:
        """Wait until every change so far is acknowledged: many subscriptions made without `wait` in one go.

        Raises:
            WaitTimeoutError: some are not acknowledged yet.

        """
        self._check()
        await self._wait(lambda: self._inner.is_acknowledged, timeout, "all acknowledged")

    async def _wait(self, what: Callable[[], object], timeout: float | None, expected: str) -> None:
        await self._connection.wait_for(lambda: what() or self._inner.failed or self._closed, timeout, expected)
        if not what():
            self._check()

    # -- deliveries

    async def receive(self, timeout: float | None = None) -> Item:
        """The next delivery or gap, in order.

        Raises:
            WaitTimeoutError: nothing has come within `timeout` seconds.
            FailedError, ClosedError, ConnectionFailedError: nothing will come any more.

        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._queue:
            self._check()
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise WaitTimeoutError(f"subscriber {self.name!r}: nothing was delivered within {timeout:g} s")
            await self._wait_for_item(left)
        item = self._queue.popleft()
        self._untold += 1
        if self._untold >= CONSUMED_BATCH or not self._queue:
            self._consume()
        return item

    async def _wait_for_item(self, seconds: float | None) -> None:
        self._arrived.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return  # `receive` says so, with the time that it was given

    async def receive_many(self, most: int = 1000, timeout: float | None = None) -> list[Item]:
        """The next items, at least one and at most `most`; waits like `receive` for the first."""
        items = [await self.receive(timeout)]
        while self._queue and len(items) < most:
            items.append(await self.receive())
        return items

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Deliveries and gaps, in order, until the subscriber is closed. Raises FailedError if it has failed."""
        while True:
            try:
                item = await self.receive()
            except ClosedError:
                return  # the end of the iteration
            yield item

    async def deliveries(self, on_gap: Callable[[core.GapNotice], None]) -> AsyncIterator[core.Delivery]:
        """Deliveries alone; gaps go to `on_gap`, each in its place between them."""
        async for item in self:
            if isinstance(item, core.GapNotice):
                on_gap(item)
            else:
                yield item

    def pause(self) -> None:
        """Take nothing until `resume`; meanwhile the edge applies the subscriber's policy."""
        self._check()
        self._inner.pause()
        self._connection.wake()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._check()
        self._inner.resume()
        self._connection.wake()

    # -- position

    @property
    def token(self) -> Token | None:
        """The token for a later life, behind all items that `receive` has returned or `on_batch` has handled."""
        return resume_token(self._inner, unprocessed_items(self._inner, self._queue or self._batch))

    @property
    def watermarks(self) -> list[Token | UnitMark]:
        """(head, head epoch, offset): the last one received of each origin; they belong to the token.

        In a cluster with topics each unit has its own, with the hash of its topics as a fourth item.
        """
        return resume_watermarks(self._inner, unprocessed_items(self._inner, self._queue or self._batch))

    def statistics(self) -> dict[str, Any]:
        """Counters since the start, and the position."""
        return {**self._inner.statistics(), **self._lateness.statistics()}

    async def close(self, *, withdraw: bool = True) -> None:
        """Detach: for good, or, without `withdraw`, to come back with token and watermarks within the lease."""
        self._detach(withdraw)
        if self._owns:
            await self._connection.close()

    def _detach(self, withdraw: bool) -> None:
        if self._closed:
            return
        self._closed = True
        self._inner.close(withdraw=withdraw)
        self._connection.disown(self._inner)
        self._arrived.set()
        self._connection.notify()
        self._connection.wake()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    # -- for the connection

    def take(self, events: list[core.SubscriberEvent]) -> None:
        items = stream_items(events)
        self._lateness.note(items)
        states = [] if len(items) == len(events) else [event for event in events if type(event) not in ITEMS]
        for state in states:
            self._subscriptions.take(state)
        if self._on_batch is None:
            self._queue.extend(items)
        else:
            self._batch = items
        self._call(states)
        self._arrived.set()

    def _call(self, states: list[core.SubscriberEvent]) -> None:
        try:
            if self._on_state is not None:
                for state in states:
                    self._on_state(state)
            if self._batch and self._on_batch is not None:
                self._on_batch(self._batch)
        except Exception as error:
            log.exception("the callback of subscriber %s has raised; it is closed", self.name)
            self._callback_error = error
            self._detach(withdraw=False)
        else:
            self._batch = []

    def fail(self) -> None:
        self._closed = True
        self._arrived.set()

    def _consume(self) -> None:
        was_held = self._inner.stream.queue.is_held
        self._inner.consumed(self._untold)
        self._untold = 0
        if was_held and not self._inner.stream.queue.is_held:
            self._connection.wake()

    def _check(self) -> None:
        if self._callback_error is not None:
            raise CallbackError(f"the callback of {self.name!r} has raised") from self._callback_error
        if (failed := self._inner.failed) is not None:
            raise FailedError(failed.code, failed.text)
        if self._closed:
            self._connection.check()
            raise ClosedError(f"subscriber {self.name!r} is closed")
        self._connection.check()
