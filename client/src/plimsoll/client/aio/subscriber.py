"""A subscriber for asyncio: an asynchronous iterator over its deliveries and gaps."""

# ruff: noqa: ASYNC109  # the parameters are those of the synchronous twins

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Self

from plimsoll.client.aio.connection import AsyncConnection
from plimsoll.client.base.subscriber import ACK_SECONDS, BaseSubscriber
from plimsoll.client.errors import ClosedError
from plimsoll.client.subscriptions import Subscription
from plimsoll.core import client as core
from plimsoll.core.client.events import Item
from plimsoll.core.protocol.wire import Scalar


class AsyncSubscriber(BaseSubscriber[AsyncConnection]):
    """Subscribes under a name of its own, unique in the fleet. Parameters are those of `plimsoll.client.Subscriber`.

    `on_batch` and `on_state` are called by the event loop and must not block it. One task at a time may receive.
    """

    _connection_kind = AsyncConnection

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
        return await self._subscribe(text, options, latency_seconds, wait=wait, timeout=timeout)

    async def unsubscribe(
        self, subscription: Subscription, *, wait: bool = False, timeout: float = ACK_SECONDS
    ) -> None:
        """Withdraw a subscription. With `wait`, after the return only items already queued still match it.

        Raises:
            KeyError: it was withdrawn already, or refused.

        """
        await self._unsubscribe(subscription, wait=wait, timeout=timeout)

    async def wait_acknowledged(self, timeout: float = ACK_SECONDS) -> None:
        """Wait until every change so far is acknowledged: many subscriptions made without `wait` in one go.

        Raises:
            WaitTimeoutError: some are not acknowledged yet.

        """
        await self._wait_acknowledged(timeout)

    async def receive(self, timeout: float | None = None) -> Item:
        """The next delivery or gap, in order.

        Raises:
            WaitTimeoutError: nothing has come within `timeout` seconds.
            FailedError, ClosedError, ConnectionFailedError: nothing will come any more.

        """
        return self._next_queued() or await self._receive(timeout)

    async def receive_many(self, most: int = 1000, timeout: float | None = None) -> list[Item]:
        """The next items, at least one and at most `most`; waits like `receive` for the first."""
        return self._add_queued([await self.receive(timeout)], most)

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Deliveries and gaps, in order, until the subscriber is closed. Raises FailedError if it has failed."""
        while True:
            try:
                item = self._next_queued() or await self.receive()
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

    async def close(self, *, withdraw: bool = True) -> None:
        """Detach: for good, or, without `withdraw`, to come back with token and watermarks within the lease."""
        await self._close(withdraw=withdraw)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()
