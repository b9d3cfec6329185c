"""A publisher without its waiting: publications, their receipts, and their answers."""

# ruff: noqa: ASYNC109  # a timeout is a parameter of applications, and is named in errors

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from plimsoll.client.base.connection import C, connection_for
from plimsoll.client.errors import BufferFullError, FailedError, NotAcceptedError, WaitTimeoutError
from plimsoll.client.io_driver import Heads
from plimsoll.client.receipts import BaseReceipt, ReceiptBook, Summary, describe_failures
from plimsoll.client.security import Security
from plimsoll.client.waiting import Timeout
from plimsoll.core import client as core
from plimsoll.core.client.publisher import Confirm, encoded_body
from plimsoll.core.client.publisher_position import PublisherPosition
from plimsoll.core.protocol.wire import Scalar

OnAnswer = Callable[[list[core.Answered]], None]
R = TypeVar("R", bound=BaseReceipt)


class BasePublisher(Generic[C, R]):
    """The base of `Publisher` and `AsyncPublisher`."""

    _connection_kind: type[C]
    _receipt_kind: type[R]

    def __init__(
        self,
        at: C | Heads,
        *,
        name: str = "",
        confirm: Confirm = "head",
        security: Security | None = None,
        on_answer: OnAnswer | None = None,
        position: PublisherPosition | None = None,
        unanswered: Sequence[tuple[Mapping[str, Scalar], bytes]] = (),
        away_seconds: float = 0.0,
    ) -> None:
        self._connection, self._owns = connection_for(self._connection_kind, at, security)
        self._on_answer = on_answer
        self._receipts: ReceiptBook[R] = ReceiptBook()
        self._answers: list[core.Answered] = []
        with self._connection.lock:
            machine = self._connection.machine
            limit = machine.limits.max_publication_bytes
            bodies = [encoded_body(attributes, payload, limit) for attributes, payload in unanswered]
            self._inner = machine.publisher(
                name or self._connection.engine.own_name("p"), confirm=confirm, position=position, unanswered=bodies,
                sent_us=time.time_ns() // 1000, away_seconds=away_seconds,
            )  # fmt: skip
            first = self._inner.buffer.number - len(bodies) + 1
            self.resumed = [
                self._receipts.add(number, self._receipt_kind(number, self._connection))
                for number in range(first, first + len(bodies))
            ]
            self._connection.own(self._inner, self)
            self._connection.wake()

    @property
    def name(self) -> str:
        return self._inner.name

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

    # -- publications

    def _offer(self, attributes: Mapping[str, Scalar], payload: bytes, sent_us: int, confirm: Confirm | None) -> R:
        """Take a publication, under the lock. Raises BufferFullError if there is no room now."""
        connection, inner = self._connection, self._inner
        connection.check()
        if (failed := inner.failed) is not None:
            raise FailedError(failed.code, failed.text)
        number = inner.publish(attributes, payload, sent_us=sent_us, confirm=confirm)
        connection.wake()
        return self._receipts.add(number, self._receipt_kind(number, connection))

    async def _offer_when_room(
        self,
        attributes: Mapping[str, Scalar],
        payload: bytes,
        sent_us: int,
        confirm: Confirm | None,
        timeout: float | None,
    ) -> R:
        limit = Timeout(timeout)
        with self._connection.lock:
            while True:
                try:
                    return self._offer(attributes, payload, sent_us, confirm)
                except BufferFullError:
                    if limit.is_over:
                        raise
                await self._connection.changed.wait(limit.left())

    async def _flush(self, timeout: float | None) -> Summary:
        with self._connection.lock:
            await self._wait_answered(timeout)
            return self._receipts.summary()

    async def _wait_answered(self, timeout: float | None) -> None:
        last = self._inner.buffer.number
        await self._connection.wait_for(
            lambda: self._receipts.answered_through(last), timeout, f"answered up to publication {last}"
        )

    # -- the end

    async def _close(self, timeout: float) -> None:
        connection = self._connection
        with connection.lock:
            try:
                await self._wait_answered(timeout)
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
            await connection.shut(timeout)

    def _check_all_accepted(self) -> None:
        """Raise if publications were not accepted since the last flush."""
        if bad := self._receipts.summary().not_accepted:
            raise NotAcceptedError(f"publisher {self.name!r}: {describe_failures(bad)}", bad)

    # -- for the connection

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

    def end(self) -> None:
        """Nothing to do: all that waits for answers waits for a change of the connection."""
