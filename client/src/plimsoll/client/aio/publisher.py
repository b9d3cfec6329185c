"""A publisher for asyncio: `publish` waits for room only, and every publication gets an answer."""

# ruff: noqa: ASYNC109  # the parameters are those of the synchronous twins

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from plimsoll.client.aio.connection import AsyncConnection
from plimsoll.client.connection import CLOSE_SECONDS
from plimsoll.client.errors import BufferFullError, FailedError, NotAcceptedError, WaitTimeoutError
from plimsoll.client.io_driver import Heads
from plimsoll.client.publisher import OnAnswer
from plimsoll.client.receipts import ReceiptBook, Summary, describe_failures, require_accepted
from plimsoll.client.security import Security
from plimsoll.core import client as core
from plimsoll.core.client.publisher import Confirm
from plimsoll.core.protocol.wire import Scalar


class AsyncReceipt:
    """The receipt of one publication: `number` from 1, and its answer once there is one."""

    __slots__ = ("_publisher", "answer", "number")

    def __init__(self, number: int, publisher: AsyncPublisher) -> None:
        self.number, self._publisher = number, publisher
        self.answer: core.Answered | None = None

    async def wait(self, timeout: float | None = 30.0) -> core.Answered:
        """Wait for the answer `accepted`, or `unconfirmed`, which is accepted too.

        Raises:
            NotAcceptedError: it was refused, or its outcome is unknown.
            WaitTimeoutError: there is no answer yet.

        """
        if self.answer is None:
            await self._publisher.wait_for(self, timeout)
        return require_accepted(self.answer)

    def __repr__(self) -> str:
        return f"AsyncReceipt({self.number}, {self.answer.answer if self.answer else 'unanswered'})"


class AsyncPublisher:
    """Publishes under a name of its own, unique in the fleet. Parameters are those of `plimsoll.client.Publisher`."""

    def __init__(
        self,
        at: AsyncConnection | Heads,
        *,
        name: str = "",
        confirm: Confirm = "head",
        security: Security | None = None,
        on_answer: OnAnswer | None = None,
    ) -> None:
        self._connection, self._owns = connection_for(at, security)
        self._on_answer = on_answer
        self._receipts: ReceiptBook[AsyncReceipt] = ReceiptBook()
        self._inner = self._connection.machine.publisher(name or self._connection.engine.own_name("p"), confirm=confirm)
        self._connection.own(self._inner, self)
        self._connection.wake()

    @property
    def name(self) -> str:
        return self._inner.name

    async def publish(
        self,
        attributes: Mapping[str, Scalar],
        payload: bytes = b"",
        *,
        confirm: Confirm | None = None,
        timeout: float | None = None,
    ) -> AsyncReceipt:
        """Take a publication. Waits only while the buffer is full of unanswered ones, at most `timeout` seconds.

        Raises:
            PublicationError: wrong types, or too large; nothing was sent.
            BufferFullError: the buffer was full for `timeout` seconds.
            StalledError: others wait, and none has been answered for `ClientLimits.stall_seconds`.
            FailedError, ClosedError, ConnectionFailedError: this publisher has ended.

        """
        sent_us = time.time_ns() // 1000
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._connection.check()
            if (failed := self._inner.failed) is not None:
                raise FailedError(failed.code, failed.text)
            try:
                number = self._inner.publish(attributes, payload, sent_us=sent_us, confirm=confirm)
            except BufferFullError:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise
                await self._connection.change(left)
            else:
                self._connection.wake()
                return self._receipts.add(number, AsyncReceipt(number, self))

    async def flush(self, timeout: float | None = 30.0) -> Summary:
        """Wait until everything published so far has its answer; returns the answers since the last flush, counted.

        Raises:
            WaitTimeoutError: some are unanswered.

        """
        await self._wait_through(self._inner.number, timeout)
        return self._receipts.summary()

    async def _wait_through(self, last: int, timeout: float | None) -> None:
        await self._connection.wait_for(
            lambda: self._receipts.answered_through(last), timeout, f"answered up to publication {last}"
        )

    def statistics(self) -> dict[str, Any]:
        """Counters since the start, and the publications under way."""
        return self._inner.statistics()

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Wait for answers, at most `timeout` seconds, and close; the unanswered rest is `unknown` or `refused`."""
        try:
            await self._wait_through(self._inner.number, timeout)
        except WaitTimeoutError:
            pass  # the rest is answered `unknown` or `refused`
        finally:
            self._inner.close()
            events, self._inner.events = self._inner.events, []
            self.take(events)
            self._connection.disown(self._inner)
            self._connection.wake()
        if self._owns:
            await self._connection.close(timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()
        if kind is None and (bad := self._receipts.summary().not_accepted):
            raise NotAcceptedError(f"publisher {self.name!r}: {describe_failures(bad)}", bad)

    # -- for the connection

    async def wait_for(self, receipt: AsyncReceipt, timeout: float | None) -> None:
        await self._connection.wait_for(
            lambda: receipt.answer is not None, timeout, f"answered: publication {receipt.number}"
        )

    def take(self, events: list[core.PublisherEvent]) -> None:
        answers = [event for event in events if type(event) is core.Answered]
        for answer in answers:
            self._receipts.answer(answer)
        if answers and self._on_answer is not None:
            self._on_answer(answers)

    def fail(self) -> None:
        """Wake the waiting tasks; the connection gives them the reason."""


def connection_for(at: AsyncConnection | Heads, security: Security | None) -> tuple[AsyncConnection, bool]:
    """The connection to use, and whether it is the caller's own."""
    if isinstance(at, AsyncConnection):
        if security is not None:
            raise ValueError("a shared connection has its security already; leave it out here")
        return at, False
    if security is None:
        raise ValueError("say how to connect: security=Curve(secret=..., server=...), or security='plain'")
    return AsyncConnection(at, security=security), True
