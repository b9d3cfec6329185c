"""A connection of a process: one I/O thread, one machine, and any number of publishers and subscribers on it.

One lock guards the machine and its state. The I/O thread waits without it, serves a round under it, and calls the
application's callbacks without it. Waiting threads are woken through a condition of that lock.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Protocol, Self

from plimsoll.client.connection_file import read_connection_file
from plimsoll.client.errors import ClosedError, ConnectionFailedError, WaitTimeoutError
from plimsoll.client.group import Group
from plimsoll.client.group_member import group_definition
from plimsoll.client.io_driver import ClientIODriver, E, EventSource, Heads
from plimsoll.client.security import Security
from plimsoll.core import client as core
from plimsoll.core.client.slice_stamps import OwnFunction

log = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 5.0


class ConnectionEventHandler(Protocol[E]):
    """The I/O thread's interface to a publisher or subscriber."""

    def take(self, events: list[E]) -> bool:
        """Take events, under the lock; returns whether `call` is due, which runs without it."""

    def call(self) -> None:
        """Call the application."""


class Connection:
    """Connects to a head, and to the edges that it names. Thread-safe. Used in a `with` block, or closed by `close`.

    `heads`: an endpoint such as `tcp://127.0.0.1:7000`, or several; the first that answers is used.
    `security`: `Curve(secret=..., server=...)`, or `"plain"` on a network that you trust.
    `name`: unique in the fleet; made up if it is left out.

    Raises:
        SecurityError: a key cannot be used.
        ResourceLimitError: the system allows this process no more sockets.

    """

    def __init__(
        self, heads: Heads, *, security: Security, name: str = "", limits: core.ClientLimits | None = None
    ) -> None:
        self._engine = ClientIODriver(heads, name, security, limits)
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self._owners: dict[object, ConnectionEventHandler[Any]] = {}  # `own` matches each to its events
        self._failure: BaseException | None = None
        self._closing = self._closed = False
        self._is_woken = False
        self._next_round_at = 0.0
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._engine.transport.watch(self._wake_read)
        self._thread = threading.Thread(target=self._run, name=f"plimsoll {self.name}", daemon=True)
        self._thread.start()

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

    def wait_open(self, timeout: float = 10.0) -> None:
        """Wait until a head has answered.

        Raises:
            WaitTimeoutError: saying what was tried.

        """
        with self.lock:
            self.wait_for(lambda: self._engine.machine.home_link is not None, timeout, "connected")

    def group(self, name: str, slices: int | None = None, **definition: Any) -> Group:
        """A consumer group of the cluster whose head this connection uses; `subscribe` makes it a member.

        `slices`, and with it `filter`, `function`, `by`, `low`, `high`, `unassigned`, `balancing` and `in_session`:
        what the group is, for an identity with the role `Group`, which may make it. Others leave it out, and join what
        is there.

        Raises:
            TypeError: there is no such part of a definition, or no `slices` with it.

        """
        if slices is None and definition:
            raise TypeError(f"group {name!r}: {', '.join(sorted(definition))} without slices=...")
        return Group(self, name, group_definition(slices, **definition))

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

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Wait for unanswered publications, close all publishers and subscribers, and end; within `timeout` seconds.

        Called from a callback it does not wait; the connection ends right after the callback.
        """
        if self._closed:
            return
        machine = self._engine.machine
        deadline = time.monotonic() + timeout
        if threading.current_thread() is self._thread:
            with self.lock:
                machine.close_all(time.monotonic())
                self._closing = True
            return
        with self.lock:
            if self._failure is None and not self._closing:
                self._wait(lambda: not any(p.unanswered for p in machine.publishers.values()), deadline)
                machine.close_all(time.monotonic())
                self.wake()
                self._wait(lambda: machine.is_quiet, deadline)
            self._closing = True
            self.wake()
        self._thread.join(max(1.0, deadline - time.monotonic()))
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- for publishers and subscribers; the lock is held by the caller

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
        return self._closing

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def check(self) -> None:
        if self._failure is not None:
            raise ConnectionFailedError(f"the connection has failed: {self._failure}") from self._failure
        if self._closing:
            raise ClosedError(f"connection {self.name!r} is closed")

    def own(self, inner: EventSource[E], owner: ConnectionEventHandler[E]) -> None:
        self._owners[inner] = owner

    def disown(self, inner: object) -> None:
        self._owners.pop(inner, None)

    def wake(self) -> None:
        """Wake the I/O thread for a round."""
        if not self._is_woken:
            self._is_woken = True
            # a full pipe wakes it, too
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_write, b"x")

    def wait_for(self, what: Callable[[], object], timeout: float | None, expected: str) -> None:
        """Wait until a condition holds.

        Raises:
            WaitTimeoutError, ClosedError, ConnectionFailedError: it does not, and why.

        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._wait(what, deadline):
            self.check()
            raise WaitTimeoutError(f"not {expected} within {timeout:g} s: {self._engine.where()}")

    def _wait(self, what: Callable[[], object], deadline: float | None) -> bool:
        while not what():
            left = None if deadline is None else deadline - time.monotonic()
            if self._failure is not None or self._closing or (left is not None and left <= 0):
                return False
            self.changed.wait(left)
        return True

    # -- the I/O thread

    def _run(self) -> None:
        try:
            while not self._closing:
                self._round()
        except BaseException as error:  # raised again at all users of this connection
            log.exception("connection %s has failed", self.name)
            self._failure = error
        finally:
            self._end()

    def _round(self) -> None:
        self._engine.transport.wait(0.0 if self._is_woken else max(0.0, self._next_round_at - time.monotonic()))
        calls: list[ConnectionEventHandler[Any]] = []
        with self.lock:
            if self._is_woken:
                self._is_woken = False
                with contextlib.suppress(BlockingIOError):  # a full pipe took no byte of this wake-up
                    os.read(self._wake_read, 4096)
            self._dispatch(self._engine.round(), calls)
            # Under the lock: other threads change what the machine goes through here.
            self._next_round_at = time.monotonic() + self._engine.seconds_to_next()
            self.changed.notify_all()
        for owner in calls:
            owner.call()

    def _dispatch(self, taken: core.TakenEvents, calls: list[ConnectionEventHandler[Any]]) -> None:
        owners = self._owners
        for inner, events in taken:
            owner = owners.get(inner)
            if owner is not None and owner.take(events):
                calls.append(owner)

    def _end(self) -> None:
        with self.lock:
            self._closing = True
            self._engine.leave()
            self._owners.clear()
            self.changed.notify_all()
            # `wake` writes under the lock, and no longer from here on.
            self._is_woken = True
            os.close(self._wake_read)
            os.close(self._wake_write)
