"""A subscriber without its waiting: subscriptions, the queue of its items, callbacks, and its position."""

# ruff: noqa: ASYNC109  # a timeout is a parameter of applications, and is named in errors

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic

from plimsoll.client.base.connection import CLOSE_SECONDS, C, connection_for
from plimsoll.client.base.receiver import BaseReceiver
from plimsoll.client.errors import SubscriptionRefusedError
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
from plimsoll.client.subscriptions import Subscription, SubscriptionHandles
from plimsoll.client.waiting import Timeout
from plimsoll.core import client as core
from plimsoll.core.client.events import Item
from plimsoll.core.client.sendable import shown
from plimsoll.core.client.subscriber import UnitMark
from plimsoll.core.protocol.messages import Policy
from plimsoll.core.protocol.subscription_options import with_latency
from plimsoll.core.protocol.wire import Scalar, Token

log = logging.getLogger(__name__)

ITEMS = (core.Delivery, core.GapNotice)
OnBatch = Callable[[list[Item]], None]
OnState = Callable[[core.SubscriberEvent], None]
ACK_SECONDS: Final = 10.0


class BaseSubscriber(BaseReceiver, Generic[C]):
    """The base of `Subscriber` and `AsyncSubscriber`."""

    _kind = "subscriber"
    _connection_kind: type[C]
    _connection: C
    _inner: core.ClientSubscriber

    def __init__(
        self,
        at: C | Heads,
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
        super().__init__()
        self._connection, self._owns = connection_for(self._connection_kind, at, security)
        self._on_batch, self._on_state = on_batch, on_state
        self._queue: deque[Item] = deque()
        self._batch: list[Item] = []
        self._states: list[core.SubscriberEvent] = []
        self._untold = 0
        self._subscriptions = SubscriptionHandles()
        self._arrived = self._connection.new_signal()
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

    # -- subscriptions

    async def _subscribe(
        self,
        text: str,
        options: Mapping[str, Scalar] | None,
        latency_seconds: float | None,
        *,
        wait: bool,
        timeout: float,
    ) -> Subscription:
        with self._connection.lock:
            self._check()
            given = with_latency(options, latency_seconds)
            subscription = self._subscriptions.add(self._inner.subscribe(text, given), text)
            self._lateness.expect(given)
            self._connection.wake()
            if wait:
                await self._wait(lambda: subscription.is_settled, timeout, f"acknowledged: {shown(text)}")
        if subscription.refused:
            raise SubscriptionRefusedError(f"{shown(text)}: {subscription.refused}")
        return subscription

    async def _unsubscribe(self, subscription: Subscription, *, wait: bool, timeout: float) -> None:
        with self._connection.lock:
            self._check()
            self._inner.unsubscribe(subscription.id)
            self._connection.wake()
            if wait:
                await self._wait(lambda: subscription.is_withdrawn, timeout, f"withdrawn: {shown(subscription.text)}")

    async def _wait_acknowledged(self, timeout: float) -> None:
        with self._connection.lock:
            self._check()
            await self._wait(lambda: self._inner.is_acknowledged, timeout, "all acknowledged")

    async def _wait(self, what: Callable[[], object], timeout: float | None, expected: str) -> None:
        await self._connection.wait_for(lambda: what() or self._inner.failed or self._closed, timeout, expected)
        if not what():
            self._check()

    # -- deliveries

    def _next_queued(self) -> Item | None:
        """The next item if there is one. Takes the lock only where consumption is to be reported."""
        try:
            item = self._queue.popleft()
        except IndexError:
            return None
        untold = self._untold = self._untold + 1
        if untold >= CONSUMED_BATCH or not self._queue:
            self._report_consumed()
        return item

    def _add_queued(self, items: list[Item], most: int) -> list[Item]:
        """These items and the next ones that have come, `most` in all."""
        while len(items) < most and (item := self._next_queued()) is not None:
            items.append(item)
        return items

    async def _receive(self, timeout: float | None) -> Item:
        limit = Timeout(timeout)
        while (item := self._next_queued()) is None:
            with self._connection.lock:
                while not self._queue:
                    await self._wait_arrived(limit, timeout)
        return item

    def _report_consumed(self) -> None:
        with self._connection.lock:
            was_held = self._inner.stream.queue.is_held
            self._inner.stream.queue.consumed(self._untold)
            self._untold = 0
            if was_held and not self._inner.stream.queue.is_held:
                self._connection.wake()

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

    # -- the end

    async def _close(self, *, withdraw: bool) -> None:
        self._detach(withdraw=withdraw)
        if self._owns:
            await self._connection.shut(CLOSE_SECONDS)

    def _detach(self, *, withdraw: bool) -> None:
        connection = self._connection
        with connection.lock:
            if self._closed:
                return
            self._closed = True
            self._inner.close(withdraw=withdraw)
            connection.disown(self._inner)
            self._arrived.notify()
            connection.changed.notify()
            connection.wake()

    def _end_by_callback(self) -> None:
        """A callback has raised."""
        self._detach(withdraw=False)

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
        self._arrived.notify()
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
            self._end_by_callback()
        else:
            self._batch = []
