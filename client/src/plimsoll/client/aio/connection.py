"""A connection served by an event loop: any number of publishers and subscribers on one machine.

ZeroMQ's file descriptors are edge-triggered. So a round reads until nothing is left, checks again after it has sent,
and only then waits for the next event.
"""

# ruff: noqa: ASYNC109  # the parameters are those of the synchronous twins

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from plimsoll.client.aio.group import AsyncGroup
from plimsoll.client.connection import CLOSE_SECONDS
from plimsoll.client.connection_file import read_connection_file
from plimsoll.client.errors import ClosedError, ConnectionFailedError, WaitTimeoutError
from plimsoll.client.group_member import group_definition
from plimsoll.client.io_driver import ClientIODriver, E, EventSource, Heads
from plimsoll.client.security import Security
from plimsoll.core import client as core
from plimsoll.core.client.slice_stamps import OwnFunction

log = logging.getLogger(__name__)


class AsyncConnectionEventHandler(Protocol[E]):
    """The loop's interface to a publisher or subscriber."""

    def take(self, events: list[E]) -> None: ...

    def fail(self) -> None:
        """The connection has ended: wake the waiting tasks."""


class AsyncConnection:
    """Connects to a head, and to the edges that it names. Made and used in one event loop; `async with`, or `close`.

    Parameters and errors are those of `plimsoll.client.Connection`.
    """

    def __init__(
        self, heads: Heads, *, security: Security, name: str = "", limits: core.ClientLimits | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._engine = ClientIODriver(heads, name, security, limits)
        self._owners: dict[object, AsyncConnectionEventHandler[Any]] = {}  # `own` matches each to its events
        self._waiters: list[asyncio.Future[None]] = []
        self._failure: Exception | None = None
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None
        transport = self._engine.transport
        transport.on_socket, transport.on_close = self._add_reader, self._remove_reader
        self._add_reader(transport.lookup_fd)
        self.wake()

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        cluster: str = "",
        name: str = "",
        limits: core.ClientLimits | None = None,
    ) -> Self:
        """Connect as a connection file says; parameters and errors are those of `plimsoll.client.Connection`."""
        settings = read_connection_file(path, cluster)
        return cls(settings.heads, security=settings.security, name=name, limits=limits)

    # -- for the application

    @property
    def name(self) -> str:
        return self._engine.machine.info.name

    async def wait_open(self, timeout: float = 10.0) -> None:
        """Wait until a head has answered.

        Raises:
            WaitTimeoutError: saying what was tried.

        """
        await self.wait_for(lambda: self._engine.machine.home_link is not None, timeout, "connected")

    def group(self, name: str, slices: int | None = None, **definition: Any) -> AsyncGroup:
        """A consumer group; parameters and errors are those of `plimsoll.client.Connection.group`."""
        if slices is None and definition:
            raise TypeError(f"group {name!r}: {', '.join(sorted(definition))} without slices=...")
        return AsyncGroup(self, name, group_definition(slices, **definition))

    def assignment_function(self, name: str, function: OwnFunction) -> None:
        """Register an assignment function; parameters and errors are those of `plimsoll.client.Connection`."""
        self._engine.machine.stamps.register(name, function)

    def status(self) -> dict[str, Any]:
        """Counters and state, for people and for metrics."""
        return self._engine.status()

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Wait for unanswered publications, close all publishers and subscribers, and end; within `timeout` seconds."""
        if self._closed:
            return
        machine = self._engine.machine
        deadline = time.monotonic() + timeout
        await self._wait(lambda: not any(p.unanswered for p in machine.publishers.values()), deadline)
        if not self._closed:
            machine.close_all(time.monotonic())
            self.wake()
            await self._wait(lambda: machine.is_quiet, deadline)
        self._end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    # -- for publishers and subscribers

    @property
    def engine(self) -> ClientIODriver:
        return self._engine

    @property
    def machine(self) -> core.Client:
        """The machine, with its clock set to now.

        Raises:
            ClosedError, ConnectionFailedError: the connection has ended.

        """
        self.check()
        self._engine.machine.now = time.monotonic()
        return self._engine.machine

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def check(self) -> None:
        if self._failure is not None:
            raise ConnectionFailedError(f"the connection has failed: {self._failure}") from self._failure
        if self._closed:
            raise ClosedError(f"connection {self.name!r} is closed")

    def own(self, inner: EventSource[E], owner: AsyncConnectionEventHandler[E]) -> None:
        self._owners[inner] = owner

    def disown(self, inner: object) -> None:
        self._owners.pop(inner, None)

    def wake(self) -> None:
        """Schedule a round soon."""
        if self._soon is None and not self._closed:
            self._soon = self._loop.call_soon(self._round)

    async def wait_for(self, what: Callable[[], object], timeout: float | None, expected: str) -> None:
        """Wait until a condition holds.

        Raises:
            WaitTimeoutError, ClosedError, ConnectionFailedError: it does not, and why.

        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if not await self._wait(what, deadline):
            self.check()
            raise WaitTimeoutError(f"not {expected} within {timeout:g} s: {self._engine.where()}")

    async def _wait(self, what: Callable[[], object], deadline: float | None) -> bool:
        while not what():
            left = None if deadline is None else deadline - time.monotonic()
            if self._closed or (left is not None and left <= 0):
                return False
            await self.change(left)
        return True

    async def change(self, seconds: float | None) -> None:
        """Wait for the next wake-up, with a timeout."""
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        await asyncio.wait([waiter], timeout=seconds)

    def notify(self) -> None:
        """Wake all waiting tasks, which check their conditions again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

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
            for inner, events in self._engine.round():
                owner = self._owners.get(inner)
                if owner is not None:
                    owner.take(events)
        except Exception as error:  # raised again at all users of this connection
            log.exception("connection %s has failed", self.name)
            self._failure = error
            self._end()
            return
        self.notify()
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
        self._engine.leave()
        for owner in self._owners.values():
            owner.fail()
        self._owners.clear()
        self.notify()
