"""A publisher: `publish` returns at once, and every publication gets an answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from plimsoll.client.base.connection import CLOSE_SECONDS
from plimsoll.client.base.publisher import BasePublisher
from plimsoll.client.connection import Connection
from plimsoll.client.errors import BufferFullError
from plimsoll.client.receipts import Receipt, Summary
from plimsoll.client.waiting import run
from plimsoll.core.client.publisher import Confirm
from plimsoll.core.protocol.wire import Scalar


class Publisher(BasePublisher[Connection, Receipt]):
    """Publishes under a name of its own, unique in the fleet. Thread-safe.

    `at`: a connection to share, or where the heads are, for a connection of its own.
    `confirm`: `head` answers when the head has logged a publication, `edges` when every edge that needs it has it.
    `on_answer`: called on the I/O thread with the answers of a round; it must not block.
    `position`: of an earlier life under this name, to go on from there. `unanswered`: all publications behind it that
    the earlier life may have sent, in their order; each is published once, whatever had arrived of them.
    `away_seconds`: how long ago that life ended; a head forgets publishers that are away for long.

    Used in a `with` block it waits at the end for all answers, and raises if any publication was not accepted.
    """

    _connection_kind = Connection
    _receipt_kind = Receipt

    def publish(
        self,
        attributes: Mapping[str, Scalar],
        payload: bytes = b"",
        *,
        confirm: Confirm | None = None,
        timeout: float | None = None,
    ) -> Receipt:
        """Take a publication. Waits only while the buffer is full of unanswered ones, at most `timeout` seconds.

        Raises:
            PublicationError: wrong types, or too large; nothing was sent.
            BufferFullError: the buffer was full for `timeout` seconds.
            StalledError: others wait, and none has been answered for `ClientLimits.stall_seconds`.
            FailedError, ClosedError, ConnectionFailedError: this publisher has ended.

        """
        sent_us = time.time_ns() // 1000
        try:
            with self._connection.lock:
                return self._offer(attributes, payload, sent_us, confirm)
        except BufferFullError:
            pass  # it is offered again when there may be room
        return run(self._offer_when_room(attributes, payload, sent_us, confirm, timeout))

    def flush(self, timeout: float | None = 30.0) -> Summary:
        """Wait until everything published so far has its answer; returns the answers since the last flush, counted.

        Raises:
            WaitTimeoutError: some are unanswered.

        """
        return run(self._flush(timeout))

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Wait for answers, at most `timeout` seconds, and close; the unanswered rest is `unknown` or `refused`."""
        run(self._close(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
        if kind is None:
            self._check_all_accepted()
