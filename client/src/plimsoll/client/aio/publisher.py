"""A publisher for asyncio: `publish` waits for room only, and every publication gets an answer."""

# ruff: noqa: ASYNC109  # the parameters are those of the synchronous twins

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from plimsoll.client.aio.connection import AsyncConnection
from plimsoll.client.base.connection import CLOSE_SECONDS
from plimsoll.client.base.publisher import BasePublisher
from plimsoll.client.errors import BufferFullError
from plimsoll.client.receipts import BaseReceipt, Summary
from plimsoll.core.client import Answered
from plimsoll.core.client.publisher import Confirm
from plimsoll.core.protocol.wire import Scalar


class AsyncReceipt(BaseReceipt):
    """The receipt of one publication: `number` from 1, and its answer once there is one."""

    __slots__ = ()

    async def wait(self, timeout: float | None = 30.0) -> Answered:
        """Wait for the answer `accepted`, or `unconfirmed`, which is accepted too.

        Raises:
            NotAcceptedError: it was refused, or its outcome is unknown.
            WaitTimeoutError: there is no answer yet.

        """
        if self.answer is None:
            await self._wait_answered(timeout)
        return self.require_accepted()


class AsyncPublisher(BasePublisher[AsyncConnection, AsyncReceipt]):
    """Publishes under a name of its own, unique in the fleet. Parameters are those of `plimsoll.client.Publisher`."""

    _connection_kind = AsyncConnection
    _receipt_kind = AsyncReceipt

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
        try:
            return self._offer(attributes, payload, sent_us, confirm)
        except BufferFullError:
            pass  # it is offered again when there may be room
        return await self._offer_when_room(attributes, payload, sent_us, confirm, timeout)

    async def flush(self, timeout: float | None = 30.0) -> Summary:
        """Wait until everything published so far has its answer; returns the answers since the last flush, counted.

        Raises:
            WaitTimeoutError: some are unanswered.

        """
        return await self._flush(timeout)

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Wait for answers, at most `timeout` seconds, and close; the unanswered rest is `unknown` or `refused`."""
        await self._close(timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()
        if kind is None:
            self._check_all_accepted()
