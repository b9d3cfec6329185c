"""A connection served by an event loop: any number of publishers and subscribers on one machine.

ZeroMQ's file descriptors are edge-triggered. So a round reads until nothing is left, checks again after it has sent,
and only then waits for the next event.
"""

# ruff: noqa: ASYNC109  # the parameters are those of the synchronous twins

from __future__ import annotations

import asyncio
import contextlib
import logging
from types import TracebackType
from typing import Any, Self

from plimsoll.client.aio.group import AsyncGroup
from plimsoll.client.base.connection import CLOSE_SECONDS, BaseConnection
from plimsoll.client.io_driver import Heads
from plimsoll.client.security import Security
from plimsoll.client.waiting import Signal, TaskSignal, Timeout
from plimsoll.core import client as core

log = logging.getLogger(__name__)


class AsyncConnection(BaseConnection):
    """Connects to a head, and to the edges that it names. Made and used in one event loop; `async with`, or `close`.

    Parameters and errors are those of `plimsoll.client.Connection`.
    """

    def __init__(
        self, heads: Heads, *, security: Security, name: str = "", limits: core.ClientLimits | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(heads, security=security, name=name, limits=limits)
        self.lock = contextlib.nullcontext()  # all of it is used by one thread
        self.changed = TaskSignal()
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None
        transport = self._engine.transport
        transport.on_socket, transport.on_close = self._add_reader, self._remove_reader
        self._add_reader(transport.lookup_fd)
        self.wake()

    # -- for the application

    async def wait_open(self, timeout: float = 10.0) -> None:
        """Wait until a head has answered.

        Raises:
            WaitTimeoutError: saying what was tried.

        """
        await self._wait_open(timeout)

    def group(self, name: str, slices: int | None = None, **definition: Any) -> AsyncGroup:
        """A consumer group; parameters and errors are those of `plimsoll.client.Connection.group`."""
        return AsyncGroup(self, name, self._definition(name, slices, definition))

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Wait for unanswered publications, close all publishers and subscribers, and end; within `timeout` seconds."""
        await self.shut(timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    # -- for publishers, subscribers and members

    def wake(self) -> None:
        """Schedule a round soon."""
        if self._soon is None and not self._closed:
            self._soon = self._loop.call_soon(self._round)

    def new_signal(self) -> Signal:
        return TaskSignal()  # of many subscribers only those with items are woken

    async def shut(self, timeout: float) -> None:
        await self._finish(Timeout(timeout))
        self._end()

    # -- rounds

    def _add_reader(self, fd: int) -> None:
        self._loop.add_reader(fd, self.wake)

    def _remove_reader(self, fd: int) -> None:
        self._loop.remove_reader(fd)

    def _round(self) -> None:
        self._soon = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            for owner in self._serve():
                self._call(owner)
        except Exception as error:  # raised again at all users of this connection
            log.exception("connection %s has failed", self.name)
            self._failure = error
            self._end()
            return
        self.changed.notify()
        if self._engine.more or self._engine.transport.is_ready():
            self.wake()
        elif not self._closed:
            self._timer = self._loop.call_later(self._engine.seconds_to_next(), self.wake)

    def _end(self) -> None:
        if self._closed:
            return
        self._closed = True
        for handle in (self._timer, self._soon):
            if handle is not None:
                handle.cancel()
        self._remove_reader(self._engine.transport.lookup_fd)
        self._leave()
