"""A connection without its rounds: the machine, who its events are for, and waiting for a condition."""

# ruff: noqa: ASYNC109  # a timeout is a parameter of applications, and is named in errors

from __future__ import annotations

import contextlib
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final, Protocol, Self, TypeVar

from plimsoll.client.connection_file import read_connection_file
from plimsoll.client.errors import ClosedError, ConnectionFailedError, WaitTimeoutError
from plimsoll.client.group_definition import group_definition
from plimsoll.client.io_driver import ClientIODriver, E, EventSource, Heads
from plimsoll.client.security import Security
from plimsoll.client.waiting import Signal, Timeout
from plimsoll.core import client as core
from plimsoll.core.client.slice_stamps import OwnFunction
from plimsoll.core.protocol.messages import GroupDefinition

log = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 5.0


class EventHandler(Protocol[E]):
    """A connection's interface to a publisher, a subscriber or a member of a group."""

    def take(self, events: list[E]) -> bool:
        """Take events, under the lock; returns whether `call` is due, which runs without it."""

    def call(self) -> None:
        """Call the application."""

    def end(self) -> None:
        """The connection has ended: wake what waits, which finds the reason there."""


class BaseConnection(ABC):
    """The base of `Connection` and `AsyncConnection`, which serve the rounds and wake those that wait."""

    lock: AbstractContextManager[Any]
    changed: Signal

    def __init__(
        self, heads: Heads, *, security: Security, name: str = "", limits: core.ClientLimits | None = None
    ) -> None:
        self._engine = ClientIODriver(heads, name, security, limits)
        self._owners: dict[Any, EventHandler[Any]] = {}  # `own` matches each to its events
        self._failure: BaseException | None = None
        self._closed = False

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        cluster: str = "",
        name: str = "",
        limits: core.ClientLimits | None = None,
    ) -> Self:
        """Connect as a connection file says, or a folder where the Secret of a client is mounted.

        `cluster`: its head alone; without it the first head that answers is used.

        Raises:
            ConnectionFileError: the file cannot be used.

        """
        settings = read_connection_file(path, cluster)
        return cls(settings.heads, security=settings.security, name=name, limits=limits)

    # -- for the application

    @property
    def name(self) -> str:
        return self._engine.machine.info.name

    def assignment_function(self, name: str, function: OwnFunction) -> None:
        """Register a function for groups with `function: Application` and `by: NAME`: the slice of these attributes.

        It is called for each publication of such a group here, before that is sent: pure, fast, a number of a slice or
        None. What it raises is raised by `publish`, and nothing is sent.

        Raises:
            ValueError: another function has this name here.

        """
        with self.lock:
            self._engine.machine.stamps.register(name, function)

    def status(self) -> dict[str, Any]:
        """Counters and state, for people and for metrics."""
        with self.lock:
            return self._engine.status()

    async def _wait_open(self, timeout: float) -> None:
        with self.lock:
            await self.wait_for(lambda: self._engine.machine.home_link is not None, timeout, "connected")

    def _definition(self, name: str, slices: int | None, definition: dict[str, Any]) -> GroupDefinition | None:
        if slices is None and definition:
            raise TypeError(f"group {name!r}: {', '.join(sorted(definition))} without slices=...")
        return group_definition(slices, **definition)

    # -- for publishers, subscribers and members; the lock is held by the caller

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

    def own(self, inner: EventSource[E], owner: EventHandler[E]) -> None:
        self._owners[inner] = owner

    def disown(self, inner: object) -> None:
        self._owners.pop(inner, None)

    @abstractmethod
    def wake(self) -> None:
        """Let a round begin soon."""

    @abstractmethod
    def new_signal(self) -> Signal:
        """A signal that something has come for one owner."""

    @abstractmethod
    async def shut(self, timeout: float) -> None:
        """Close the connection, as `close` says; the lock is not held."""

    async def wait_for(self, what: Callable[[], object], timeout: float | None, expected: str) -> None:
        """Wait until a condition holds.

        Raises:
            WaitTimeoutError, ClosedError, ConnectionFailedError: it does not, and why.

        """
        if not await self._wait(what, Timeout(timeout)):
            self.check()
            raise WaitTimeoutError(f"not {expected} within {timeout:g} s: {self._engine.where()}")

    async def _wait(self, what: Callable[[], object], limit: Timeout) -> bool:
        while not what():
            if self._failure is not None or self._closed or limit.is_over:
                return False
            await self.changed.wait(limit.left())
        return True

    async def _finish(self, limit: Timeout) -> None:
        """Wait for unanswered publications, then close all publishers and subscribers, and wait until that is sent."""
        machine = self._engine.machine
        await self._wait(lambda: not any(p.buffer for p in machine.publishers.values()), limit)
        if self._failure is None and not self._closed:
            machine.close_all(time.monotonic())
            self.wake()
            await self._wait(lambda: machine.is_quiet, limit)

    # -- rounds

    def _serve(self) -> list[EventHandler[Any]]:
        """A round; returns those whose application is to be called."""
        owners = self._owners
        calls = []
        for inner, events in self._engine.round():
            owner = owners.get(inner)
            if owner is None:
                continue
            try:
                if owner.take(events):
                    calls.append(owner)
            except Exception as error:
                log.exception("%s of connection %s has failed; the others go on", inner.name, self.name)
                self._fail_owner(owner, error)
        return calls

    def _call(self, owner: EventHandler[Any]) -> None:
        """Call the application, without the lock. What it raises is the end of this one, if that has not seen to it."""
        try:
            owner.call()
        except Exception as error:
            log.exception("a callback of connection %s has raised; its publisher or subscriber ends", self.name)
            with self.lock:
                self._fail_owner(owner, error)

    def _fail_owner(self, owner: EventHandler[Any], error: Exception) -> None:
        """End one publisher, subscriber or member for good, under the lock, and wake what waits for it."""
        for inner, each in list(self._owners.items()):
            if each is owner:
                self._engine.machine.guard(inner, partial(_raise, error))
                with contextlib.suppress(Exception):  # of the same fault: it ends all the same
                    owner.take(list(inner.events))
                inner.events.clear()
                self.disown(inner)
        owner.end()
        self.changed.notify()

    def _leave(self) -> None:
        """Say goodbye, and wake all that wait."""
        self._engine.leave()
        for owner in self._owners.values():
            owner.end()
        self._owners.clear()
        self.changed.notify()


C = TypeVar("C", bound=BaseConnection)


def connection_for(kind: type[C], at: C | Heads, security: Security | None) -> tuple[C, bool]:
    """The connection to use, and whether it is the caller's own."""
    if isinstance(at, BaseConnection):
        if security is not None:
            raise ValueError("a shared connection has its security already; leave it out here")
        return at, False
    if security is None:
        raise ValueError("say how to connect: security=Curve(secret=..., server=...), or security='plain'")
    return kind(at, security=security), True


def _raise(error: Exception) -> None:
    raise error
