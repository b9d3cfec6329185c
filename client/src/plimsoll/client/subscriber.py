"""A subscriber: an iterator over its deliveries and gaps, or a callback for each batch of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Self

from plimsoll.client.base.subscriber import ACK_SECONDS, BaseSubscriber
from plimsoll.client.connection import Connection
from plimsoll.client.errors import ClosedError
from plimsoll.client.subscriptions import Subscription
from plimsoll.client.waiting import run
from plimsoll.core import client as core
from plimsoll.core.client.events import Item
from plimsoll.core.protocol.wire import Scalar


class Subscriber(BaseSubscriber[Connection]):
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

    _connection_kind = Connection

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
        return run(self._subscribe(text, options, latency_seconds, wait=wait, timeout=timeout))

    def unsubscribe(self, subscription: Subscription, *, wait: bool = False, timeout: float = ACK_SECONDS) -> None:
        """Withdraw a subscription. With `wait`, after the return only items already queued still match it.

        Raises:
            KeyError: it was withdrawn already, or refused.

        """
        run(self._unsubscribe(subscription, wait=wait, timeout=timeout))

    def wait_acknowledged(self, timeout: float = ACK_SECONDS) -> None:
        """Wait until every change so far is acknowledged: many subscriptions made without `wait` in one go.

        Raises:
            WaitTimeoutError: some are not acknowledged yet.

        """
        run(self._wait_acknowledged(timeout))

    def receive(self, timeout: float | None = None) -> Item:
        """The next delivery or gap, in order.

        Raises:
            WaitTimeoutError: nothing has come within `timeout` seconds.
            FailedError, ClosedError, ConnectionFailedError: nothing will come any more.

        """
        return self._next_queued() or run(self._receive(timeout))

    def receive_many(self, most: int = 1000, timeout: float | None = None) -> list[Item]:
        """The next items, at least one and at most `most`; waits like `receive` for the first."""
        return self._add_queued([self.receive(timeout)], most)

    def __iter__(self) -> Iterator[Item]:
        """Deliveries and gaps, in order, until the subscriber is closed. Raises FailedError if it has failed."""
        while True:
            try:
                yield self._next_queued() or self.receive()
            except ClosedError:
                return  # the end of the iteration

    def deliveries(self, on_gap: Callable[[core.GapNotice], None]) -> Iterator[core.Delivery]:
        """Deliveries alone; gaps go to `on_gap`, each in its place between them."""
        for item in self:
            if isinstance(item, core.GapNotice):
                on_gap(item)
            else:
                yield item

    def close(self, *, withdraw: bool = True) -> None:
        """Detach: for good, or, without `withdraw`, to come back with token and watermarks within the lease."""
        run(self._close(withdraw=withdraw))

    def _end_by_callback(self) -> None:
        self.close(withdraw=False)  # a connection of its own ends, too: on the I/O thread this waits for nothing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
