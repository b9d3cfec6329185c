"""A publisher: `publish` returns at once, and every publication gets an answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from plimsoll.client.connection import CLOSE_SECONDS, Connection
from plimsoll.client.errors import BufferFullError, FailedError, NotAcceptedError, WaitTimeoutError
from plimsoll.client.io_driver import Heads
from plimsoll.client.receipts import Receipt, ReceiptBook, Summary, describe_failures
from plimsoll.client.security import Security
from plimsoll.core import client as core
from plimsoll.core.client.publisher import Confirm, encoded_body
from plimsoll.core.client.publisher_position import PublisherPosition
from plimsoll.core.protocol.wire import Scalar

OnAnswer = Callable[[list[core.Answered]], None]


class Publisher:
    """Publishes under a name of its own, unique in the fleet. Thread-safe.

    `at`: a connection to share, or where the heads are, for a connection of its own.
    `confirm`: `head` answers when the head has logged a publication, `edges` when every edge that needs it has it.
    `on_answer`: called on the I/O thread with the answers of a round; it must not block.
    `position`: of an earlier life under this name, to go on from there. `unanswered`: all publications behind it that
    the earlier life may have sent, in their order; each is published once, whatever had arrived of them.
    `away_seconds`: how long ago that life ended; a head forgets publishers that are away for long.

    Used in a `with` block it waits at the end for all answers, and raises if any publication was not accepted.
    """

    def __init__(
        self,
        at: Connection | Heads,
        *,
        name: str = "",
        confirm: Confirm = "head",
        security: Security | None = None,
        on_answer: OnAnswer | None = None,
        position: PublisherPosition | None = None,
        unanswered: Sequence[tuple[Mapping[str, Scalar], bytes]] = (),
        away_seconds: float = 0.0,
    ) -> None:
        self._connection, self._owns = connection_for(at, security)
        self._on_answer = on_answer
        self._receipts: ReceiptBook[Receipt] = ReceiptBook()
        self._answers: list[core.Answered] = []
        with self._connection.lock:
            machine = self._connection.machine
            limit = machine.limits.max_publication_bytes
            bodies = [encoded_body(attributes, payload, limit) for attributes, payload in unanswered]
            self._inner = machine.publisher(
                name or self._connection.engine.own_name("p"), confirm=confirm, position=position, unanswered=bodies,
                sent_us=time.time_ns() // 1000, away_seconds=away_seconds,
            )  # fmt: skip
            first = self._inner.number - len(bodies) + 1
            self.resumed = [self._receipts.add(n, Receipt(n, self)) for n in range(first, first + len(bodies))]
            self._connection.own(self._inner, self)
            self._connection.wake()

    @property
    def name(self) -> str:
        return self._inner.name

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
        deadline = None if timeout is None else time.monotonic() + timeout
        connection = self._connection
        with connection.lock:
            while True:
                connection.check()
                self._check()
                try:
                    number = self._inner.publish(attributes, payload, sent_us=sent_us, confirm=confirm)
                except BufferFullError:
                    left = None if deadline is None else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        raise
                    connection.changed.wait(left)
                else:
                    connection.wake()
                    return self._receipts.add(number, Receipt(number, self))

    def flush(self, timeout: float | None = 30.0) -> Summary:
        """Wait until everything published so far has its answer; returns the answers since the last flush, counted.

        Raises:
            WaitTimeoutError: some are unanswered.

        """
        with self._connection.lock:
            last = self._inner.number
            self._connection.wait_for(
                lambda: self._receipts.answered_through(last), timeout, f"answered up to publication {last}"
            )
            return self._receipts.summary()

    @property
    def is_open(self) -> bool:
        """Whether a head takes its publications now; others wait."""
        with self._connection.lock:
            return self._inner.is_open

    @property
    def position(self) -> PublisherPosition | None:
        """How far it has got: all up to there is answered. None before a head has opened it."""
        with self._connection.lock:
            return self._inner.position

    def statistics(self) -> dict[str, Any]:
        """Counters since the start, and the publications under way."""
        with self._connection.lock:
            return self._inner.statistics()

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Wait for answers, at most `timeout` seconds, and close; the unanswered rest is `unknown` or `refused`."""
        connection = self._connection
        with connection.lock:
            try:
                last = self._inner.number
                connection.wait_for(lambda: self._receipts.answered_through(last), timeout, "answered")
            except WaitTimeoutError:
                pass  # the rest is answered `unknown` or `refused`
            finally:
                self._inner.close()
                events, self._inner.events = self._inner.events, []
                self.take(events)
                connection.disown(self._inner)
                connection.wake()
        self.call()
        if self._owns:
            connection.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
        if kind is None and (bad := self._receipts.summary().not_accepted):
            raise NotAcceptedError(f"publisher {self.name!r}: {describe_failures(bad)}", bad)

    # -- for the connection

    def wait_for(self, receipt: Receipt, timeout: float | None) -> None:
        with self._connection.lock:
            self._connection.wait_for(
                lambda: receipt.answer is not None, timeout, f"answered: publication {receipt.number}"
            )

    def take(self, events: list[core.PublisherEvent]) -> bool:
        answers = [event for event in events if type(event) is core.Answered]
        for answer in answers:
            self._receipts.answer(answer)
        if self._on_answer is not None:
            self._answers += answers
        return bool(self._answers)

    def call(self) -> None:
        with self._connection.lock:
            answers, self._answers = self._answers, []
        if answers and self._on_answer is not None:
            self._on_answer(answers)

    def _check(self) -> None:
        failed = self._inner.failed
        if failed is not None:
            raise FailedError(failed.code, failed.text)


def connection_for(at: Connection | Heads, security: Security | None) -> tuple[Connection, bool]:
    """The connection to use, and whether it is the caller's own."""
    if isinstance(at, Connection):
        if security is not None:
            raise ValueError("a shared connection has its security already; leave it out here")
        return at, False
    if security is None:
        raise ValueError("say how to connect: security=Curve(secret=..., server=...), or security='plain'")
    return Connection(at, security=security), True
