"""What a subscriber and a member of a group have in common: they wait for items, and end, each for one reason."""

# ruff: noqa: ASYNC109  # a timeout is a parameter of applications, and is named in errors

from __future__ import annotations

from typing import ClassVar, Protocol

from plimsoll.client.base.connection import BaseConnection
from plimsoll.client.errors import CallbackError, ClosedError, FailedError, WaitTimeoutError
from plimsoll.client.waiting import Signal, Timeout


class Failure(Protocol):
    """Why the machine has ended something for good."""

    @property
    def code(self) -> str: ...
    @property
    def text(self) -> str: ...


class ReceiverMachine(Protocol):
    """The side of the machine's subscriber, or member, that this needs."""

    @property
    def name(self) -> str: ...
    @property
    def failed(self) -> Failure | None: ...


class BaseReceiver:
    """`_kind`: what errors call it."""

    _kind: ClassVar[str]
    _connection: BaseConnection
    _inner: ReceiverMachine
    _arrived: Signal

    def __init__(self) -> None:
        self._callback_error: Exception | None = None
        self._closed = False

    @property
    def name(self) -> str:
        return self._inner.name

    async def _wait_arrived(self, limit: Timeout, timeout: float | None, most: float | None = None) -> None:
        """Wait for the next arrival, until the limit or for `most` seconds; raises if there will be none."""
        self._check()
        if limit.is_over:
            raise WaitTimeoutError(f"{self._kind} {self.name!r}: nothing was delivered within {timeout:g} s")
        left = limit.left()
        await self._arrived.wait(left if most is None else most if left is None else min(left, most))

    def _check(self) -> None:
        """Raise if it has ended, or its connection."""
        self._check_itself()
        self._connection.check()

    def _check_itself(self) -> None:
        if self._callback_error is not None:
            raise CallbackError(f"the callback of {self.name!r} has raised") from self._callback_error
        if (failed := self._inner.failed) is not None:
            raise FailedError(failed.code, failed.text)
        if self._closed and not self._connection.has_failed:
            raise ClosedError(f"{self._kind} {self.name!r} is closed")

    def end(self) -> None:
        """The connection has ended."""
        self._arrived.notify()
